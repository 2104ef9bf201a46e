//! Why something could not be recorded.

use std::io;
use std::path::PathBuf;

use runtap_discover::System;
use runtap_target::doctor::Finding;
use runtap_transport::{BindError, Endpoint};

/// Why something could not be recorded, or its files not be made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The runtime, or the way to it.
    #[error(transparent)]
    Runtime(#[from] runtap_diag::Error),
    /// The files.
    #[error(transparent)]
    Files(#[from] runtap_convert::Error),
    /// The port of a launched command.
    #[error(transparent)]
    Port(#[from] BindError),
    /// There is no place for the port of a launched command.
    #[error("there is no folder for a socket: set TMPDIR to one that only you can write to")]
    NoPlace,
    /// The same, with the reason.
    #[error("make a folder for a socket in {}: {error}", place.display())]
    Place {
        /// Where the last one was tried.
        place: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// A process did not answer, or can't; looked at when that was seen.
    #[error("process {pid} {}", finding.detail)]
    NotReached {
        /// The process.
        pid: u32,
        /// What is known of it.
        finding: Finding,
    },
    /// The command can't be started.
    #[error("can't start {program}")]
    Command {
        /// Its first word.
        program: String,
        /// Why.
        #[source]
        error: io::Error,
    },
    /// The command has no word.
    #[error("there is no command to start")]
    NoCommand,
    /// Of what listens at a path nobody knows the children.
    #[error("whose children? Give a process, a command, or a port that is listened on")]
    NoParent,
    /// What went into a pipe can't be read again.
    #[error("the stream went into no file, so nothing else can be made of it")]
    NoFile,
    /// Somebody has removed or exchanged the recording while it was written.
    #[error("{} is not what was recorded any more: while it was, somebody has removed or exchanged it", .0.display())]
    Exchanged(PathBuf),
    /// The end was asked for while files were made.
    #[error("interrupted while the recording was converted")]
    Interrupted,
    /// There is no thread to be had, or no signal.
    #[error(transparent)]
    Io(#[from] io::Error),
}

impl From<runtap_os::output::Error> for Error {
    fn from(error: runtap_os::output::Error) -> Self {
        Self::Files(error.into())
    }
}

impl From<runtap_convert::source::Error> for Error {
    fn from(error: runtap_convert::source::Error) -> Self {
        Self::Files(error.into())
    }
}

impl Error {
    /// What the runtime said, or why it said nothing: the process is looked at now.
    pub fn of_runtime(error: runtap_diag::Error) -> Self {
        let pid = error.unanswered().and_then(Endpoint::process_id);
        match (pid, runtap_target::doctor::explain(&System::current(), &error)) {
            (Some(pid), Some(finding)) => Self::NotReached { pid, finding },
            _ => Self::Runtime(error),
        }
    }

    /// The I/O error behind it, if there is one.
    fn io(&self) -> Option<&io::Error> {
        match self {
            Self::Io(error) | Self::Command { error, .. } | Self::Place { error, .. } => Some(error),
            Self::Files(error) => error.io(),
            _ => None,
        }
    }

    /// Whether the reader of an output went away.
    pub fn is_closed_pipe(&self) -> bool {
        self.io().is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
    }

    /// Whether a disk is full: what was recorded so far is still there.
    pub fn is_full_disk(&self) -> bool {
        self.io().is_some_and(|error| error.kind() == io::ErrorKind::StorageFull)
    }

    /// Whether there was nothing in a recording that could be shown.
    pub fn is_nothing_to_show(&self) -> bool {
        matches!(self, Self::Files(error) if error.is_nothing_to_show())
    }
}
