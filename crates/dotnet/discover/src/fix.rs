//! What to do about something that stands in the way. A sentence where it holds for every program; else the facts for one
//! that names the commands of the program that shows it. Refuses to know those.

use std::borrow::Cow;
use std::path::PathBuf;

use runtap_os::shell;
#[cfg(target_os = "linux")]
use runtap_transport::linux::seen_by;

use crate::Reason;

/// One thing to do. Not `#[non_exhaustive]`: the compiler points out a new one to whoever shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fix {
    /// In words, with a command of the system where there is one.
    Text(Cow<'static, str>),
    /// Choose another process, of those that can be reached.
    ChooseAnother,
    /// Choose this process: what was chosen is a thread of it.
    Choose {
        /// Its id.
        pid: u32,
    },
    /// Try it as that user, or as root.
    AsUser {
        /// The user, where it can be seen who that is.
        user: Option<String>,
    },
    /// Try it as root, or in the same container.
    AsRootOrInside,
    /// Examine it as root, who sees more.
    ExamineAsRoot {
        /// The process; `None` for the machine.
        pid: Option<u32>,
    },
    /// Trace it as a Java program.
    TraceJvm {
        /// Its id.
        pid: u32,
    },
    /// Resume the process.
    Resume {
        /// Its id.
        pid: u32,
        /// The port that it waits for, where somebody could listen to record it from its first event.
        port: Option<PathBuf>,
    },
}

impl From<&'static str> for Fix {
    fn from(text: &'static str) -> Self {
        Self::Text(text.into())
    }
}

impl From<String> for Fix {
    fn from(text: String) -> Self {
        Self::Text(text.into())
    }
}

impl Reason {
    /// What to do about it.
    pub fn fix(&self) -> Fix {
        match self {
            Self::NoSuchProcess | Self::Ended => Fix::ChooseAnother,
            Self::Thread { tgid } => Fix::Choose { pid: *tgid },
            Self::NotDotnet => {
                "only .NET Core 3.0 and later have a diagnostics server; a program that was just \
                started may not have loaded it yet"
                    .into()
            }
            Self::Jvm { pid } => Fix::TraceJvm { pid: *pid },
            Self::TooOld { .. } => "run the program on .NET Core 3.0 or later".into(),
            Self::DiagnosticsDisabled { variable, .. } => {
                format!("start it again without that variable: env -u {variable} COMMAND").into()
            }
            Self::NoServer { aot: true } => {
                "build it again with <EventSourceSupport>true</EventSourceSupport>".into()
            }
            Self::NoServer { aot: false } => {
                "look for EnableDiagnostics in what starts it, and start it again".into()
            }
            Self::OtherUser { user, .. } => Fix::AsUser { user: Some(user.clone()) },
            Self::Concealed => Fix::AsUser { user: None },
            Self::OtherNamespace { .. } => Fix::AsRootOrInside,
            Self::Denied { capable: false, .. } => {
                "try it as root on the host, or give our container the capability: --cap-add SYS_PTRACE".into()
            }
            Self::Denied { label, .. } => format!(
                "look for denials in the kernel's log (journalctl -k | grep -i denied) and let us read and connect to {}",
                label.as_deref().unwrap_or("the process")
            )
            .into(),
            Self::NoTmpdir { directory, elsewhere } => format!(
                "its runtime makes the socket at its start only: mkdir -p {}{} and start it again",
                shell::path(directory),
                in_its_files(*elsewhere)
            )
            .into(),
            Self::LongTmpdir { longest, .. } => format!(
                "start it again with a shorter TMPDIR, of at most {longest} bytes: env TMPDIR=DIRECTORY COMMAND"
            )
            .into(),
            Self::TmpReadOnly { .. } => {
                "start it again with a directory that it can write to: env TMPDIR=DIRECTORY \
                COMMAND"
                    .into()
            }
            Self::StaleSocket { sockets } => Self::delete(sockets).into(),
            Self::SocketDeleted { .. } => {
                "start it again; a cleaner of temporary files leaves it alone with the line \
                'x /tmp/dotnet-diagnostic-*' in /etc/tmpfiles.d/dotnet.conf"
                    .into()
            }
            Self::Crowded { .. } => {
                "have whoever fills that directory stop, and remove what is not needed there".into()
            }
            Self::Starting => "try again in a moment".into(),
        }
    }

    /// How sockets are deleted. Below the root or the working directory of another process no path of ours is given: there
    /// links lead where its owner wants, and whoever deletes by them would follow.
    fn delete(sockets: &[PathBuf]) -> String {
        /// A longer command does not help anybody.
        const SHOWN: usize = 20;
        let theirs: Vec<_> = sockets.iter().filter_map(|socket| seen_by(socket)).collect();
        let ours = sockets.iter().filter(|socket| seen_by(socket).is_none());
        let (command, all) = match &theirs[..] {
            [] => (format!("they can be deleted: rm {}", shell::paths(ours.take(SHOWN))), sockets.len()),
            [(pid, _), ..] => (
                format!(
                    "they can be deleted where process {pid} has its files, by these names of its own: rm {}",
                    shell::paths(theirs.iter().take(SHOWN).map(|(_, path)| path))
                ),
                theirs.len(),
            ),
        };
        match all.saturating_sub(SHOWN) {
            0 => command,
            more => format!("{command} (and {more} more, which are named once these are gone)"),
        }
    }
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
