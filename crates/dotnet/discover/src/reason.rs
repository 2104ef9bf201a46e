//! Reasons why a process can't be reached, as text and as codes. How to fix them is in `fix.rs`; each system derives them from the
//! facts it gathers.

use std::fmt;
use std::path::PathBuf;

use runtap_transport::naming::LONGEST_SOCKET_PATH;
use thiserror::Error;

/// A code for a problem of a process or of the machine. The names are stable: they are in `runtap.doctor/1`, and in the `reason` of
/// `runtap.ps/1`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum ReasonCode {
    /// The process does not exist or has exited.
    NoSuchProcess,
    /// The process has neither a .NET runtime nor a Java virtual machine.
    NotDotnet,
    /// The runtime is too old to have a diagnostics server.
    TooOld,
    /// The runtime has no diagnostics server, or it is disabled.
    DiagnosticsDisabled,
    /// The process belongs to another user.
    OtherUser,
    /// The process runs in other namespaces.
    OtherNamespace,
    /// The process has another temporary directory, or an unusable one.
    OtherTmpdir,
    /// A socket without a listener, or a server without its socket.
    StaleSocket,
    /// Another process listens on the socket with its name.
    ForeignSocket,
    /// The process is suspended at startup.
    Suspended,
    /// The diagnostic ports in its environment do not have the intended effect.
    DiagnosticPorts,
    /// The process does not answer, because another client blocks it or for another reason.
    Busy,
    /// The process can't write dumps because the helper program is missing or not executable.
    NoCreatedump,
    /// The process can't write dumps because the kernel forbids the helper program to trace it.
    PtraceScope,
    /// The temporary directory of the process, or of this process, is not writable.
    TmpReadOnly,
    /// The temporary directory has too many entries to check all of them.
    TmpCrowded,
    /// A security module denies access, or a capability is missing.
    Lsm,
    /// The Java virtual machine was started with attaching disabled.
    AttachDisabled,
    /// The Java virtual machine does not load agents while it runs.
    AgentsDisabled,
    /// The Java virtual machine does not handle the signal that makes it listen.
    SignalNotHandled,
    /// The Java virtual machine is `OpenJ9`, which has another attach protocol.
    OpenJ9,
    /// The process runs on musl, for which the agent is not built.
    Musl,
    /// The Java program can't connect to a collector on this machine: it has another network namespace.
    OtherNetwork,
    /// The Java virtual machine publishes no performance counters, which other tools need to find it.
    NoPerfData,
    /// The Java virtual machine interprets all code.
    Interpreted,
    /// The agent is loaded already.
    AgentLoaded,
}

impl ReasonCode {
    /// Returns the name in JSON and text.
    pub fn name(self) -> &'static str {
        match self {
            Self::NoSuchProcess => "no-such-process",
            Self::NotDotnet => "not-dotnet",
            Self::TooOld => "too-old",
            Self::DiagnosticsDisabled => "diagnostics-disabled",
            Self::OtherUser => "other-user",
            Self::OtherNamespace => "other-namespace",
            Self::OtherTmpdir => "other-tmpdir",
            Self::StaleSocket => "stale-socket",
            Self::ForeignSocket => "foreign-socket",
            Self::Suspended => "suspended",
            Self::DiagnosticPorts => "diagnostic-ports",
            Self::Busy => "busy",
            Self::NoCreatedump => "no-createdump",
            Self::PtraceScope => "ptrace-scope",
            Self::TmpReadOnly => "tmp-read-only",
            Self::TmpCrowded => "tmp-crowded",
            Self::Lsm => "lsm",
            Self::AttachDisabled => "attach-disabled",
            Self::AgentsDisabled => "agents-disabled",
            Self::SignalNotHandled => "signal-not-handled",
            Self::OpenJ9 => "openj9",
            Self::Musl => "musl",
            Self::OtherNetwork => "other-network",
            Self::NoPerfData => "no-perf-data",
            Self::Interpreted => "interpreted",
            Self::AgentLoaded => "agent-loaded",
        }
    }
}

impl fmt::Display for ReasonCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// An error that occurs if a process can't be reached.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("process {pid} {reason}")]
#[non_exhaustive]
pub struct NotFound {
    /// The process id.
    pub pid: u32,
    /// Why it can't be reached.
    pub reason: Reason,
    /// What was checked, one line per step, in order.
    pub looked_at: Vec<String>,
}

