//! Which managed programs run here, where their sockets are, and what stands in the way if one can't be reached.
//!
//! Owns the reading of `/proc` and of the temporary directories. It never connects: whether a server answers is
//! the client's to find out. Source: "Naming and Location Conventions" of the specification.
//!
//! Linux has all of it. On macOS and Windows processes are found and dialled, without the reasons and the files of the
//! doctor; that code was never run there. The names of their sockets and pipes are in [`naming`].

pub mod naming;

#[cfg(target_os = "linux")]
mod candidate;
#[cfg(target_os = "linux")]
mod clients;
// What is for other systems is compiled into the tests on Linux, where it is of no other use.
#[cfg(any(not(target_os = "linux"), test))]
#[allow(unreachable_pub, reason = "exported where it is of use")]
mod elsewhere;
#[cfg(target_os = "linux")]
mod environment;
#[cfg(target_os = "linux")]
mod facts;
/// For the fuzz targets.
#[cfg(all(target_os = "linux", fuzzing))]
#[doc(hidden)]
pub mod fuzzing;
#[cfg(target_os = "linux")]
mod gather;
#[cfg(target_os = "linux")]
mod holders;
#[cfg(unix)]
mod jvm;
#[cfg(target_os = "linux")]
mod key;
#[cfg(target_os = "linux")]
pub(crate) mod linux;
#[cfg(target_os = "linux")]
mod listings;
#[cfg(target_os = "linux")]
pub(crate) mod location;
#[cfg(target_os = "linux")]
mod machine;
#[cfg(all(unix, any(not(target_os = "linux"), test)))]
mod macos;
#[cfg(target_os = "linux")]
mod memory;
#[cfg(target_os = "linux")]
mod mounts;
#[cfg(target_os = "linux")]
mod own;
#[cfg(all(unix, any(not(target_os = "linux"), test)))]
mod process_list;
#[cfg(unix)]
mod rank;
mod reason;
#[cfg(target_os = "linux")]
mod runtime;
#[cfg(target_os = "linux")]
mod search;
#[cfg(target_os = "linux")]
mod security;
#[cfg(target_os = "linux")]
mod shares;
#[cfg(target_os = "linux")]
mod sockets;
#[cfg(target_os = "linux")]
mod survey;
#[cfg(target_os = "linux")]
mod system;
#[cfg(target_os = "linux")]
mod tree;
#[cfg(target_os = "linux")]
mod unix_diag;
#[cfg(target_os = "linux")]
mod view;
#[cfg(target_os = "linux")]
mod ways;
#[cfg(any(windows, test))]
mod windows;

use std::fmt;
use std::path::PathBuf;

#[cfg(target_os = "linux")]
pub use clients::{Clients, Connection, Holder, Wait};
#[cfg(target_os = "linux")]
pub use environment::Environment;
#[cfg(target_os = "linux")]
pub use facts::{Createdump, Facts, Life, Survey, TempDir, TempState, Viewer};
#[cfg(target_os = "linux")]
pub use holders::Holders;
#[cfg(target_os = "linux")]
pub use machine::Machine;
#[cfg(target_os = "linux")]
pub use memory::Memory;
#[cfg(target_os = "linux")]
pub use own::ProcTrouble;
pub use reason::{Code, NotFound, Reason, in_its_files};
#[cfg(target_os = "linux")]
pub use runtime::{Runtime, Startup};
#[cfg(target_os = "linux")]
pub use security::{CAP_SYS_PTRACE, Capabilities, Policy};
#[cfg(target_os = "linux")]
pub use system::System;
#[cfg(target_os = "linux")]
pub use view::FileView;

use crate::Endpoint;
use naming::SocketName;

/// What [`processes`] shall list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Options {
    /// Also processes of other users that we may not reach. Off: our own ones, and everybody's for root.
    pub all_users: bool,
    /// List JVM processes too. On by default.
    pub jvm: bool,
    /// Look into other mount and pid namespaces (containers). On by default.
    pub namespaces: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self { all_users: false, jvm: true, namespaces: true }
    }
}

impl Options {
    /// Also processes of other users that we may not reach.
    #[must_use]
    pub fn all_users(mut self, yes: bool) -> Self {
        self.all_users = yes;
        self
    }
}

/// What runs in a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Kind {
    /// A .NET runtime with a diagnostics server (`CoreCLR`, Mono or `NativeAOT`).
    Dotnet,
    /// A Java virtual machine.
    Jvm,
}

impl Kind {
    /// `dotnet` or `jvm`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Dotnet => "dotnet",
            Self::Jvm => "jvm",
        }
    }
}

/// A process with a managed runtime.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Process {
    /// Process id in our pid namespace.
    pub pid: u32,
    /// Process id in its own pid namespace: what its runtime calls itself.
    pub ns_pid: u32,
    /// What runs in it.
    pub kind: Kind,
    /// Start, in clock ticks since boot (field 22 of `/proc/PID/stat`).
    pub start_time: u64,
    /// Real user id.
    pub uid: u32,
    /// Name of that user by `/etc/passwd`, else the number.
    pub user: String,
    /// The kernel's short name (at most 15 bytes).
    pub comm: String,
    /// The executable, as the process sees it; `None` where we may not look.
    pub exe: Option<PathBuf>,
    /// The arguments, program first. Empty where we may not look.
    pub command_line: Vec<String>,
    /// Its sockets, the best first: those that fit its start time, then newer before older. Empty for a JVM.
    pub sockets: Vec<Socket>,
    /// Whether its mount namespace is another one than ours: [`file_view`] translates its paths.
    pub other_mount_namespace: bool,
    /// Whether its pid namespace is another one than ours.
    pub other_pid_namespace: bool,
    /// The container's id by its control group, if there is one that looks like it (64 hexadecimal digits).
    pub container: Option<String>,
}

