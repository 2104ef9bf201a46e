//! Why a process can't be reached, in words and in one word. What to do about it is in `fix.rs`, the judgement of the facts
//! that were gathered is each system's.

use std::fmt;
use std::path::PathBuf;

use runtap_transport::naming::LONGEST_SOCKET_PATH;
use thiserror::Error;

/// What is wrong with a process or with the machine, in one word. The names are a contract: `runtap.doctor/1`, and the
/// `reason` of `runtap.ps/1`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Code {
    /// There is no such process, or it has ended.
    NoSuchProcess,
    /// It has no .NET runtime.
    NotDotnet,
    /// Its runtime is older than diagnostics.
    TooOld,
    /// Its runtime has no diagnostics server, or was told not to start it.
    DiagnosticsDisabled,
    /// It belongs to somebody else.
    OtherUser,
    /// It lives in other namespaces.
    OtherNamespace,
    /// It has another temporary directory than we, or none.
    OtherTmpdir,
    /// A socket without anybody behind it, or a server without its socket.
    StaleSocket,
    /// Another process listens on the socket with its name.
    ForeignSocket,
    /// It waits at its start.
    Suspended,
    /// The ports of its environment do not do what they look like.
    DiagnosticPorts,
    /// It does not answer: it is held up by another client, or otherwise.
    Busy,
    /// It can't write dumps: the helper is not there, or can't be executed.
    NoCreatedump,
    /// It can't write dumps: the kernel forbids the helper to trace it.
    PtraceScope,
    /// Its temporary directory, or ours, can't be written to.
    TmpReadOnly,
    /// There are more names in its temporary directory than are looked at.
    TmpCrowded,
    /// A security module, or a missing capability.
    Lsm,
}

impl Code {
    /// The name in JSON and text.
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
        }
    }
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// A process that can't be reached, and what was looked at to say so.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("process {pid}: {reason}")]
#[non_exhaustive]
pub struct NotFound {
    /// The process id that was asked for.
    pub pid: u32,
    /// What stands in the way.
    pub reason: Reason,
    /// What was looked at, one step a line, in order.
    pub looked_at: Vec<String>,
}

