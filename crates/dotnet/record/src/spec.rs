//! The specification of a recording.

use std::ffi::OsString;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use crate::providers::{Request, Requested};
use runtap_convert::{Content, FileFormat};
use runtap_diag::ports::Port;
use runtap_diag::{DEFAULT_RUNDOWN_KEYWORD, SessionConfig};
use runtap_os::output::plain_name;

use crate::Command;
use crate::consumer::Consumers;
use crate::counters::CounterMonitor;
use crate::stop_event::StopEvent;
use runtap_target::{JvmTarget, ResolvedTarget, TargetSpec};

/// A rule for the names of files that the user did not name.
#[derive(Clone)]
pub struct Naming(Arc<Name>);

type Name = dyn Fn(&str, u64) -> PathBuf + Send + Sync;

impl Naming {
    /// Creates a rule that maps the program's name and process id to a path without extension.
    pub fn new(name: impl Fn(&str, u64) -> PathBuf + Send + Sync + 'static) -> Self {
        Self(Arc::new(name))
    }

    pub(crate) fn of(&self, name: &str, pid: u64) -> PathBuf {
        (self.0)(name, pid)
    }
}

impl fmt::Debug for Naming {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Naming")
    }
}

/// The specification of a recording.
#[derive(Debug, Clone)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a thing that users choose, and goes with every other"
)]
pub struct Specification {
    /// The session to start in each process.
    pub session: SessionConfig,
    /// The providers of the session, and why each is enabled.
    pub asked: Vec<Requested>,
    /// Whether the runtime sends method names while it runs, and not only at the end of the stream.
    pub method_names: bool,
    /// The formats of the files. The stream itself if empty.
    pub formats: Vec<FileFormat>,
    /// What processes the streams in place of files. The output, the formats and the content are then ignored.
    pub consumers: Option<Consumers>,
    /// What reads the counters of Java programs. If `None`, only .NET processes can be recorded.
    pub counters: Option<CounterMonitor>,
    /// The content of converted files.
    pub content: Content,
    /// The path of the output; `-` is standard output. If `None`, files are named by [`naming`](Self::naming).
    pub output: Option<PathBuf>,
    /// The rule for file names without [`output`](Self::output).
    pub naming: Naming,
    /// Whether to record all processes of the tree instead of only the first.
    pub children: bool,
    /// Whether to create one file for all processes.
    pub merge: bool,
    /// The duration, starting with the first session. If `None`, until the [stop](crate::Stops).
    pub duration: Option<Duration>,
    /// The event that stops the recording.
    pub stop_event: Option<StopEvent>,
    /// Whether to resume runtimes that are suspended at startup.
    pub resume: bool,
    /// The time within which a runtime of a command must connect before that is [reported](crate::Event::NoRuntimeConnected).
    pub connect_timeout: Duration,
    /// The arguments with which this program, when started again, calls [`guard_port`](crate::guard_port); the path of the port and
    /// user ids are appended. If `None`, no guard is started for processes that outlive a command.
    pub guard: Option<Vec<OsString>>,
}

impl Specification {
    /// Creates a specification with the settings of `dotnet-trace`: the raw stream of one process, until it is stopped.
    pub fn new(request: &Request) -> Self {
        let mut session =
            SessionConfig::new(request.providers.iter().map(|asked| asked.provider.clone()).collect());
        session.rundown_keyword = request.rundown_keyword.unwrap_or(DEFAULT_RUNDOWN_KEYWORD);
        let (method_names, asked) = (request.includes_method_names(), request.providers.clone());
        Self { asked, method_names, ..Self::of_session(session) }
    }

    /// Creates a specification for sessions with this configuration. Without a list of [providers](Self::asked), it is not reported
    /// which of them sent no events.
    pub fn of_session(session: SessionConfig) -> Self {
        Self {
            method_names: false,
            session,
            asked: Vec::new(),
            formats: vec![FileFormat::Nettrace],
            consumers: None,
            counters: None,
            content: Content::default(),
            output: None,
            naming: Naming::new(|name, pid| format!("{}_{pid}", plain_name(name)).into()),
            children: false,
            merge: false,
            duration: None,
            stop_event: None,
            resume: true,
            connect_timeout: Duration::from_secs(30),
            guard: None,
        }
    }
}

/// What is recorded.
#[derive(Debug)]
pub enum Target {
    /// Running processes.
    Running(Vec<ResolvedTarget>),
    /// Running .NET processes, and Java programs, of which the [counters](Specification::counters) are read.
    Managed(Vec<ResolvedTarget>, Vec<JvmTarget>),
    /// .NET processes and Java programs with this name, one after the other or all at once, until the recording is stopped. The duration
    /// starts at once.
    Named {
        /// The name.
        spec: TargetSpec,
        /// Whether to record several at once.
        all: bool,
    },
    /// Runtimes that connect to a port.
    Port(Port),
    /// A command to launch.
    Command(Command),
}
