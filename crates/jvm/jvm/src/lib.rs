//! The interpretation of Java traces, beyond their call trees (`runtap-bytefrog`).
//!
//! - [`agents`]: the agents of a collector, apart from their traces.
//! - [`recording`]: recordings on disk, and their replay, comparison and conversion to profiles.
//! - [`report`]: the rows of reports on recordings.
//! - [`coverage`]: which code of JAR files ran, which did not, and for which this is unknown.
//! - [`coverage_files`]: coverage files, from a request to the files on disk; [`classpath`] reads the classes.
//! - [`BrokenRules`]: the protocol rules that an agent has broken.
//!
//! This crate opens no listener and prints nothing.

pub mod agents;
mod broken;
pub mod classpath;
pub mod coverage;
pub mod coverage_files;
pub mod recording;
pub mod report;

pub use self::broken::{BrokenRules, describe_violation};
