//! What a recording means: threads, frames, stacks and weighted samples, kept as append-only tables.
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
//! A handle is a `u32` that is `Copy`; it belongs to the [`Trace`] (or the [`TraceBuilder`]) that gave it out.
//! [`TraceBuilder`] is filled by whoever decodes a recording, with times only; [`TraceBuilder::finish`]
//! gives every sample its weight and returns the [`Trace`] that sinks and reports read.
//! A [`View`] says which samples are looked at, and what their weights count.
//!
//! This crate knows no file format, neither in nor out, and reads no clock. Nothing that it returns depends on
//! the order of a hash map, so that equal input gives equal output.
//! docs/design/model.md says why it is built like this.

#![deny(clippy::disallowed_methods)]

mod alignment;
mod bounds;
mod branches;
mod builder;
mod comparison;
mod doubt;
mod frames;
mod kinds;
mod merge;
mod nameless;
mod period;
mod samples;
mod stacks;
mod strings;
pub mod text;
mod threads;
mod ticks;
mod totals;
mod trace;
mod view;

pub use bounds::{DeepStacks, LEFT_OUT};
pub use branches::{Branches, ThreadBranches};
pub use builder::TraceBuilder;
pub use comparison::{Comparison, ShareChange, Side};
pub use frames::{Frame, FrameHandle, FrameKind, FrameTable, Origin};
pub use kinds::{Class, KindInfo, KindTable, MAX_KINDS, SampleKind};
pub use samples::{Run, Sample, Thread, ThreadHandle};
pub use stacks::{Frames, Stack, StackHandle, StackTable};
pub use strings::{StringHandle, StringTable};
pub use threads::{MAX_STEPS, MAX_THREADS, Room};
pub use ticks::{ThreadTicks, TickRun, Ticks};
pub use totals::{FrameTotals, StackWeights};
pub use trace::{Process, Trace};
pub use view::{Unit, View};

/// The text that stands for the stack of a sample that has none, so that its time stays visible.
pub const NO_STACK: &str = "[no stack]";
