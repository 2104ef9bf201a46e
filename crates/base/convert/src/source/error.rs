//! Errors of reading recordings.

use std::io;
use std::path::PathBuf;

/// An error that occurred while reading a recording.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The file does not exist or cannot be opened.
    #[error("can't read {}: {error}", path.display())]
    Open {
        /// Path, as specified.
        path: PathBuf,
        /// The error.
        error: io::Error,
    },
    /// The path is a directory.
    #[error("{} is a directory, not a recording", path.display())]
    Folder {
        /// Path, as specified.
        path: PathBuf,
    },
    /// Reading failed after opening.
    #[error("can't read {}", path.display())]
    Read {
        /// Path, as specified.
        path: PathBuf,
        /// The error.
        #[source]
        error: io::Error,
    },
    /// The file is in a known format of another tool.
    #[error("{} is {}, not a recording (nettrace)", path.display(), kind.name())]
    Foreign {
        /// Path, as specified.
        path: PathBuf,
        /// Format of the file.
        kind: crate::source::ForeignFile,
    },
    /// The file does not start like a recording.
    #[error("{} can't be read: {error}", path.display())]
    NoRecording {
        /// Path, as specified.
        path: PathBuf,
        /// What is wrong, and at which offset.
        error: runtap_nettrace::Error,
    },
    /// The file starts like a heap dump, but can't be read as one.
    #[error("{} can't be read as a heap dump: {error}", path.display())]
    Heap {
        /// Path, as specified.
        path: PathBuf,
        /// What is wrong, and at which offset.
        error: runtap_heap::DecodeError,
    },
    /// The file ends before the end of its header.
    #[error("{} ends before its header: it has no events", path.display())]
    NoHeader {
        /// Path, as specified.
        path: PathBuf,
    },
    /// The recording is a pipe, but must be read twice.
    #[error("{} is not a regular file, and the method names for stacks are at its end", path.display())]
    OnceOnly {
        /// Path, as specified.
        path: PathBuf,
    },
}
