//! What happens meanwhile.

use std::fmt;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use runtap_convert::Note;
use runtap_convert::source::Partial;
use runtap_diag::ports::Visitor;
use runtap_diag::{Downgrade, Error, SessionId};

/// What happens while something is recorded.
#[derive(Debug)]
pub enum Event {
    /// A runtime has dialled in at a port of ours.
    DialledIn {
        /// How to call the process.
        process: String,
        /// Another process id than the kernel's, by which it calls itself.
        claims: Option<u64>,
    },
    /// A session has begun; the runtime knows it by this number.
    Session {
        /// The runtime's number for it.
        id: SessionId,
        /// The command that began it.
        command: String,
    },
    /// The first session has less than what was asked for.
    Downgraded(Downgrade),
    /// The stream of a process is being written.
    Started {
        /// Of the program.
        name: String,
        /// Process id.
        pid: u64,
        /// The files that there will be; `None` is standard output.
        files: Vec<Option<PathBuf>>,
    },
    /// Once a second.
    Progress(Progress),
    /// The end was asked for once more; it has begun already.
    StoppingAlready,
    /// A process may be suspended, and could not be told to go on.
    NotResumed {
        /// How to call the process.
        process: String,
        /// Why.
        error: Error,
    },
    /// The variable for ports could not be put back in a process, so that its children dial in too.
    NotRestored {
        /// The variable.
        name: &'static str,
        /// Why.
        error: Error,
    },
    /// A process ended before it could be recorded.
    EndedBefore {
        /// How to call the process.
        process: String,
    },
    /// Somebody has dialled in who is not recorded: a user with whom the command has nothing to do.
    Stranger(Visitor),
    /// No runtime has dialled in for as long as the specification says. The command runs on.
    NobodyCame {
        /// The command.
        pid: u32,
        /// How long that was.
        after: Duration,
        /// A Java virtual machine that it runs, if one was seen.
        jvm: Option<u32>,
    },
    /// The command has ended before a runtime had dialled in.
    NothingRecorded {
        /// A Java virtual machine that it ran, if one was seen.
        jvm: Option<u32>,
    },
    /// The recording is over, and the command is not.
    WaitingForCommand,
    /// Somebody stays behind at the port, for processes that still run.
    GuardLeft {
        /// Processes that have the port in their environment; `None` where they could not be looked at in time.
        processes: Option<Vec<u32>>,
        /// The process that stays.
        guard: u32,
    },
    /// Nobody could be left behind at the port: what those processes start will wait for it.
    NoGuard {
        /// As in [`GuardLeft`](Self::GuardLeft).
        processes: Option<Vec<u32>>,
        /// The port.
        port: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// Every stream has ended; the files are made now.
    Recorded,
    /// What differs in a file from what somebody may expect.
    Note(Note),
    /// What was made of a recording lacks what the recording has.
    LeftOut {
        /// The recording.
        path: PathBuf,
        /// What is missing.
        partial: Partial,
    },
    /// Files could not be made of a recording, so the recording itself is kept there.
    Kept(PathBuf),
}

/// How far all recordings are.
#[derive(Debug, Clone, Copy)]
pub struct Progress {
    /// Since the first session.
    pub elapsed: Duration,
    /// What is left of the time that was asked for.
    pub left: Option<Duration>,
    /// Bytes received.
    pub bytes: u64,
    /// Events in them, as far as they are counted.
    pub events: u64,
    /// Events that the target dropped.
    pub lost: u64,
    /// Processes that are being recorded.
    pub active: usize,
    /// Processes that were.
    pub all: usize,
    /// The end was asked for, and the runtime tells the names of its methods.
    pub is_stopping: bool,
}

/// Takes the events, in the order in which they happen, on the threads on which they do.
#[derive(Clone)]
pub struct Reporter(Arc<dyn Fn(Event) + Send + Sync>);

impl Reporter {
    /// One that does this with each.
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
