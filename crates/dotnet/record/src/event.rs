//! Events that occur during a recording.

use std::fmt;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use runtap_convert::Note;
use runtap_convert::source::Partial;
use runtap_diag::ports::Visitor;
use runtap_diag::{Downgrade, Error, SessionId};

/// An event that occurs during a recording.
#[derive(Debug)]
pub enum Event {
    /// A runtime has connected to the port.
    RuntimeConnected {
        /// The name of the process for messages.
        process: String,
        /// The process id that the runtime reports, if it differs from the kernel's.
        claims: Option<u64>,
    },
    /// A session has started.
    Session {
        /// The runtime's id of the session.
        id: SessionId,
        /// The command that started the session.
        command: String,
    },
    /// The first session has less than requested.
    Downgraded(Downgrade),
    /// The stream of a process is being written.
    Started {
        /// The name of the program.
        name: String,
        /// The process id.
        pid: u64,
        /// The output files. `None` stands for standard output.
        files: Vec<Option<PathBuf>>,
    },
    /// The progress, once per second.
    Progress(Progress),
    /// A stop was requested again while stopping.
    StoppingAlready {
        /// Whether the runtime may still be sending the names of methods.
        sends_names: bool,
    },
    /// A process may be suspended and could not be resumed.
    NotResumed {
        /// The name of the process for messages.
        process: String,
        /// The cause.
        error: Error,
    },
    /// The variable for ports could not be restored in a process, so its children will connect too.
    NotRestored {
        /// The name of the variable.
        name: &'static str,
        /// The cause.
        error: Error,
    },
    /// A process exited before it could be recorded.
    EndedBefore {
        /// The name of the process for messages.
        process: String,
    },
    /// A process of a user who is unrelated to the command connected. It is not recorded.
    Stranger(Visitor),
    /// No runtime connected within the time in the specification. The command continues to run.
    NoRuntimeConnected {
        /// The process id of the command.
        pid: u32,
        /// The time waited.
        after: Duration,
        /// The process id of a Java virtual machine that the command runs, if one was found.
        jvm: Option<u32>,
    },
    /// The command exited before a runtime connected.
    NothingRecorded {
        /// The process id of a Java virtual machine that the command ran, if one was found.
        jvm: Option<u32>,
    },
    /// No process has the name that selects the processes.
    WaitingForProcess,
    /// The recording is complete, but the command is still running.
    WaitingForCommand,
    /// A guard process keeps the port for processes that still run.
    GuardLeft {
        /// The processes that have the port in their environment. `None` if they could not be determined in time.
        processes: Option<Vec<u32>>,
        /// The process id of the guard.
        guard: u32,
    },
    /// No guard process could be started. Children of these processes will wait for the port.
    NoGuard {
        /// The processes, as in [`GuardLeft`](Self::GuardLeft).
        processes: Option<Vec<u32>>,
        /// The path of the port.
        port: PathBuf,
        /// The cause.
        error: io::Error,
    },
    /// All streams have ended, and the files are being created.
    Recorded,
    /// A note about an unexpected property of a file.
    Note(Note),
    /// A converted file lacks parts of the recording.
    LeftOut {
        /// The path of the recording.
        path: PathBuf,
        /// What is missing.
        partial: Partial,
    },
    /// Files could not be created, so the recording is kept at this path.
    Kept(PathBuf),
}

/// The progress of all recordings.
#[derive(Debug, Clone, Copy)]
pub struct Progress {
    /// The time since the first session started.
    pub elapsed: Duration,
    /// The rest of the requested duration.
    pub left: Option<Duration>,
    /// The number of bytes received.
    pub bytes: u64,
    /// The number of events received, as far as they are counted.
    pub events: u64,
    /// The number of events that the target dropped.
    pub lost: u64,
    /// The number of processes being recorded.
    pub active: usize,
    /// The number of processes recorded so far, including those.
    pub all: usize,
    /// Whether the recording is stopping, while the runtime sends the names of its methods.
    pub is_stopping: bool,
}

/// A callback for events. It is called in the order of events, on the threads on which they occur.
#[derive(Clone)]
pub struct Reporter(Arc<dyn Fn(Event) + Send + Sync>);

impl Reporter {
    /// Creates a reporter from a callback.
    pub fn new(take: impl Fn(Event) + Send + Sync + 'static) -> Self {
        Self(Arc::new(take))
    }

    pub(crate) fn report(&self, event: Event) {
        (self.0)(event);
    }
}

impl fmt::Debug for Reporter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Reporter")
    }
}
