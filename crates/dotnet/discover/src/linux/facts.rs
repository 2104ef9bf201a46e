//! Everything that can be seen of one process from outside and that bears on whether it can be reached: gathered
//! once, then judged by pure functions ([`Reason::all`](crate::Reason::all), and the doctor of the layer above).
//! Refuses to judge, and to connect to anything.

use std::fmt;
use std::path::PathBuf;

use runtap_transport::Socket;
use runtap_transport::linux::Capabilities;

use super::environment::Environment;
use super::runtime::Runtime;
use super::security::Policy;
use crate::Startup;

/// What was seen of a process.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
pub struct Facts {
    /// Process id in our pid namespace.
    pub pid: u32,
    /// Process id in its own pid namespace.
    pub ns_pid: u32,
    /// Whether it lives. If it does not, everything else is empty.
    pub state: ProcessState,
    /// The kernel's short name (at most 15 bytes).
    pub comm: String,
    /// The arguments, program first. Empty where we may not look.
    pub command_line: Vec<String>,
    /// The executable, as the process sees it.
    pub exe: Option<PathBuf>,
    /// Start, in clock ticks since boot.
    pub start_time: u64,
    /// How long it has lived, in clock ticks; `None` where the kernel does not tell.
    pub age: Option<u64>,
    /// Real user id.
    pub uid: u32,
    /// The name of that user, else the number.
    pub user: String,
    /// The user as whom it opens and makes files (`setfsuid(2)`): another one than `uid` where it was started with the
    /// rights of somebody else.
    pub file_uid: u32,
    /// What the process may do whatever its user.
    pub capabilities: Capabilities,
    /// Whether its mount namespace is another one than ours.
    pub other_mount_namespace: bool,
    /// Whether its pid namespace is another one than ours.
    pub other_pid_namespace: bool,
    /// Whether its paths are other ones than ours: another mount namespace, or another root directory. False where we
    /// may not look.
    pub other_root: bool,
    /// The container's id by its control group.
    pub container: Option<String>,
    /// Whether the kernel keeps us from looking into it: its environment, its memory map, or its files. It may permit
    /// some of them only.
    pub hidden: bool,
    /// The variables that it was started with; `None` where we may not look.
    pub environment: Option<Environment>,
    /// Its runtime.
    pub runtime: Runtime,
    /// How far the runtime has come.
    pub startup: Startup,
    /// Whether the thread of a diagnostics server is there; `None` where that is not known.
    pub serves: Option<bool>,
    /// Sockets that bear its pid, the best first.
    pub sockets: Vec<Socket>,
    /// Those of them on which somebody listens, but whose file is gone.
    pub deleted: Vec<PathBuf>,
    /// Whether its own socket may be among names in its temporary directory that were not looked at: there are too many, and
    /// its own name is not known.
    pub crowded: bool,
    /// The directory where its runtime puts its socket; `None` where we may not look.
    pub temp: Option<TempDir>,
    /// The helper that writes its dumps.
    pub createdump: Createdump,
    /// A label that a security module has put on it.
    pub label: Option<String>,
    /// The machine's security settings.
    pub policy: Policy,
    /// Who looks.
    pub viewer: Viewer,
}

/// Processes that look like .NET.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct Survey {
    /// What was seen of them, by pid.
    pub processes: Vec<Facts>,
    /// How many there are besides of which it is not known: they, or others of their user, have mapped more than is read.
    pub not_looked_at: usize,
}

/// Whether a process lives.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum ProcessState {
    /// There is no such process.
    #[default]
    Gone,
    /// It is there, and `/proc` does not show it to us.
    Hidden,
    /// The id is that of a thread.
    Thread {
        /// The process that it belongs to.
        tgid: u32,
    },
    /// It has ended, and its parent has not asked for its exit code.
    Ended,
    /// It was stopped by a signal.
    Stopped,
    /// A debugger holds it.
    Traced {
        /// The debugger's process id.
        by: u32,
    },
    /// It lives.
    Running,
}

/// Who looks at a process.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Viewer {
    /// Effective user.
    pub uid: u32,
    /// What we may do whatever our user.
    pub capabilities: Capabilities,
    /// Our own temporary directory.
    pub temp: PathBuf,
}

/// The temporary directory of a process.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct TempDir {
    /// As the process sees it.
    pub path: PathBuf,
    /// What it is called from here.
    pub host: PathBuf,
    /// Whether a socket can be made there.
    pub state: TempState,
}

impl TempDir {
    /// A directory by both its paths.
    pub fn new(path: impl Into<PathBuf>, host: impl Into<PathBuf>, state: TempState) -> Self {
        Self { path: path.into(), host: host.into(), state }
    }
}

/// Whether a socket can be made in a directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum TempState {
    /// Nothing speaks against it.
    Fine,
    /// It does not exist, or is no directory.
    Missing,
    /// Its file system is mounted read-only.
    ReadOnly,
    /// Its mode does not let the process write there.
    NotWritable,
    /// We can't tell.
    Unknown,
}

/// The program that a runtime starts to write a dump of itself.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Createdump {
    /// Not known: we may not look, or it may be inside a single-file program.
    #[default]
    Unknown,
    /// There, and executable for the process. Paths are the process's.
    Ready(PathBuf),
    /// Not where the runtime looks for it.
    Missing(PathBuf),
    /// There, but the process can't execute it.
    NotExecutable(PathBuf),
    /// The runtime can't write dumps at all (`NativeAOT`).
    Unsupported,
}

impl fmt::Display for ProcessState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Gone => f.write_str("not there"),
            Self::Hidden => f.write_str("hidden by /proc"),
            Self::Thread { tgid } => write!(f, "a thread of {tgid}"),
            Self::Ended => f.write_str("has ended"),
            Self::Stopped => f.write_str("stopped by a signal"),
            Self::Traced { by } => write!(f, "held by a debugger, process {by}"),
            Self::Running => f.write_str("runs"),
        }
    }
}

impl fmt::Display for TempState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Fine => "no obstacle to a socket",
            Self::Missing => "is missing",
            Self::ReadOnly => "on a read-only file system",
            Self::NotWritable => "it may not write there",
            Self::Unknown => "whether it may write there is unknown",
        })
    }
}

impl Facts {
    /// The sockets that may be the process's own, and whose file is there.
    pub fn usable_sockets(&self) -> impl Iterator<Item = &Socket> {
        let usable = |socket: &&Socket| socket.may_be_its_own() && !self.deleted.contains(&socket.path);
        self.sockets.iter().filter(usable)
    }

    /// Where its diagnostics server is to be dialled: who listens there has to be this process.
    pub fn endpoint(&self) -> Option<runtap_transport::Endpoint> {
        runtap_transport::Endpoint::of_process(self.pid, self.start_time, self.usable_sockets())
    }

    /// What was looked at and found, one step a line.
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
            None => "its environment: it may not be read".to_owned(),
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
            steps
                .push("its temporary directory: not all names were looked at, there are too many".to_owned());
        }
        for socket in &self.sockets {
            let deleted = if self.deleted.contains(&socket.path) { ", deleted" } else { "" };
            steps.push(format!("{}: {}{deleted}", socket.path.display(), socket.state));
        }
        steps
    }

    /// Whether it looks like a .NET program, reachable or not.
    pub fn is_dotnet(&self) -> bool {
        self.runtime.is_dotnet() || self.usable_sockets().next().is_some() || !self.deleted.is_empty()
    }
}
