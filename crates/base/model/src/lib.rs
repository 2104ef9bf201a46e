//! Data model of recordings: threads, frames, stacks and weighted samples in append-only tables.
//!
//! ```text
//!   StringTable   text, each once                    StringHandle
//!   FrameTable    (module, name, …), each once       FrameHandle
//!   StackTable    (parent stack, frame), each once   StackHandle
//!   Thread        tid, name, samples in time order   ThreadHandle
//!   KindTable     (class, name, unit), each once     SampleKind
//!   Sample        time, weight, kind, stack          (16 bytes as stored)
//! ```
//!
//! Handles are `Copy` and 4 bytes. They are only valid for the [`Trace`] or [`TraceBuilder`] that returned them.
//! Decoders fill a [`TraceBuilder`] with times, [`TraceBuilder::finish`] computes the weights and returns the
//! [`Trace`], and sinks and reports read that. A [`View`] selects samples and defines the unit of their weights.
//!
//! [`counters`] are numbers that a program reports at intervals, a [`thread_dump`] is the state of its threads at one moment.
//!
//! This crate reads and writes no file formats and reads no clock. Results do not depend on the order of hash maps, so
//! equal input gives equal output. docs/design/model.md explains the design.

#![deny(clippy::disallowed_methods)]

mod alignment;
mod bounds;
mod branches;
mod builder;
pub mod calendar;
mod call_tree;
mod comparison;
pub mod counters;
mod doubt;
mod frames;
mod kinds;
mod merge;
mod message;
mod nameless;
pub mod order;
mod period;
mod samples;
mod stacks;
mod strings;
pub mod text;
pub mod thread_dump;
mod threads;
mod ticks;
mod totals;
mod trace;
pub mod units;
mod utc;
mod view;

pub use bounds::{DeepStacks, LEFT_OUT};
pub use branches::{Branches, ThreadBranches};
pub use builder::TraceBuilder;
pub use call_tree::{TreeDirection, TreeNode, call_tree};
pub use comparison::{Comparison, ComparisonSide, ShareChange};
pub use frames::{Frame, FrameHandle, FrameKind, FrameTable, Origin};
pub use kinds::{KindInfo, KindTable, MAX_KINDS, SampleClass, SampleKind};
pub use message::Message;
pub use samples::{Run, Sample, Thread, ThreadHandle};
pub use stacks::{Frames, Stack, StackHandle, StackTable};
pub use strings::{StringHandle, StringTable};
pub use threads::{MAX_STEPS, MAX_THREADS, Room};
pub use ticks::{ThreadTicks, TickRun, Ticks};
pub use totals::{FrameTotals, StackWeights};
pub use trace::{Process, Trace};
pub use utc::UtcNs;
pub use view::{Unit, View};

/// The text that represents the stack of samples without one, so that their weight stays visible.
pub const NO_STACK: &str = "[no stack]";
