//! Discovery on Linux: `/proc`, the temporary directories of processes, and the kernel's tables of sockets.

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
mod usage;
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

/// Returns the managed processes that are visible, ordered by process id. Unreadable ones are skipped.
pub fn processes(options: Options) -> Vec<Process> {
    System::current().processes(options)
}

/// Returns the .NET process `pid`.
///
/// # Errors
/// Returns the reason why it can't be reached; see [`Reason`](crate::Reason).
pub fn process(pid: u32) -> Result<Process, NotFound> {
    System::current().process(pid)
}

/// Gathers the facts that determine whether process `pid` can be reached.
pub fn facts(pid: u32) -> Facts {
    System::current().facts(pid)
}

/// Returns the diagnostics settings in the environment of process `pid`, and its real user id.
///
/// # Errors
/// Returns an error if the process has exited or access is denied.
pub fn environment(pid: u32) -> std::io::Result<(Environment, u32)> {
    System::current().environment(pid)
}

/// Returns the progress of the startup of process `pid`'s runtime.
pub fn startup(pid: u32) -> Startup {
    System::current().startup(pid)
}

/// Returns the threads of process `pid`, ordered by id.
///
/// # Errors
/// Returns an error if the process has exited.
pub fn threads(pid: u32) -> std::io::Result<Vec<Thread>> {
    System::current().threads(pid)
}

/// Returns the amount of memory that process `pid` has mapped.
///
/// # Errors
/// Returns an error if the process has exited or access is denied.
pub fn memory(pid: u32) -> std::io::Result<Memory> {
    System::current().memory(pid)
}

/// Returns the file system as process `pid` sees it.
///
/// # Errors
/// Returns an error if the process has exited or access is denied.
pub fn file_view(pid: u32) -> std::io::Result<FileView> {
    System::current().file_view(pid)
}

/// Returns the start time of process `pid`, which is the key in the name of its socket.
pub fn start_time(pid: u32) -> Option<u64> {
    System::current().start_time(pid)
}

/// Whether the process with this id and start time is still running.
pub fn is_running(pid: u32, start_time: u64) -> bool {
    System::current().is_running(pid, start_time)
}
