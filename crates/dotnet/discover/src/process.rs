//! Descriptions of processes with a managed runtime, and of their threads. Equal on all systems.

use std::path::PathBuf;
use std::time::Duration;

use runtap_transport::{Endpoint, Socket, SocketState, naming};

use crate::Java;

/// What [`processes`](crate::processes) lists.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Options {
    /// Whether to include processes of other users that can't be reached. By default only own processes are listed, and those of all
    /// users for root.
    pub all_users: bool,
    /// Whether to list JVM processes. On by default.
    pub jvm: bool,
    /// Whether to search other mount and PID namespaces (containers). On by default.
    pub namespaces: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self { all_users: false, jvm: true, namespaces: true }
    }
}

impl Options {
    /// Sets whether to include processes of other users that can't be reached.
    #[must_use]
    pub fn all_users(mut self, yes: bool) -> Self {
        self.all_users = yes;
        self
    }
}

/// The runtime in a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum ProcessKind {
    /// A .NET runtime with a diagnostics server (`CoreCLR`, Mono or `NativeAOT`).
    Dotnet,
    /// A Java virtual machine.
    Jvm,
}

impl ProcessKind {
    /// Returns `dotnet` or `jvm`.
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
    /// The process id in this process's PID namespace.
    pub pid: u32,
    /// The process id in its own PID namespace, which its runtime reports.
    pub ns_pid: u32,
    /// The runtime in the process.
    pub kind: ProcessKind,
    /// The start time in clock ticks since boot (field 22 of `/proc/PID/stat`).
    pub start_time: u64,
    /// The real user id.
    pub uid: u32,
    /// The name of that user according to `/etc/passwd`, or the number if the user has no name.
    pub user: String,
    /// The kernel's short name (at most 15 bytes).
    pub comm: String,
    /// The path of the executable, as seen by the process. `None` if not readable.
    pub exe: Option<PathBuf>,
    /// The arguments, program first. Empty if not readable.
    pub command_line: Vec<String>,
    /// The description of a Java virtual machine. `None` for other processes.
    pub java: Option<Java>,
    /// The sockets of the process, best match first: those that match its start time, newer before older. Empty for a JVM.
    pub sockets: Vec<Socket>,
    /// Whether its mount namespace differs from this process's. `file_view` translates its paths.
    pub other_mount_namespace: bool,
    /// Whether its PID namespace differs from this process's.
    pub other_pid_namespace: bool,
    /// The id of the container according to the control group, if there is one of 64 hexadecimal digits.
    pub container: Option<String>,
}

impl Process {
    /// Returns the endpoint of its diagnostics server, which only this process may be listening on.
    pub fn endpoint(&self) -> Option<Endpoint> {
        if cfg!(windows) {
            return (self.kind == ProcessKind::Dotnet)
                .then(|| Endpoint::pipe(naming::windows_pipe(self.pid)));
        }
        Endpoint::of_process(self.pid, self.start_time, &self.sockets)
    }

    /// Returns the sockets with its process id that cannot be its own.
    pub fn stale_sockets(&self) -> impl Iterator<Item = &Socket> {
        self.sockets.iter().filter(|socket| socket.state == SocketState::Stale)
    }
}

/// What a process uses of its machine, and its parent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Usage {
    /// The process id of the parent. `None` if the parent is outside of this process's PID namespace.
    pub parent_pid: Option<u32>,
    /// The time since the start.
    pub uptime: Duration,
    /// The processor time of all threads, in user and kernel mode.
    pub cpu_time: Duration,
    /// The resident set size: the memory that is not swapped out, with shared pages.
    pub rss_bytes: u64,
}

impl Usage {
    /// Returns the average use of processors since the start: 100 is one processor. `None` if the process has just started.
    pub fn cpu_percent(&self) -> Option<f64> {
        (!self.uptime.is_zero()).then(|| 100.0 * self.cpu_time.as_secs_f64() / self.uptime.as_secs_f64())
    }
}

/// The progress of a runtime's startup.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Startup {
    /// Unknown.
    #[default]
    Unknown,
    /// The runtime is loaded but does not run the program yet: it is starting, or suspended.
    Waiting,
    /// The runtime runs the program.
    Done,
}

/// A thread of a process.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Thread {
    /// The thread id in this process's PID namespace.
    pub tid: u32,
    /// The thread id in the process's own PID namespace, which its runtime writes into events.
    pub ns_tid: u32,
    /// The kernel's short name (at most 15 bytes).
    pub name: String,
}
