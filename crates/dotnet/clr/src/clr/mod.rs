//! Payload layouts of `Microsoft-Windows-DotNETRuntime` and its rundown provider.
//!
//! The native providers of the runtime describe neither names nor fields in the stream, so their layouts are
//! built in. Every layout only grows: a decoder takes the fields it knows and leaves the rest, and never asks for
//! an exact length. All numbers are little-endian, strings are NUL-terminated UTF-16.
//!
//! Sources: the runtime's event manifest (`ClrEtwAll.man` of dotnet/runtime) and recordings of .NET Core 2.1 to
//! .NET 10.

mod method;
mod module;
mod process;

pub use method::{MethodEvent, MethodEventKind, tier_name};
pub use module::ModuleEvent;
pub(crate) use module::file_stem;
pub use process::ProcessInfoEvent;

/// The runtime's live events.
pub const RUNTIME: &str = "Microsoft-Windows-DotNETRuntime";
/// What is already loaded, told at the end (or the start) of a session.
pub const RUNDOWN: &str = "Microsoft-Windows-DotNETRuntimeRundown";
/// A stack per managed thread and millisecond.
pub const SAMPLE_PROFILER: &str = "Microsoft-DotNETCore-SampleProfiler";
/// The task library.
pub const TPL: &str = "System.Threading.Tasks.TplEventSource";
/// The stream's own provider.
pub const EVENT_PIPE: &str = "Microsoft-DotNETCore-EventPipe";