impl Process {
    /// Where its diagnostics server is to be dialled: who listens there has to be this process.
    pub fn endpoint(&self) -> Option<Endpoint> {
        if cfg!(windows) {
            return Some(Endpoint::pipe(naming::windows_pipe(self.pid)));
        }
        Endpoint::of_process(self.pid, self.start_time, &self.sockets)
    }

    /// Sockets that bear its pid and cannot be its own.
    pub fn stale_sockets(&self) -> impl Iterator<Item = &Socket> {
        self.sockets.iter().filter(|socket| socket.state == SocketState::Stale)
    }
}

/// A diagnostics socket in the file system.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Socket {
    /// What it is called from here. Below another process's root only [`Process::endpoint`] dials it.
    pub path: PathBuf,
    /// What its file name says.
    pub name: SocketName,
    /// Whether it can belong to the process.
    pub state: SocketState,
    #[cfg(target_os = "linux")]
    pub(crate) at: location::Location,
}

impl Socket {
    /// A socket at a path of ours.
    pub fn new(path: impl Into<PathBuf>, name: SocketName, state: SocketState) -> Self {
        let path = path.into();
        Self {
            #[cfg(target_os = "linux")]
            at: location::Location::Ours(path.clone()),
            path,
            name,
            state,
        }
    }

    /// Is dialled where the other one lies, and keeps its name.
    #[cfg(unix)]
    fn lies_where(&mut self, other: Self) {
        #[cfg(target_os = "linux")]
        {
            self.at = other.at;
        }
        #[cfg(not(target_os = "linux"))]
        {
            self.path = other.path;
        }
    }

    /// Whether it is worth dialling for the process whose id is in its name.
    pub fn may_be_its_own(&self) -> bool {
        matches!(self.state, SocketState::Matching | SocketState::Unknown)
    }
}

/// Whether a socket can belong to the process whose id is in its name. What is dialled first comes first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum SocketState {
    /// Its key is the process's start time.
    Matching,
    /// Its key can't be compared: a process of another time namespace.
    Unknown,
    /// That of a router, which stands for a runtime elsewhere. It says nothing of the process itself, and is dialled only
    /// by those who name its path.
    Router,
    /// Its key is another one: left behind by an earlier process of the same id.
    Stale,
}

impl fmt::Display for SocketState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Matching => "its own, by the time in its name",
            Self::Unknown => "perhaps its own: the time in its name can't be compared",
            Self::Router => "a router's",
            Self::Stale => "stale: left behind by an earlier process",
        })
    }
}

/// A thread of a process.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Thread {
    /// The kernel's thread id, in our pid namespace.
    pub tid: u32,
    /// The thread id in the process's own pid namespace: what its runtime writes into events.
    pub ns_tid: u32,
    /// The kernel's short name (at most 15 bytes).
    pub name: String,
}

/// The managed processes that can be seen from here, by pid. Unreadable parts are passed over.
#[cfg(target_os = "linux")]
pub fn processes(options: Options) -> Vec<Process> {
    System::current().processes(options)
}

/// The .NET process `pid`, or what stands in the way.
///
/// # Errors
/// See [`Reason`].
#[cfg(target_os = "linux")]
pub fn process(pid: u32) -> Result<Process, NotFound> {
    System::current().process(pid)
}

/// Everything about process `pid` that bears on whether it can be reached.
#[cfg(target_os = "linux")]
pub fn facts(pid: u32) -> Facts {
    System::current().facts(pid)
}

/// What process `pid` was told of diagnostics when it was started, and its real user: nothing else is looked at.
///
/// # Errors
/// When the process is gone, or we may not look into it.
#[cfg(target_os = "linux")]
pub fn environment(pid: u32) -> std::io::Result<(Environment, u32)> {
    System::current().environment(pid)
}

/// Our own temporary directory: where the sockets of programs with our environment lie.
pub fn temp_dir() -> PathBuf {
    naming::temp_dir(std::env::var_os("TMPDIR").as_deref())
}

/// How far the runtime of process `pid` has come.
#[cfg(target_os = "linux")]
pub fn startup(pid: u32) -> Startup {
    System::current().startup(pid)
}

/// The threads of process `pid`, by id.
///
/// # Errors
/// When the process is gone.
#[cfg(target_os = "linux")]
pub fn threads(pid: u32) -> std::io::Result<Vec<Thread>> {
    System::current().threads(pid)
}

/// How much memory process `pid` has mapped.
///
/// # Errors
/// When the process is gone, or we may not look into it.
#[cfg(target_os = "linux")]
pub fn memory(pid: u32) -> std::io::Result<Memory> {
    System::current().memory(pid)
}

/// The file system as process `pid` sees it.
///
/// # Errors
/// When the process is gone, or we may not look into it.
#[cfg(target_os = "linux")]
pub fn file_view(pid: u32) -> std::io::Result<FileView> {
    System::current().file_view(pid)
}

/// The start time of process `pid`: the key in the name of its socket.
#[cfg(target_os = "linux")]
pub fn start_time(pid: u32) -> Option<u64> {
    System::current().start_time(pid)
}

/// Whether the process that had the id `pid` and this start time is still running.
#[cfg(target_os = "linux")]
pub fn is_running(pid: u32, start_time: u64) -> bool {
    System::current().is_running(pid, start_time)
}

#[cfg(not(target_os = "linux"))]
pub use elsewhere::{is_running, process, processes, start_time, threads};
