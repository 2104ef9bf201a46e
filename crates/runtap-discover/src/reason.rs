//! Why a process can't be reached, and what mends it, in the words that every verb uses. Pure: it judges the facts that
//! were gathered.

use std::fmt;
use std::path::PathBuf;

#[cfg(target_os = "linux")]
use runtap_transport::linux::seen_by;
use runtap_transport::shell;
use thiserror::Error;

#[cfg(target_os = "linux")]
use crate::CAP_SYS_PTRACE;
#[cfg(target_os = "linux")]
use crate::linux::{Facts, Life, TempState};
#[cfg(target_os = "linux")]
use crate::linux::{Runtime, Startup};

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
    /// This operating system is not supported.
    Unsupported,
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
            Self::Busy => "busy",
            Self::NoCreatedump => "no-createdump",
            Self::PtraceScope => "ptrace-scope",
            Self::TmpReadOnly => "tmp-read-only",
            Self::TmpCrowded => "tmp-crowded",
            Self::Lsm => "lsm",
            Self::Unsupported => "unsupported",
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
    /// This operating system is not supported yet.
    #[error("can't be looked at on this operating system")]
    Unsupported,
}

impl Reason {
    /// It in one word.
    pub fn code(&self) -> Code {
        match self {
            Self::NoSuchProcess | Self::Thread { .. } | Self::Ended => Code::NoSuchProcess,
            Self::NotDotnet => Code::NotDotnet,
            Self::TooOld { .. } => Code::TooOld,
            Self::DiagnosticsDisabled { .. } | Self::NoServer { .. } => Code::DiagnosticsDisabled,
            Self::OtherUser { .. } | Self::Concealed => Code::OtherUser,
            Self::OtherNamespace { .. } => Code::OtherNamespace,
            Self::Denied { .. } => Code::Lsm,
            Self::NoTmpdir { .. } => Code::OtherTmpdir,
            Self::TmpReadOnly { .. } => Code::TmpReadOnly,
            Self::StaleSocket { .. } | Self::SocketDeleted { .. } => Code::StaleSocket,
            Self::Crowded { .. } => Code::TmpCrowded,
            Self::Starting => Code::Busy,
            Self::Unsupported => Code::Unsupported,
        }
    }

    /// What mends it: a command where there is one.
    pub fn fix(&self) -> String {
        match self {
            Self::NoSuchProcess | Self::Ended => {
                "'runtap ps' lists the processes that can be tapped".to_owned()
            }
            Self::Thread { tgid } => format!("take -p {tgid}"),
            Self::NotDotnet => {
                "only .NET Core 3.0 and later have a diagnostics server; a program that was just \
                started may not have loaded it yet"
                    .to_owned()
            }
            Self::TooOld { .. } => "run the program on .NET Core 3.0 or later".to_owned(),
            Self::DiagnosticsDisabled { variable, .. } => {
                format!("start it again without that variable: env -u {variable} COMMAND")
            }
            Self::NoServer { aot: true } => {
                "build it again with <EventSourceSupport>true</EventSourceSupport>".to_owned()
            }
            Self::NoServer { aot: false } => {
                "look for EnableDiagnostics in what starts it, and start it again".to_owned()
            }
            Self::OtherUser { user, .. } => {
                format!("run runtap as that user or as root: sudo -u {} runtap ps", shell::word(user))
            }
            Self::Concealed => "run runtap as that user or as root: sudo runtap ps".to_owned(),
            Self::OtherNamespace { .. } => {
                "run runtap as root (sudo runtap ps), or inside that container".to_owned()
            }
            Self::Denied { capable: false, .. } => {
                "run runtap as root of the host, or give its container the capability: --cap-add SYS_PTRACE"
                    .to_owned()
            }
            Self::Denied { label, .. } => format!(
                "look for denials in the kernel's log (journalctl -k | grep -i denied) and let runtap read and connect \
                 to {}",
                label.as_deref().unwrap_or("the process")
            ),
            Self::NoTmpdir { directory, elsewhere } => format!(
                "its runtime makes the socket at its start only: mkdir -p {}{} and start it again",
                shell::path(directory),
                in_its_files(*elsewhere)
            ),
            Self::TmpReadOnly { .. } => {
                "start it again with a directory that it can write to: env TMPDIR=DIRECTORY \
                COMMAND"
                    .to_owned()
            }
            Self::StaleSocket { sockets } => Self::delete(sockets),
            Self::SocketDeleted { .. } => {
                "start it again; a cleaner of temporary files leaves it alone with the line \
                'x /tmp/dotnet-diagnostic-*' in /etc/tmpfiles.d/dotnet.conf"
                    .to_owned()
            }
            Self::Crowded { .. } => {
                "have whoever fills that directory stop, and remove what is not needed there".to_owned()
            }
            Self::Starting => "try again in a moment".to_owned(),
            Self::Unsupported => "run runtap on Linux".to_owned(),
        }
    }
}

