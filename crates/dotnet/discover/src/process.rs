//! What is listed of a process with a managed runtime, and of its threads. The same on every system.

use std::path::PathBuf;

use runtap_transport::{Endpoint, Socket, SocketState, naming};

use crate::Java;

/// What [`processes`](crate::processes) shall list.
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
    /// What a Java virtual machine says of itself; `None` for other processes.
    pub java: Option<Java>,
    /// Its sockets, the best first: those that fit its start time, then newer before older. Empty for a JVM.
    pub sockets: Vec<Socket>,
    /// Whether its mount namespace is another one than ours: `file_view` translates its paths.
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
            return (self.kind == Kind::Dotnet).then(|| Endpoint::pipe(naming::windows_pipe(self.pid)));
        }
        Endpoint::of_process(self.pid, self.start_time, &self.sockets)
    }

    /// Sockets that bear its pid and cannot be its own.
    pub fn stale_sockets(&self) -> impl Iterator<Item = &Socket> {
        self.sockets.iter().filter(|socket| socket.state == SocketState::Stale)
    }
}

/// How far a runtime has come.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Startup {
    /// Not known.
    #[default]
    Unknown,
    /// It is loaded and runs no program yet: it is starting, or was told to wait.
    Waiting,
    /// It runs its program.
    Done,
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
