//! Why a recording can't be read or made.

use std::io;
use std::path::PathBuf;

use thiserror::Error;

/// Why a recording can't be read or made.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum Error {
    /// A file or folder can't be read.
    #[error("can't read {}", path.display())]
    Read {
        /// Which one.
        path: PathBuf,
        /// Why.
        #[source]
        error: io::Error,
    },
    /// There is nothing of a recording.
    #[error("{} is no recording of Bytefrog connections: there are no files like agent0.ctl.a2h.bin", .0.display())]
    NoRecording(PathBuf),
    /// What an agent speaks stands in the first bytes of its control connection.
    #[error("{}: what the agent has sent on its control connection is missing ({agent}.ctl.a2h.bin)", path.display())]
    NoControl {
        /// Where it was looked for.
        path: PathBuf,
        /// The agent.
        agent: String,
    },
    /// The control connection does not begin with the hello of a version that is known.
    #[error("{} does not begin with the hello of an agent", .0.display())]
    NoHello(PathBuf),
    /// A folder has a recording already.
    #[error("{} has a recording already: choose a new or an empty folder", .0.display())]
    Taken(PathBuf),
    /// The folder that it is to be made in is not there.
    #[error("directory {} does not exist", .0.display())]
    NoParent(PathBuf),
    /// A folder or a file can't be made.
    #[error(transparent)]
    Output(#[from] runtap_os::output::Error),
}

impl Error {
    /// Whether what was given is wrong, rather than the system that was asked.
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
