//! Turns decoded events into answers: event counts, and profiles with named stacks.
//!
//! * [`EventCounts`]: how many events of which kind a stream holds.
//! * [`ProfileBuilder`]: samples, method names and modules of a stream → a [`runtap_model::Trace`].
//! * [`clr`]: the layouts of the runtime's own events, which a stream does not describe.
//!
//! Nothing here opens a file or a socket: events come in by reference, answers go out as values.

#![deny(clippy::disallowed_methods)]

pub mod clr;
mod code_map;
mod counts;
mod profile;

pub use code_map::{Address, CodeMap, Method, MethodId, ModuleId};
pub use counts::{EventCount, EventCounts};
pub use profile::{ProfileBuilder, ProfileOptions};
