//! Test results and test plans, independent of a test framework.
//!
//! - [`formats`]: parses the output of test commands.
//! - [`TestOutcome`]: the outcome of a test, in output, reports and runs.
//! - [`plan`]: decides which tests run, where and in which order.
//!
//! The crate accesses no process, file or clock, and knows no protocol.

pub mod formats;
mod outcome;
pub mod plan;

pub use self::outcome::TestOutcome;
