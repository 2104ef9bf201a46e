//! The facts about a process that determine whether it can be reached. The facts are gathered once and then judged by pure functions
//! ([`Reason::all`](crate::Reason::all), and the doctor in `runtap-target`). Nothing here connects to the process.

use std::fmt;
use std::path::PathBuf;

use runtap_transport::Socket;
use runtap_transport::linux::Capabilities;

use super::environment::Environment;
use super::runtime::Runtime;
use super::security::Policy;
use crate::{Java, Startup};

/// The facts about a process.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
pub struct Facts {
    /// The process id in this process's PID namespace.
    pub pid: u32,
    /// The process id in the process's own PID namespace.
    pub ns_pid: u32,
    /// The state of the process. All other fields are empty if it does not exist.
    pub state: ProcessState,
    /// The kernel's short name (at most 15 bytes).
    pub comm: String,
    /// The arguments, program first. Empty if not readable.
    pub command_line: Vec<String>,
    /// The path of the executable, as seen by the process.
    pub exe: Option<PathBuf>,
    /// The start time in clock ticks since boot.
    pub start_time: u64,
    /// The age in clock ticks. `None` if unknown.
    pub age: Option<u64>,
    /// The real user id.
    pub uid: u32,
    /// The name of that user, or the number if the user has no name.
    pub user: String,
    /// The user id with which it opens and creates files (`setfsuid(2)`). Differs from `uid` if the program was started with another
    /// user's rights.
    pub file_uid: u32,
    /// The capabilities of the process.
    pub capabilities: Capabilities,
    /// Whether its mount namespace differs from this process's.
    pub other_mount_namespace: bool,
    /// Whether its PID namespace differs from this process's.
    pub other_pid_namespace: bool,
    /// Whether its paths differ from this process's, because of another mount namespace or root directory. False if unknown.
    pub other_root: bool,
    /// The id of the container, according to the control group.
    pub container: Option<String>,
    /// Whether the kernel denies access to its environment, its memory map or its files. Access to some of them may be permitted.
    pub hidden: bool,
    /// The diagnostics settings in its environment. `None` if not readable.
    pub environment: Option<Environment>,
    /// The runtime of the process.
    pub runtime: Runtime,
    /// The description of a Java virtual machine. `None` for other processes.
    pub java: Option<Java>,
    /// The progress of the runtime's startup.
    pub startup: Startup,
    /// Whether the thread of a diagnostics server exists. `None` if unknown.
    pub serves: Option<bool>,
    /// The sockets with the process id in their names, best match first.
    pub sockets: Vec<Socket>,
    /// The paths of those sockets that are listened on but whose files are deleted.
    pub deleted: Vec<PathBuf>,
    /// Whether its own socket may be among entries of its temporary directory that were not checked, because there are too many and
    /// the socket's name is unknown.
    pub crowded: bool,
    /// The directory in which its runtime creates the socket: TMPDIR, and for a Java virtual machine always `/tmp`. `None` if unknown.
    pub temp: Option<TempDir>,
    /// The helper program that writes its dumps.
    pub createdump: Createdump,
    /// The label that a security module has assigned to it.
    pub label: Option<String>,
    /// The security settings of the machine.
    pub policy: Policy,
    /// The process that gathered the facts.
    pub viewer: Viewer,
}

/// The processes that look like .NET or Java.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct Survey {
    /// The facts about the processes, ordered by process id.
    pub processes: Vec<Facts>,
    /// The number of processes that could not be classified: the budget for reading memory maps was used up.
    pub not_looked_at: usize,
}

/// The state of a process.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum ProcessState {
    /// The process does not exist.
    #[default]
    Gone,
    /// The process exists, but `/proc` hides it.
    Hidden,
    /// The id is that of a thread.
    Thread {
        /// The id of the process that the thread belongs to.
        tgid: u32,
    },
    /// The process has exited, and its parent has not collected the exit code.
    Ended,
    /// The process was stopped by a signal.
    Stopped,
    /// The process was stopped by a debugger.
    Traced {
        /// The process id of the debugger.
        by: u32,
    },
    /// The process is running.
    Running,
}

/// The process that gathers facts about others: this process.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Viewer {
    /// The effective user id.
    pub uid: u32,
    /// The capabilities of this process.
    pub capabilities: Capabilities,
    /// The temporary directory of this process.
    pub temp: PathBuf,
}

/// The temporary directory of a process.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct TempDir {
    /// The path as seen by the process.
    pub path: PathBuf,
    /// The path as seen from here.
    pub host: PathBuf,
    /// Whether a socket can be created there.
    pub state: TempState,
}

