//! Test results and test plans, independent of a test framework.
//!
//! - [`formats`]: parses the output of test commands.
//! - [`plan`]: decides which tests run, where and in which order.
//!
//! The crate accesses no process, file or clock, and knows no protocol.

pub mod formats;
pub mod plan;
