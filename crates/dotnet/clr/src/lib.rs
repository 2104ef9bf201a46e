//! What the events of the CLR mean: names of methods, profiles, counts and reports.
//!
//! * [`EventCounts`]: how many events of which kind a stream holds.
//! * [`ProfileBuilder`]: samples, method names and modules of a stream → a [`runtap_model::Trace`].
//! * [`DotnetTraceBuilder`]: the same as dotnet-trace would have it.
//! * [`payload`]: the fields of any event, by the stream's own descriptions or by what is built in.
//! * [`Record`]: an event with everything that is known of it; [`Filter`]: a condition on records.
//! * [`lines`]: events as JSON Lines, CSV or text.
//! * [`report`]: time, collections, exceptions, locks, requests, counters, logs: what people ask of a recording, or of two.
//! * [`layout`]: what a stream consists of, block by block.
//! * [`Stacks`], [`CodeMap`]: the distinct stacks of a stream, and the methods that their addresses are in.
//! * [`clr`]: the events that names and profiles are made of, as structs.
//!
//! Reading fields by their descriptions, filters, lines, counts and the layout know nothing of the CLR but how some of its
//! own events are called, and serve any stream. Who tells of another runtime in another way gets a crate of his own beside
//! this one.
//!
//! Nothing here opens a file or a socket: events come in by reference, answers go out as values.

#![deny(clippy::disallowed_methods)]

pub mod clr;
mod code_map;
mod counts;
mod dotnet_trace;
mod filter;
mod frame;
pub mod gc;
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

pub use code_map::{Address, Code, CodeMap, Method, MethodId, ModuleId};
pub use counts::{EventCount, EventCounts};
pub use dotnet_trace::DotnetTraceBuilder;
pub use filter::{Filter, FilterError};
pub use names::{FrameText, Names};
pub use profile::{ProfileBuilder, ProfileOptions};
pub use record::{Member, MemberValue, Record, UtcNs};
pub use stacks::Stacks;
