//! Why a process can't be reached, in the words that `doctor` and `ps` use.

use std::path::PathBuf;

use thiserror::Error;

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

/// What stands in the way. [`code`](Self::code) is stable.
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
    /// No runtime is loaded and there is no socket.
    #[error("has no .NET runtime loaded")]
    NotDotnet,
    /// Its diagnostics are switched off.
    #[error("runs with {variable}={value}, which switches its diagnostics server off")]
    DiagnosticsDisabled {
        /// The environment variable.
        variable: String,
        /// Its value.
        value: String,
    },
    /// It belongs to another user, and we are not root.
    #[error("belongs to user {user} (uid {uid}); only that user and root can reach it")]
    OtherUser {
        /// Its user id.
        uid: u32,
        /// The user's name, else the number.
        user: String,
    },
    /// It lives in another namespace, into which we may not look.
    #[error("lives in another {} namespace; looking into it needs root (CAP_SYS_PTRACE)", namespaces.join(" and "))]
    OtherNamespace {
        /// `mount`, `pid`.
        namespaces: Vec<&'static str>,
    },
    /// The kernel keeps us from looking into it though it is our user's, or though we are root: a security module
    /// or a missing capability.
    #[error("can't be looked into: a security module or a missing capability (CAP_SYS_PTRACE) forbids it")]
    Denied,
    /// Its temporary directory is another one than ours, and no socket is there.
    #[error("uses {} as its temporary directory, where it has no socket", directory.display())]
    OtherTmpdir {
        /// Its TMPDIR.
        directory: PathBuf,
    },
    /// Its temporary directory does not exist, so its runtime made no socket.
    #[error("has the temporary directory {}, which does not exist", directory.display())]
    NoTmpdir {
        /// Its TMPDIR.
        directory: PathBuf,
    },
    /// Its temporary directory can't be written to, so its runtime made no socket.
    #[error("has the temporary directory {}, which is read-only", directory.display())]
    TmpReadOnly {
        /// Its TMPDIR.
        directory: PathBuf,
    },
    /// There are sockets with its pid, all left behind by earlier processes.
    #[error("has only stale sockets: {}", display(sockets))]
    StaleSocket {
        /// Those sockets.
        sockets: Vec<PathBuf>,
    },
    /// A runtime is loaded and its socket is gone, or not there yet.
    #[error("has a .NET runtime, but no socket in {}", directory.display())]
    NoSocket {
        /// Where it should be.
        directory: PathBuf,
    },
    /// This operating system is not supported yet.
    #[error("can't be looked at on this operating system")]
    Unsupported,
}

impl Reason {
    /// The stable code, as in `runtap.doctor/1`.
    pub fn code(&self) -> &'static str {
        match self {
            Self::NoSuchProcess | Self::Thread { .. } => "no-such-process",
            Self::NotDotnet => "not-dotnet",
            Self::DiagnosticsDisabled { .. } => "diagnostics-disabled",
            Self::OtherUser { .. } => "other-user",
            Self::OtherNamespace { .. } => "other-namespace",
            Self::Denied => "lsm",
            Self::OtherTmpdir { .. } | Self::NoTmpdir { .. } => "other-tmpdir",
            Self::TmpReadOnly { .. } => "tmp-read-only",
            Self::StaleSocket { .. } => "stale-socket",
            Self::NoSocket { .. } => "no-socket",
            Self::Unsupported => "unsupported",
        }
    }
}

fn display(paths: &[PathBuf]) -> String {
    let names: Vec<_> = paths.iter().take(3).map(|path| path.display().to_string()).collect();
    let more = paths.len().saturating_sub(names.len());
    if more == 0 { names.join(", ") } else { format!("{} and {more} more", names.join(", ")) }
}