impl TempDir {
    /// Creates a directory from both its paths.
    pub fn new(path: impl Into<PathBuf>, host: impl Into<PathBuf>, state: TempState) -> Self {
        Self { path: path.into(), host: host.into(), state }
    }
}

/// Whether a socket can be created in a directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum TempState {
    /// No obstacle was found.
    Fine,
    /// The path does not exist or is not a directory.
    Missing,
    /// Its file system is mounted read-only.
    ReadOnly,
    /// The mode of the directory denies write access.
    NotWritable,
    /// Unknown.
    Unknown,
}

/// The helper program with which a runtime writes a dump of itself.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Createdump {
    /// Unknown: not accessible, or possibly inside a single-file program.
    #[default]
    Unknown,
    /// The program exists and is executable for the process. The path is as seen by the process.
    Ready(PathBuf),
    /// The program does not exist where the runtime looks for it.
    Missing(PathBuf),
    /// The program exists, but the process is not permitted to execute it.
    NotExecutable(PathBuf),
    /// The runtime can't write dumps at all (`NativeAOT`).
    Unsupported,
}

impl fmt::Display for ProcessState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Gone => f.write_str("does not exist"),
            Self::Hidden => f.write_str("hidden by /proc"),
            Self::Thread { tgid } => write!(f, "a thread of {tgid}"),
            Self::Ended => f.write_str("has exited"),
            Self::Stopped => f.write_str("stopped by a signal"),
            Self::Traced { by } => write!(f, "stopped by a debugger, process {by}"),
            Self::Running => f.write_str("running"),
        }
    }
}

impl fmt::Display for TempState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Fine => "usable",
            Self::Missing => "is missing",
            Self::ReadOnly => "on a read-only file system",
            Self::NotWritable => "not writable for the process",
            Self::Unknown => "permissions unknown",
        })
    }
}

impl Facts {
    /// Returns the sockets that may be the process's own and whose files exist.
    pub fn usable_sockets(&self) -> impl Iterator<Item = &Socket> {
        let usable = |socket: &&Socket| socket.may_be_its_own() && !self.deleted.contains(&socket.path);
        self.sockets.iter().filter(usable)
    }

    /// Returns the endpoint of its diagnostics server, which only this process may be listening on.
    pub fn endpoint(&self) -> Option<runtap_transport::Endpoint> {
        runtap_transport::Endpoint::of_process(self.pid, self.start_time, self.usable_sockets())
    }

    /// Returns what was checked and found, one line per step.
    pub fn steps(&self) -> Vec<String> {
        let mut steps = vec![match self.state {
            state @ (ProcessState::Gone | ProcessState::Hidden | ProcessState::Thread { .. }) => {
                return vec![format!("process {}: {state}", self.pid)];
            }
            state => format!(
                "process {}: {state}, uid {}, {} in its own pid namespace, started at tick {}",
                self.pid, self.uid, self.ns_pid, self.start_time
            ),
        }];
        steps.push(format!("its memory map: {}", self.runtime));
        steps.push(match &self.environment {
            Some(environment) => format!("its environment: {environment}"),
            None => "its environment: not readable".to_owned(),
        });
        if let Some(temp) = &self.temp {
            steps.push(format!("its temporary directory {}: {}", temp.host.display(), temp.state));
        }
        steps.push(match self.serves {
            Some(true) => "its threads: a diagnostics server is among them".to_owned(),
            Some(false) => "its threads: no diagnostics server is among them".to_owned(),
            None => "its threads: inconclusive".to_owned(),
        });
        steps.push(format!("sockets with its pid: {}", self.sockets.len()));
        if self.crowded {
            steps.push("its temporary directory: too many entries, not all of them were checked".to_owned());
        }
        for socket in &self.sockets {
            let deleted = if self.deleted.contains(&socket.path) { ", deleted" } else { "" };
            steps.push(format!("{}: {}{deleted}", socket.path.display(), socket.state));
        }
        steps
    }

    /// Whether it runs a Java virtual machine, and nothing of .NET was found.
    pub fn is_jvm(&self) -> bool {
        self.runtime == Runtime::Jvm && !self.is_dotnet()
    }

    /// Whether it looks like a .NET program, reachable or not.
    pub fn is_dotnet(&self) -> bool {
        self.runtime.is_dotnet() || self.usable_sockets().next().is_some() || !self.deleted.is_empty()
    }
}
