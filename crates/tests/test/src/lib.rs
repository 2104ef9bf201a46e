//! Tests, whatever runs them.
//!
//! - [`formats`]: what test commands print, as results.
//! - [`plan`]: which tests run, where and in which order.
//!
//! Touches no process, file or clock, and knows no protocol.

pub mod formats;
pub mod plan;
