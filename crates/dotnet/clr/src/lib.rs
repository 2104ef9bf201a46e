//! Interprets events of the CLR: names of methods, profiles, counts and reports.
//!
//! * [`EventCounts`]: the number of events of each kind in a stream.
//! * [`ProfileBuilder`]: a [`runtap_model::Trace`] from the samples, method names and modules of a stream.
//! * [`LiveProfile`]: the profile of the last seconds of a live session.
//! * [`DotnetTraceBuilder`]: a trace as dotnet-trace creates it.
//! * [`payload`]: the fields of any event, by the stream's descriptions or by built-in ones.
//! * [`Record`]: an event with everything that is known about it; [`Filter`]: a condition on records.
//! * [`lines`]: events as JSON Lines, CSV or text.
//! * [`report`]: time, collections, exceptions, locks, requests, counters and logs of a recording, or of two.
//! * [`counters`]: the values of meters and event counters, as they are reported.
//! * [`layout`]: the blocks of a stream.
//! * [`HeapEvents`]: the graph of the heap that a recording describes.
//! * [`ThreadDumpBuilder`]: the threads of a program at one moment.
//! * [`async_chains`]: the async methods that wait, from the graph of a heap.
//! * [`Stacks`], [`CodeMap`]: the distinct stacks of a stream, and the methods at their addresses.
//! * [`clr`]: the events from which names and profiles are derived, as structs.
//!
//! Payloads, filters, lines, counts and the layout work for any stream; apart from the names of a few events, they do not depend on
//! the CLR.
//!
//! The crate opens no file or socket: events are passed by reference, results are values.

#![deny(clippy::disallowed_methods)]

mod async_chains;
pub mod clr;
mod code_map;
pub mod counters;
mod counts;
mod dotnet_trace;
mod filter;
mod frame;
pub mod gc;
mod heap;
pub mod layout;
pub mod lines;
mod names;
mod nested;
pub mod payload;
mod profile;
mod record;
pub mod report;
mod shown;
mod stacks;
mod suspensions;
mod threads;

pub use async_chains::async_chains;
pub use code_map::{Address, Code, CodeMap, Method, MethodId, ModuleId};
pub use counts::{EventCount, EventCounts};
pub use dotnet_trace::DotnetTraceBuilder;
pub use filter::{Filter, FilterError};
pub use heap::{ArgumentModules, HEAP_KEYWORDS, HeapEvents};
pub use names::{FrameText, Names};
pub use profile::{LiveLimits, LiveProfile, ProfileBuilder, ProfileOptions};
pub use record::{Member, MemberValue, Record, UtcNs};
pub use stacks::Stacks;
pub use threads::ThreadDumpBuilder;
