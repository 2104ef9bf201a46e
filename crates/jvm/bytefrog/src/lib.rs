//! HQ for Bytefrog agents, as a library.
//!
//! [`Model`] makes of the messages of one agent what its program does: a call tree with counts and times, exceptions,
//! segments, slow calls, lines that have run. It takes the data connections in any order, opens no frame that no event has
//! opened, and has bounds for its memory. [`Report`] and [`CallTree`] are what it has come to, at any time.
//!
//! [`hq::Hq`] listens: several agents at a time, each with its own trace, commanded from any thread.
//!
//! The protocol itself is in `runtap-bytefrog-proto`.

#![deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]
#![warn(clippy::cast_possible_truncation)]

pub mod hq;
mod model;
mod signature;

pub use model::call_tree::{CallTree, TreeRow};
pub use model::report::{
    Detail, ExceptionReport, LONGEST_PATH, Line, MethodReport, Report, SegmentReport, SlowCall, ThreadReport,
};
pub use model::{
    Change, Counters, Fate, Finding, Limits, Model, Segment, Selection, StackChange, Sums, in_order,
};
pub use signature::{fitted, readable};
