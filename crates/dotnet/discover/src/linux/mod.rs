//! Discovery on Linux: by `/proc`, the temporary directories that processes have, and the kernel's tables of sockets.

mod budget;
mod candidate;
mod clients;
mod environment;
mod facts;
/// For the fuzz targets.
#[cfg(fuzzing)]
#[doc(hidden)]
pub mod fuzzing;
mod gather;
mod holders;
mod java;
mod judge;
mod key;
mod listings;
mod machine;
mod memory;
mod mounts;
mod own_counters;
mod path_cache;
mod proc_files;
mod proc_mount;
mod runtime;
mod search;
mod security;
mod sockets;
mod survey;
mod system;
mod tree;
mod unix_diag;
mod view;

pub use clients::{Clients, Connection, Holder, Wait};
pub use environment::Environment;
pub use facts::{Createdump, Facts, ProcessState, Survey, TempDir, TempState, Viewer};
pub use holders::Holders;
pub use machine::Machine;
pub use memory::Memory;
pub use proc_mount::ProcTrouble;
pub use runtime::Runtime;
pub use security::Policy;
pub use system::System;
pub use view::FileView;

use crate::{NotFound, Options, Process, Startup, Thread};

/// The managed processes that can be seen from here, by pid. Unreadable parts are passed over.
pub fn processes(options: Options) -> Vec<Process> {
    System::current().processes(options)
}

/// The .NET process `pid`, or what stands in the way.
///
/// # Errors
/// See [`Reason`](crate::Reason).
pub fn process(pid: u32) -> Result<Process, NotFound> {
    System::current().process(pid)
}

/// Everything about process `pid` that bears on whether it can be reached.
pub fn facts(pid: u32) -> Facts {
    System::current().facts(pid)
}

/// What process `pid` was told of diagnostics when it was started, and its real user: nothing else is looked at.
///
/// # Errors
/// When the process is gone, or we may not look into it.
pub fn environment(pid: u32) -> std::io::Result<(Environment, u32)> {
    System::current().environment(pid)
}

/// How far the runtime of process `pid` has come.
pub fn startup(pid: u32) -> Startup {
    System::current().startup(pid)
}

/// The threads of process `pid`, by id.
///
/// # Errors
/// When the process is gone.
pub fn threads(pid: u32) -> std::io::Result<Vec<Thread>> {
    System::current().threads(pid)
}

/// How much memory process `pid` has mapped.
///
/// # Errors
/// When the process is gone, or we may not look into it.
pub fn memory(pid: u32) -> std::io::Result<Memory> {
    System::current().memory(pid)
}

/// The file system as process `pid` sees it.
///
/// # Errors
/// When the process is gone, or we may not look into it.
pub fn file_view(pid: u32) -> std::io::Result<FileView> {
    System::current().file_view(pid)
}

/// The start time of process `pid`: the key in the name of its socket.
pub fn start_time(pid: u32) -> Option<u64> {
    System::current().start_time(pid)
}

/// Whether the process that had the id `pid` and this start time is still running.
pub fn is_running(pid: u32, start_time: u64) -> bool {
    System::current().is_running(pid, start_time)
}