/// Why a process can't be reached. Its text is the predicate of a sentence whose subject is the process.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum Reason {
    /// The process does not exist.
    #[error("does not exist")]
    NoSuchProcess,
    /// The id is that of a thread of another process.
    #[error("is a thread of process {tgid}")]
    Thread {
        /// The id of the process that the thread belongs to.
        tgid: u32,
    },
    /// The process has exited, and its parent has not collected the exit code.
    #[error("has exited; its parent has not collected its exit code yet")]
    Ended,
    /// No runtime is loaded and there is no socket.
    #[error("has loaded neither a .NET runtime nor a Java virtual machine")]
    NotDotnet,
    /// The process is a Java program.
    #[error("runs a Java virtual machine, not .NET")]
    Jvm {
        /// The process id.
        pid: u32,
    },
    /// The runtime is too old to have a diagnostics server.
    #[error("runs on {runtime}, which is too old to have a diagnostics server")]
    TooOld {
        /// The runtime and its version.
        runtime: String,
    },
    /// The diagnostics server is disabled by a variable.
    #[error("runs with {variable}={value}, which disables its diagnostics server")]
    DiagnosticsDisabled {
        /// The environment variable.
        variable: String,
        /// Its value.
        value: String,
    },
    /// The process has a runtime without a diagnostics server for an unknown reason.
    #[error("has a .NET runtime without a diagnostics server{}", if *aot {
        ": it was compiled ahead of time without one"
    } else {
        ": it was disabled by its host, or was not built in"
    })]
    NoServer {
        /// Whether it is `NativeAOT`.
        aot: bool,
    },
    /// The process belongs to another user, and this process is not root.
    #[error("belongs to user {user} (uid {uid}); only that user and root can reach it")]
    OtherUser {
        /// The user id.
        uid: u32,
        /// The name of the user, or the number if the user has no name.
        user: String,
    },
    /// The process belongs to another user, and `/proc` hides it.
    #[error("belongs to another user, and /proc shows only your own processes (hidepid)")]
    Concealed,
    /// The process runs in another namespace, and access is denied.
    #[error("runs in another {} namespace; inspecting it requires root (CAP_SYS_PTRACE)", namespaces.join(" and "))]
    OtherNamespace {
        /// The kinds of namespaces: `mount`, `pid`.
        namespaces: Vec<&'static str>,
    },
    /// The kernel denies access even though the process belongs to the current user or this process is root.
    #[error("can't be inspected even though you own it or are root: {}", denial(label.as_deref(), *capable))]
    Denied {
        /// The label that a security module has assigned to it.
        label: Option<String>,
        /// Whether this process has the capability to inspect others (`CAP_SYS_PTRACE`).
        capable: bool,
    },
    /// Its temporary directory does not exist, so its runtime created no socket.
    #[error("uses the temporary directory {}, which does not exist", directory.display())]
    NoTmpdir {
        /// The directory, as seen by the process.
        directory: PathBuf,
        /// Whether the process sees other files than this process.
        elsewhere: bool,
    },
    /// Its temporary directory is not writable, so its runtime created no socket.
    #[error("uses the temporary directory {}, {}", directory.display(), if *mounted {
        "which is mounted read-only"
    } else {
        "where it is not permitted to write"
    })]
    TmpReadOnly {
        /// The directory, as seen by the process.
        directory: PathBuf,
        /// Whether the file system is mounted read-only; otherwise the directory's mode denies access.
        mounted: bool,
    },
    /// The path of its temporary directory is too long for the name of a socket, so its runtime created no usable socket there.
    #[error(
        "uses the temporary directory {}, whose path of {} bytes leaves no room for the name of a socket: a socket's path \
         has at most {LONGEST_SOCKET_PATH} bytes",
        directory.display(), directory.as_os_str().len()
    )]
    LongTmpdir {
        /// The directory, as in the environment.
        directory: PathBuf,
        /// The maximum length in bytes of a directory for a socket with a complete name.
        longest: usize,
    },
    /// All sockets with its process id were left by earlier processes.
    #[error("has only stale sockets, left behind by earlier processes with its PID: {}", display(sockets))]
    StaleSocket {
        /// The paths of the sockets.
        sockets: Vec<PathBuf>,
    },
    /// The server listens, but the file of its socket is deleted.
    #[error("is listening, but its socket was deleted: {}", display(sockets))]
    SocketDeleted {
        /// The paths of the sockets.
        sockets: Vec<PathBuf>,
    },
    /// Its temporary directory has too many entries; its socket may be among those that were not checked.
    #[error("has no known socket: {} has too many entries to check all of them", directory.display())]
    Crowded {
        /// The directory, as seen from here.
        directory: PathBuf,
    },
    /// The runtime is not ready yet.
    #[error("is still starting: its diagnostics server is not ready yet")]
    Starting,
}

impl Reason {
    /// Returns the code of this reason.
    pub fn code(&self) -> ReasonCode {
        match self {
            Self::NoSuchProcess | Self::Thread { .. } | Self::Ended => ReasonCode::NoSuchProcess,
            Self::NotDotnet | Self::Jvm { .. } => ReasonCode::NotDotnet,
            Self::TooOld { .. } => ReasonCode::TooOld,
            Self::DiagnosticsDisabled { .. } | Self::NoServer { .. } => ReasonCode::DiagnosticsDisabled,
            Self::OtherUser { .. } | Self::Concealed => ReasonCode::OtherUser,
            Self::OtherNamespace { .. } => ReasonCode::OtherNamespace,
            Self::Denied { .. } => ReasonCode::Lsm,
            Self::NoTmpdir { .. } | Self::LongTmpdir { .. } => ReasonCode::OtherTmpdir,
            Self::TmpReadOnly { .. } => ReasonCode::TmpReadOnly,
            Self::StaleSocket { .. } | Self::SocketDeleted { .. } => ReasonCode::StaleSocket,
            Self::Crowded { .. } => ReasonCode::TmpCrowded,
            Self::Starting => ReasonCode::Busy,
        }
    }
}

fn denial(label: Option<&str>, capable: bool) -> String {
    match (label, capable) {
        (Some(label), true) => format!("a security module denies access (the process is labeled {label})"),
        (None, true) => {
            "a security module denies access, or it is in another user namespace (runtap has CAP_SYS_PTRACE)"
                .to_owned()
        }
        (Some(label), false) => {
            format!(
                "runtap lacks CAP_SYS_PTRACE, or a security module denies access (the process is labeled {label})"
            )
        }
        (None, false) => "runtap lacks CAP_SYS_PTRACE, or a security module denies access".to_owned(),
    }
}

fn display(paths: &[PathBuf]) -> String {
    let names: Vec<_> = paths.iter().take(3).map(|path| path.display().to_string()).collect();
    let more = paths.len().saturating_sub(names.len());
    if more == 0 { names.join(", ") } else { format!("{} and {more} more", names.join(", ")) }
}
