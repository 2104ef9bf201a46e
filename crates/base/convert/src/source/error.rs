//! Why a recording can't be read.

use std::io;
use std::path::PathBuf;

/// Why a recording can't be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// There is no such file, or it may not be opened.
    #[error("can't read {}: {error}", path.display())]
    Open {
        /// As it was given.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// It is a folder.
    #[error("{} is a directory, not a recording", path.display())]
    Folder {
        /// As it was given.
        path: PathBuf,
    },
    /// Reading failed later.
    #[error("can't read {}", path.display())]
    Read {
        /// As it was given.
        path: PathBuf,
        /// Why.
        #[source]
        error: io::Error,
    },
    /// It is of another tool.
    #[error("{} is {}, not a recording (nettrace)", path.display(), kind.name())]
    Foreign {
        /// As it was given.
        path: PathBuf,
        /// What it is.
        kind: crate::source::ForeignFile,
    },
    /// It does not begin like a recording.
    #[error("{} can't be read: {error}", path.display())]
    NoRecording {
        /// As it was given.
        path: PathBuf,
        /// What is wrong, and where.
        error: runtap_nettrace::Error,
    },
    /// Not even its header is there.
    #[error("{} ends before its header: it has no events", path.display())]
    NoHeader {
        /// As it was given.
        path: PathBuf,
    },
    /// It comes through a pipe, and had to be read a second time.
    #[error("{} is not a regular file, and the method names for stacks are at its end", path.display())]
    OnceOnly {
        /// As it was given.
        path: PathBuf,
    },
}
