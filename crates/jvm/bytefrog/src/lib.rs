//! HQ, the collector for Bytefrog agents, as a library.
//!
//! [`Model`] derives what a program does from the messages of its agent: a call tree with counts and times,
//! exceptions, segments, slow calls, and lines that have run. It accepts the data connections in any order, opens
//! stack frames only for entries, and uses bounded memory. [`Report`] and [`CallTree`] present its results at any
//! time.
//!
//! [`hq::Hq`] listens for several agents at the same time, each with its own trace, and can be controlled from any
//! thread. [`control`] lets scripts do so, over a socket.
//!
//! The protocol itself is implemented by `runtap-bytefrog-proto`.

#![deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]
#![warn(clippy::cast_possible_truncation)]

pub mod control;
pub mod hq;
mod model;
mod signature;

pub use model::call_tree::{CallTree, TreeRow};
pub use model::report::{
    Detail, ExceptionReport, Line, MAX_PATH_LENGTH, MethodReport, Report, SegmentReport, SlowCall,
    ThreadReport,
};
pub use model::{
    Change, CombinedReport, Counters, Fate, Finding, Limits, Model, Segment, Selection, StackChange, in_order,
};
pub use signature::{fitted, readable};
