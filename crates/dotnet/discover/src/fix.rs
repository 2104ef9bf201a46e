//! Suggestions for how to fix a problem. A suggestion is either a sentence, or the data for a sentence that names commands of the
//! program that shows it; this crate does not know those commands.

use std::borrow::Cow;
use std::path::PathBuf;

use runtap_os::shell;
#[cfg(target_os = "linux")]
use runtap_transport::linux::seen_by;

use crate::Reason;

/// A suggestion for how to fix a problem. Exhaustive on purpose: programs that show suggestions must handle all of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fix {
    /// A sentence, with a system command where one exists.
    Text(Cow<'static, str>),
    /// Choose another process that can be reached.
    ChooseAnother,
    /// Choose this process: the given id is that of one of its threads.
    Choose {
        /// The process id.
        pid: u32,
    },
    /// Retry as that user, or as root.
    AsUser {
        /// The name of the user. `None` if unknown.
        user: Option<String>,
    },
    /// Retry as root, or inside the same container.
    AsRootOrInside,
    /// Examine the process as root, who has access to more information.
    ExamineAsRoot {
        /// The process id. `None` for the whole machine.
        pid: Option<u32>,
    },
    /// Trace the process as a Java program.
    TraceJvm {
        /// The process id.
        pid: u32,
    },
    /// Start the Java program again, with the agent: it can't be loaded while the program runs.
    TraceJvmFromStart,
    /// End the trace of a Java program, and unload its agent.
    DetachJvm {
        /// The process id.
        pid: u32,
    },
    /// Trace the program with the original agent, which is a jar.
    OriginalAgent,
    /// Collect the trace of a Java program at an address that the program can reach.
    CollectElsewhere {
        /// The process id.
        pid: u32,
    },
    /// Resume the process.
    Resume {
        /// The process id.
        pid: u32,
        /// The port that it waits for, on which a tool could record it from its first event. `None` for its own port.
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
    /// Returns the suggestion for this reason.
    pub fn fix(&self) -> Fix {
        match self {
            Self::NoSuchProcess | Self::Ended => Fix::ChooseAnother,
            Self::Thread { tgid } => Fix::Choose { pid: *tgid },
            Self::NotDotnet => {
                "choose another process: a script or wrapper runs its program as a child process, and a program that \
                was just started may not have loaded its runtime yet"
                    .into()
            }
            Self::Jvm { pid } => Fix::TraceJvm { pid: *pid },
            Self::TooOld { .. } => "run the program on .NET Core 3.0 or later".into(),
            Self::DiagnosticsDisabled { variable, .. } => {
                format!("restart it without that variable: env -u {variable} COMMAND").into()
            }
            Self::NoServer { aot: true } => {
                "rebuild it with <EventSourceSupport>true</EventSourceSupport>".into()
            }
            Self::NoServer { aot: false } => {
                "look for EnableDiagnostics in the configuration of its host, and restart it".into()
            }
            Self::OtherUser { user, .. } => Fix::AsUser { user: Some(user.clone()) },
            Self::Concealed => Fix::AsUser { user: None },
            Self::OtherNamespace { .. } => Fix::AsRootOrInside,
            Self::Denied { capable: false, .. } => {
                "try it as root on the host, or give your container the capability: --cap-add SYS_PTRACE".into()
            }
            Self::Denied { label, .. } => format!(
                "check the kernel log for denials (journalctl -k | grep -i denied) and allow runtap to read and connect to {}",
                label.as_deref().unwrap_or("the process")
            )
            .into(),
            Self::NoTmpdir { directory, elsewhere } => format!(
                "the runtime creates its socket only at startup: mkdir -p {}{}, then restart it",
                shell::path(directory),
                in_its_files(*elsewhere)
            )
            .into(),
            Self::LongTmpdir { longest, .. } => format!(
                "restart it with a shorter TMPDIR, of at most {longest} bytes: env TMPDIR=DIRECTORY COMMAND"
            )
            .into(),
            Self::TmpReadOnly { .. } => {
                "restart it with a writable directory: env TMPDIR=DIRECTORY \
                COMMAND"
                    .into()
            }
            Self::StaleSocket { sockets } => Self::delete(sockets).into(),
            Self::SocketDeleted { .. } => {
                "restart it; to exclude sockets from the cleanup of temporary files, put the line \
                'x /tmp/dotnet-diagnostic-*' into /etc/tmpfiles.d/dotnet.conf"
                    .into()
            }
            Self::Crowded { .. } => {
                "stop the program that fills that directory, and remove files that are not needed".into()
            }
            Self::Starting => "try again in a moment".into(),
        }
    }

    /// Returns a command that deletes sockets. For sockets below the root or working directory of another process, only that
    /// process's paths are given: symbolic links there could lead `rm` to other files.
    fn delete(sockets: &[PathBuf]) -> String {
        /// The number of paths in the command.
        const SHOWN: usize = 20;
        let theirs: Vec<_> = sockets.iter().filter_map(|socket| seen_by(socket)).collect();
        let ours = sockets.iter().filter(|socket| seen_by(socket).is_none());
        let (command, all) = match &theirs[..] {
            [] => (format!("delete them: rm {}", shell::paths(ours.take(SHOWN))), sockets.len()),
            [(pid, _), ..] => (
                format!(
                    "delete them in the file system of process {pid}, by the paths that it sees: rm {}",
                    shell::paths(theirs.iter().take(SHOWN).map(|(_, path)| path))
                ),
                theirs.len(),
            ),
        };
        match all.saturating_sub(SHOWN) {
            0 => command,
            more => format!("{command} (and {more} more, which are listed once these are deleted)"),
        }
    }
}

/// Other systems have no such paths.
#[cfg(not(target_os = "linux"))]
fn seen_by(_path: &std::path::Path) -> Option<(u32, PathBuf)> {
    None
}

/// Returns the words that follow a path in a command if the process may see other files (`elsewhere`).
pub fn in_its_files(elsewhere: bool) -> &'static str {
    if elsewhere { " in the file system of the process (by the path that it sees)" } else { "" }
}