impl Reason {
    /// How sockets are deleted. Below the root or the working directory of another process no path of ours is told: there
    /// links lead where its owner wants, and whoever deletes by them would follow.
    fn delete(sockets: &[PathBuf]) -> String {
        let theirs: Vec<_> = sockets.iter().filter_map(|socket| seen_by(socket)).collect();
        let ours = sockets.iter().filter(|socket| seen_by(socket).is_none());
        match &theirs[..] {
            [] => format!("they can be deleted: rm {}", shell::paths(ours)),
            [(pid, _), ..] => format!(
                "they can be deleted where process {pid} has its files, by these names of its own: rm {}",
                shell::paths(theirs.iter().map(|(_, path)| path))
            ),
        }
    }
}

#[cfg(target_os = "linux")]
impl Reason {
    /// Everything that stands in the way of reaching a process: what is certain first. Empty if it has a socket that
    /// can be dialled.
    pub fn all(facts: &Facts) -> Vec<Self> {
        match facts.life {
            Life::Gone => return vec![Self::NoSuchProcess],
            Life::Hidden => return vec![Self::Concealed],
            Life::Thread { tgid } => return vec![Self::Thread { tgid }],
            Life::Ended => return vec![Self::Ended],
            _ => {}
        }
        if facts.usable_sockets().next().is_some() {
            return Vec::new();
        }
        let mut reasons = Vec::new();
        if facts.runtime.is_too_old() {
            let runtime =
                facts.runtime.version().map_or_else(|| "Mono".to_owned(), |it| format!(".NET Core {it}"));
            return vec![Self::TooOld { runtime }];
        }
        let shows_none = matches!(facts.runtime, Runtime::None | Runtime::Unread { likely: false });
        if shows_none && facts.deleted.is_empty() {
            return vec![Self::NotDotnet];
        }
        if facts.hidden {
            reasons.push(Self::hidden(facts));
        }
        if let Some((variable, value)) = facts.environment.as_ref().and_then(|it| it.disabled.clone()) {
            reasons.push(Self::DiagnosticsDisabled { variable, value });
        }
        if !facts.deleted.is_empty() {
            reasons.push(Self::SocketDeleted { sockets: facts.deleted.clone() });
        }
        if let Some(temp) = facts.temp.as_ref() {
            let directory = temp.path.clone();
            match temp.state {
                TempState::Missing => {
                    reasons.push(Self::NoTmpdir { directory, elsewhere: facts.other_root });
                }
                TempState::ReadOnly => reasons.push(Self::TmpReadOnly { directory, mounted: true }),
                TempState::NotWritable => reasons.push(Self::TmpReadOnly { directory, mounted: false }),
                TempState::Fine | TempState::Unknown => {}
            }
        }
        if reasons.is_empty() {
            reasons.push(Self::unexplained(facts));
        }
        reasons
    }

    /// We may not look into it.
    fn hidden(facts: &Facts) -> Self {
        let Facts { viewer, uid, .. } = facts;
        let mut namespaces = Vec::new();
        namespaces.extend(facts.other_mount_namespace.then_some("mount"));
        namespaces.extend(facts.other_pid_namespace.then_some("pid"));
        if viewer.uid != 0 && *uid != viewer.uid {
            Self::OtherUser { uid: *uid, user: facts.user.clone() }
        } else if namespaces.is_empty() || viewer.capabilities.has(CAP_SYS_PTRACE) {
            Self::Denied { label: facts.label.clone(), capable: viewer.capabilities.has(CAP_SYS_PTRACE) }
        } else {
            Self::OtherNamespace { namespaces }
        }
    }

    /// It has a runtime that could be looked at, and nothing speaks against a socket.
    fn unexplained(facts: &Facts) -> Self {
        /// Three seconds: a runtime needs hundredths of one.
        const YOUNG: u64 = 300;
        let young = facts.age.is_some_and(|age| age < YOUNG);
        let stale: Vec<PathBuf> = facts.sockets.iter().map(|socket| socket.path.clone()).collect();
        if facts.serves == Some(true) && facts.crowded {
            Self::Crowded { directory: facts.temp.as_ref().map(|temp| temp.host.clone()).unwrap_or_default() }
        } else if facts.serves == Some(true) {
            // The kernel's table of its network namespace could not be read: where it listens is not known.
            let directory = facts.temp.as_ref().map(|temp| temp.host.join("dotnet-diagnostic-*"));
            Self::SocketDeleted { sockets: directory.into_iter().collect() }
        } else if young && facts.startup != Startup::Done {
            Self::Starting
        } else if !stale.is_empty() {
            Self::StaleSocket { sockets: stale }
        } else {
            Self::NoServer { aot: facts.runtime == Runtime::NativeAot }
        }
    }
}

fn denial(label: Option<&str>, capable: bool) -> String {
    match (label, capable) {
        (Some(label), true) => format!("a security module forbids it (the process is labelled {label})"),
        (None, true) => "a security module forbids it".to_owned(),
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

/// Other systems have no such paths.
#[cfg(not(target_os = "linux"))]
fn seen_by(_path: &std::path::Path) -> Option<(u32, PathBuf)> {
    None
}

/// What stands behind a path in a command, for a process that may see other files than we do (`elsewhere`).
pub fn in_its_files(elsewhere: bool) -> &'static str {
    if elsewhere { " where it has its files (that is its name for it, not ours)" } else { "" }
}
