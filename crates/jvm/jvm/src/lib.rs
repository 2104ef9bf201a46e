//! The interpretation of Java traces, beyond their call trees (`runtap-bytefrog`).
//!
//! - [`recording`]: recordings on disk, and their replay, comparison and conversion to profiles.
//! - [`coverage`]: which code of JAR files ran, which did not, and for which this is unknown.
//!
//! This crate opens no listener and prints nothing.

pub mod coverage;
pub mod recording;
