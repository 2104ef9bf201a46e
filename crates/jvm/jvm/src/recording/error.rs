//! The errors of recordings.

use std::collections::BTreeSet;
use std::io;
use std::path::PathBuf;

use thiserror::Error;

use crate::recording::part::UnknownPart;

/// The maximum number of threads in a hint.
const MAX_THREADS: usize = 20;

/// An error that occurs when a recording is read or written.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum Error {
    /// A file or folder cannot be read.
    #[error("cannot read {}", path.display())]
    Read {
        /// The file or folder.
        path: PathBuf,
        /// The cause.
        #[source]
        error: io::Error,
    },
    /// The path is not a recording.
    #[error("{} is not a recording of Bytefrog connections: it has no files such as agent0.ctl.a2h.bin", .0.display())]
    NoRecording(PathBuf),
    /// The control connection of an agent is missing, whose first bytes determine the dialect.
    #[error("{}: the bytes that the agent sent on its control connection are missing ({agent}.ctl.a2h.bin)", path.display())]
    NoControl {
        /// The folder of the recording.
        path: PathBuf,
        /// The agent.
        agent: String,
    },
    /// The control connection does not start with the hello of a known version.
    #[error("{} does not start with the hello of an agent", .0.display())]
    NoHello(PathBuf),
    /// The folder already contains a recording.
    #[error("{} already contains a recording: choose a new or an empty directory", .0.display())]
    AlreadyRecorded(PathBuf),
    /// The parent folder does not exist.
    #[error("directory {} does not exist", .0.display())]
    NoParent(PathBuf),
    /// The recording has no agent with this name.
    #[error("{} has no agent '{agent}'", path.display())]
    NoAgent {
        /// The recording.
        path: PathBuf,
        /// The name.
        agent: String,
        /// The names of the agents that exist.
        available: Vec<String>,
    },
    /// No agent of the recording has a thread with this id.
    #[error("{recording} has no thread {thread}")]
    NoThread {
        /// The recording, as the user specified it.
        recording: String,
        /// The id.
        thread: u32,
        /// The ids of the threads that exist.
        known: BTreeSet<u32>,
    },
    /// No agent of the recording has the part.
    #[error("{}: {error}", path.display())]
    NoPart {
        /// The recording.
        path: PathBuf,
        /// The reason.
        error: UnknownPart,
    },
    /// A folder or a file cannot be created.
    #[error(transparent)]
    Output(#[from] runtap_os::output::Error),
}

impl Error {
    /// Returns the next step. `None` if unknown.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::NoRecording(_) => Some("'runtap jvm hq --record DIR' creates a recording.".to_owned()),
            Self::NoAgent { available, .. } => Some(format!("Valid values: {}", available.join(", "))),
            Self::NoThread { known, .. } if !known.is_empty() => {
                let names: Vec<String> = known.iter().take(MAX_THREADS).map(ToString::to_string).collect();
                let more = if known.len() > MAX_THREADS { ", …" } else { "" };
                Some(format!("it has {}{more}; 'report threads' has their names", names.join(", ")))
            }
            _ => None,
        }
    }

    /// Returns whether the input is wrong, rather than the system failing.
    pub fn is_rejection(&self) -> bool {
        match self {
            Self::Read { error, .. } => matches!(
                error.kind(),
                io::ErrorKind::NotFound
                    | io::ErrorKind::PermissionDenied
                    | io::ErrorKind::IsADirectory
                    | io::ErrorKind::InvalidInput
            ),
            Self::Output(error) => error.cause.is_rejection(),
            _ => true,
        }
    }
}
