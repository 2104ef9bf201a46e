//! What is to be recorded, and into what.

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
use crate::stop_event::StopEvent;
use runtap_target::ResolvedTarget;

/// How files are called for which nobody gave a name.
#[derive(Clone)]
pub struct Naming(Arc<Name>);

type Name = dyn Fn(&str, u64) -> PathBuf + Send + Sync;

impl Naming {
    /// By the name of the program and its process id, without an extension.
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

/// What is to be recorded, and into what.
#[derive(Debug, Clone)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a thing that users choose, and goes with every other"
)]
pub struct Specification {
    /// The session that each process is asked for.
    pub session: SessionConfig,
    /// Its providers, and which word asked for each.
    pub asked: Vec<Requested>,
    /// The runtime tells the names of methods while it runs, not only at the end of the stream.
    pub method_names: bool,
    /// Formats of the files; the stream itself where none is given.
    pub formats: Vec<FileFormat>,
    /// What converted files hold.
    pub content: Content,
    /// Where the files go; `-` is standard output. By default they are called by [`naming`](Self::naming).
    pub output: Option<PathBuf>,
    /// How files are called without [`output`](Self::output).
    pub naming: Naming,
    /// Every process of the tree, not only the first.
    pub children: bool,
    /// One file for all processes.
    pub merge: bool,
    /// How long, from the first session on; by default until the [stop](crate::Stops).
    pub duration: Option<Duration>,
    /// The event that ends the recording.
    pub stop_event: Option<StopEvent>,
    /// Tell runtimes that are suspended at their start to go on.
    pub resume: bool,
    /// How long a command may take until a runtime of it dials in, before that is [said](crate::Event::NobodyCame).
    pub dial_in: Duration,
    /// Arguments by which this program, started anew, calls [`guard_port`](crate::guard_port); the path of the port and
    /// user ids follow. Without them nobody stays behind for the processes that outlive a command.
    pub guard: Option<Vec<OsString>>,
}

impl Specification {
    /// Of these events, with the settings of `dotnet-trace`: the stream as it is, of one process, until it is stopped.
    pub fn new(request: &Request) -> Self {
        let mut session =
            SessionConfig::new(request.providers.iter().map(|asked| asked.provider.clone()).collect());
        session.rundown_keyword = request.rundown_keyword.unwrap_or(DEFAULT_RUNDOWN_KEYWORD);
        Self {
            method_names: request.includes_method_names(),
            session,
            asked: request.providers.clone(),
            formats: vec![FileFormat::Nettrace],
            content: Content::default(),
            output: None,
            naming: Naming::new(|name, pid| format!("{}_{pid}", plain_name(name)).into()),
            children: false,
            merge: false,
            duration: None,
            stop_event: None,
            resume: true,
            dial_in: Duration::from_secs(30),
            guard: None,
        }
    }
}

/// Who is recorded.
#[derive(Debug)]
pub enum Target {
    /// Processes that run.
    Running(Vec<ResolvedTarget>),
    /// Whoever dials in there.
    Port(Port),
    /// A command that is started.
    Command(Command),
}
