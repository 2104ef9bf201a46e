//! Payload layouts of `Microsoft-Windows-DotNETRuntime` and its rundown provider.
//!
//! The native providers of the runtime describe neither names nor fields in the stream, so their layouts are built in. New versions
//! only append fields: a decoder reads the fields that it knows and ignores the rest. All numbers are little-endian; strings are
//! NUL-terminated UTF-16.
//!
//! Sources: the runtime's event manifest (`ClrEtwAll.man` of dotnet/runtime) and recordings of .NET Core 2.1 to
//! .NET 10.

mod il_map;
mod method;
mod module;
mod process;

pub use il_map::{IlMap, IlMapEvent};
pub use method::{MethodEvent, MethodEventKind, tier_name};
pub use module::ModuleEvent;
pub(crate) use module::file_stem;
pub use process::ProcessInfoEvent;

/// The provider of the runtime's live events.
pub const RUNTIME: &str = "Microsoft-Windows-DotNETRuntime";
/// The provider of rundown events about what is already loaded, sent at the end or the start of a session.
pub const RUNDOWN: &str = "Microsoft-Windows-DotNETRuntimeRundown";
/// The provider of stack samples: one per managed thread and millisecond.
pub const SAMPLE_PROFILER: &str = "Microsoft-DotNETCore-SampleProfiler";
/// The provider of the task library.
pub const TPL: &str = "System.Threading.Tasks.TplEventSource";
/// The provider of events about the stream itself.
pub const EVENT_PIPE: &str = "Microsoft-DotNETCore-EventPipe";
