//! Runs test applications of Microsoft.Testing.Platform without an SDK.
//!
//! [`find_modules`] finds the applications, a [`RunSpec`] specifies how they are run, and [`run`] starts and supervises
//! their processes and reports everything as one stream of [`RunEvent`]s. Presenting events to users and writing
//! reports is left to other crates.
//!
//! ```no_run
//! use runtap_mtp::{RunEvent, RunSpec, Stop, find_dotnet, find_modules, run};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let found = find_modules(&std::env::current_dir()?, &["bin/**/*.Tests.dll".to_owned()])?;
//! let mut spec = RunSpec::new(found.modules);
//! spec.application.dotnet = find_dotnet().ok();
//! let outcome = run(&spec, &Stop::new(), |event| {
//!     if let RunEvent::TestEnded { result, .. } = event {
//!         println!("{} {}", result.execution.state.name(), result.name);
//!     }
//! })?;
//! println!("{:?}", outcome.totals);
//! # Ok(())
//! # }
//! ```

#![deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]
#![cfg_attr(
    test,
    allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, reason = "tests")
)]

mod active_tests;
mod budget;
mod child;
mod command;
mod digest;
mod dotnet;
mod event;
mod find;
mod http;
mod identity;
mod launch;
mod listen;
mod module;
mod order;
mod output;
mod pattern;
mod pipe;
mod run;
mod scratch;
mod stop;
pub mod suite;
mod tally;
pub mod transcript;
#[cfg(unix)]
mod tree;

pub use active_tests::ActiveTests;
pub use child::Exit;
pub use command::ApplicationOptions;
pub use dotnet::{NoDotnet, find_dotnet};
pub use event::*;
pub use find::{FindError, FoundModules, find_modules};
pub use identity::server_settings;
pub use listen::Transport;
pub use module::{Module, ModuleKind};
pub use output::Output;
pub use pipe::Pipe;
pub use run::{ArtifactKeeper, Job, RunOutcome, RunSpec, TestRule, TestRules, Timeouts, code, run};
pub use runtap_mtp_proto::server::Mode;
pub use scratch::{Scratch, socket_in};
pub use stop::{Stop, StopLevel};