/// What stands in the way. Shown, it is the end of a sentence that begins with the process.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum Reason {
    /// There is no such process.
    #[error("there is no such process")]
    NoSuchProcess,
    /// It is a thread of another process.
    #[error("is a thread of process {tgid}")]
    Thread {
        /// The process it belongs to.
        tgid: u32,
    },
    /// It has ended, and its parent has not noticed.
    #[error("has ended; its parent has not asked for its exit code yet")]
    Ended,
    /// No runtime is loaded and there is no socket.
    #[error("has no .NET runtime loaded")]
    NotDotnet,
    /// It is a Java program.
    #[error("runs a Java virtual machine, not .NET")]
    Jvm {
        /// Its id.
        pid: u32,
    },
    /// Its runtime has no diagnostics server.
    #[error("runs on {runtime}, which is older than the first runtime with a diagnostics server")]
    TooOld {
        /// Which one.
        runtime: String,
    },
    /// Its diagnostics are switched off.
    #[error("runs with {variable}={value}, which switches its diagnostics server off")]
    DiagnosticsDisabled {
        /// The environment variable.
        variable: String,
        /// Its value.
        value: String,
    },
    /// It has a runtime without a diagnostics server, and nothing says why.
    #[error("has a .NET runtime without a diagnostics server{}", if *aot {
        ": it was compiled ahead of time without one"
    } else {
        ": it was switched off by its host, or was not built in"
    })]
    NoServer {
        /// It is `NativeAOT`.
        aot: bool,
    },
    /// It belongs to another user, and we are not root.
    #[error("belongs to user {user} (uid {uid}); only that user and root can reach it")]
    OtherUser {
        /// Its user id.
        uid: u32,
        /// The user's name, else the number.
        user: String,
    },
    /// It belongs to another user, and `/proc` shows us nothing of it.
    #[error("belongs to another user, and /proc shows us only our own processes (hidepid)")]
    Concealed,
    /// It lives in another namespace, into which we may not look.
    #[error("lives in another {} namespace; looking into it needs root (CAP_SYS_PTRACE)", namespaces.join(" and "))]
    OtherNamespace {
        /// `mount`, `pid`.
        namespaces: Vec<&'static str>,
    },
    /// The kernel keeps us from looking into it though it is our user's, or though we are root.
    #[error("can't be looked into, though its user is ours or we are root: {}", denial(label.as_deref(), *capable))]
    Denied {
        /// The label that a security module has put on it.
        label: Option<String>,
        /// Whether we have the capability to look into processes (`CAP_SYS_PTRACE`).
        capable: bool,
    },
    /// Its temporary directory does not exist, so its runtime made no socket.
    #[error("has the temporary directory {}, which does not exist", directory.display())]
    NoTmpdir {
        /// Its TMPDIR, as it sees it.
        directory: PathBuf,
        /// Whether it sees other files than we do.
        elsewhere: bool,
    },
    /// Its temporary directory can't be written to, so its runtime made no socket.
    #[error("has the temporary directory {}, {}", directory.display(), if *mounted {
        "which is mounted read-only"
    } else {
        "where it may not write"
    })]
    TmpReadOnly {
        /// Its TMPDIR, as it sees it.
        directory: PathBuf,
        /// The whole file system is read-only; otherwise the directory's mode forbids it.
        mounted: bool,
    },
    /// The path of its temporary directory is too long for a socket's name, so its runtime made no socket of its own there.
    #[error(
        "has the temporary directory {}, whose path of {} bytes leaves no room for the name of its socket: a socket's path \
         has at most {LONGEST_SOCKET_PATH} bytes",
        directory.display(), directory.as_os_str().len()
    )]
    LongTmpdir {
        /// Its TMPDIR, as it stands in its environment.
        directory: PathBuf,
        /// The most bytes that the directory of a socket with a complete name can have.
        longest: usize,
    },
    /// There are sockets with its pid, all left behind by earlier processes.
    #[error("has only stale sockets, left behind by earlier processes with its number: {}", display(sockets))]
    StaleSocket {
        /// Those sockets.
        sockets: Vec<PathBuf>,
    },
    /// Its server listens, but the file of its socket is gone.
    #[error("listens, but its socket was deleted: {}", display(sockets))]
    SocketDeleted {
        /// Where it was.
        sockets: Vec<PathBuf>,
    },
    /// There are more names in its temporary directory than are looked at: its socket may be among them.
    #[error("was not found among the names in {}: there are more than are looked at", directory.display())]
    Crowded {
        /// Its temporary directory, as it is called from here.
        directory: PathBuf,
    },
    /// Its runtime is not ready yet.
    #[error("is only starting: its diagnostics server is not there yet")]
    Starting,
}

impl Reason {
    /// It in one word.
    pub fn code(&self) -> Code {
        match self {
            Self::NoSuchProcess | Self::Thread { .. } | Self::Ended => Code::NoSuchProcess,
            Self::NotDotnet | Self::Jvm { .. } => Code::NotDotnet,
            Self::TooOld { .. } => Code::TooOld,
            Self::DiagnosticsDisabled { .. } | Self::NoServer { .. } => Code::DiagnosticsDisabled,
            Self::OtherUser { .. } | Self::Concealed => Code::OtherUser,
            Self::OtherNamespace { .. } => Code::OtherNamespace,
            Self::Denied { .. } => Code::Lsm,
            Self::NoTmpdir { .. } | Self::LongTmpdir { .. } => Code::OtherTmpdir,
            Self::TmpReadOnly { .. } => Code::TmpReadOnly,
            Self::StaleSocket { .. } | Self::SocketDeleted { .. } => Code::StaleSocket,
            Self::Crowded { .. } => Code::TmpCrowded,
            Self::Starting => Code::Busy,
        }
    }
}

fn denial(label: Option<&str>, capable: bool) -> String {
    match (label, capable) {
        (Some(label), true) => format!("a security module forbids it (the process is labelled {label})"),
        (None, true) => {
            "we have CAP_SYS_PTRACE, so a security module forbids it, or its user namespace is not ours"
                .to_owned()
        }
        (Some(label), false) => {
            format!(
                "we lack CAP_SYS_PTRACE, or a security module forbids it (the process is labelled {label})"
            )
        }
        (None, false) => "we lack CAP_SYS_PTRACE, or a security module forbids it".to_owned(),
    }
}

fn display(paths: &[PathBuf]) -> String {
    let names: Vec<_> = paths.iter().take(3).map(|path| path.display().to_string()).collect();
    let more = paths.len().saturating_sub(names.len());
    if more == 0 { names.join(", ") } else { format!("{} and {more} more", names.join(", ")) }
}
