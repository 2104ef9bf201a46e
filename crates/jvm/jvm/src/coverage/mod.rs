//! Coverage of Java programs from Bytefrog traces, and methods that were never called.
//!
//! - [`Observed`] is what runs have shown: calls of methods, lines, and what agents did with classes. It is derived
//!   from a trace's [`Report`](runtap_bytefrog::Report) and can be added up over runs. [`RecordedCoverage`] derives it
//!   from the agents of recordings.
//! - [`Inventory`] lists the methods of JAR files and of folders of classes.
//! - [`Coverage`] combines both, as packages, source files, classes, methods and lines; [`Format`] writes it as
//!   LCOV, JaCoCo XML or Cobertura XML.
//! - [`NeverCalled`] is the difference: dead code by package, class and method, with its size in bytes, and the
//!   reasons why some of it may have run nevertheless.
//!
//! **Methods come from entries, lines from line visits, and nothing is invented**: a trace without line visits
//! (version 1) has methods only. For which lines and methods count as missed, see [`Options`] and
//! docs/jvm-coverage.md.
//!
//! This module neither opens files nor prints, and equal input gives equal bytes.
//!
//! ```
//! use runtap_jvm::coverage::{Coverage, Format, Inventory, Observed, Options, WriteOptions};
//! # fn example(report: &runtap_bytefrog::Report, jar: &[u8]) -> Result<(), Box<dyn std::error::Error>> {
//! let observed = Observed::of(report);
//! let mut inventory = Inventory::default();
//! inventory.add_jar("app.jar", jar, &Default::default())?;
//! let coverage = Coverage::of(&observed, Some(&inventory), &Options::default());
//! let mut file = Vec::new();
//! Format::Lcov.write(&coverage, &mut file, &WriteOptions::default())?;
//! # Ok(())
//! # }
//! ```

#![deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::disallowed_methods)]
#![warn(clippy::cast_possible_truncation)]

mod build;
pub mod cobertura;
mod doubts;
mod filter;
pub mod inventory;
pub mod jacoco;
mod languages;
pub mod lcov;
pub mod model;
pub mod never;
mod observed;
mod patterns;
mod recorded;
mod releases;
mod signature;
mod write;
mod xml;

pub use crate::coverage::build::Options;
pub use crate::coverage::filter::Filtered;
pub use crate::coverage::inventory::Inventory;
pub use crate::coverage::model::Coverage;
pub use crate::coverage::never::{NeverCalled, NeverOptions};
pub use crate::coverage::observed::{
    ClassFate, Losses, MethodId, Observed, ObservedMethod, TracedClasses, Unknown,
};
pub use crate::coverage::patterns::{MAX_PATTERNS, PatternError, Patterns};
pub use crate::coverage::recorded::RecordedCoverage;
pub use crate::coverage::releases::Releases;
pub use crate::coverage::signature::{Reason, Signature, SignatureError};
pub use crate::coverage::write::{Format, Locate, WriteOptions};
