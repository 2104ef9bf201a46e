//! Errors of writing outputs.

use std::io;
use std::path::{Path, PathBuf};

/// An error that occurred while writing an output.
#[derive(Debug, thiserror::Error)]
#[error("can't {act} {}", path.display())]
pub struct Error {
    act: &'static str,
    path: PathBuf,
    /// The reason.
    #[source]
    pub cause: Cause,
}

/// The reasons why an output cannot be written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Cause {
    /// An I/O error.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// An I/O error for a directory on the path.
    #[error("{}: {error}", path.display())]
    Directory {
        /// Path of the directory.
        path: PathBuf,
        /// The error.
        error: io::Error,
    },
    /// A directory on the path does not exist.
    #[error("directory {} does not exist", .0.display())]
    MissingDirectory(PathBuf),
    /// A component of the path is not a directory.
    #[error("{} is not a directory", .0.display())]
    NotADirectory(PathBuf),
    /// The path leads through `/proc/PID/fd` of another process.
    #[error("{} is a descriptor of another process", .0.display())]
    Descriptor(PathBuf),
    /// A symbolic link, pipe or device that another user may have put there.
    #[error("{} is a {what} of user {owner}{}, which is not followed", path.display(), if *shared { " where others can write" } else { "" })]
    NotFollowed {
        /// Path of the object.
        path: PathBuf,
        /// The kind of object: "link", "pipe", "device" and so on.
        what: &'static str,
        /// User id of the owner.
        owner: u32,
        /// Whether users other than the current one and root can write to its directory.
        shared: bool,
    },
    /// A device, pipe or mount that the current user does not own.
    #[error("{} is a {what} of user {owner}{}", path.display(), if *elsewhere { ", in the file system of another process" } else { "" })]
    ForeignOwner {
        /// Path of the object.
        path: PathBuf,
        /// The kind of object.
        what: &'static str,
        /// User id of the owner.
        owner: u32,
        /// Whether the path leads through `/proc/PID/root` or `/proc/PID/cwd`.
        elsewhere: bool,
    },
    /// Another process is writing a recording to the existing file.
    #[error("{} is writing to it", pid.map_or_else(|| "another process".to_owned(), |pid| format!("process {pid}")))]
    BeingWritten {
        /// The process, if known.
        pid: Option<u32>,
    },
    /// The temporary file was replaced by another file while it was being written.
    #[error("another process replaced it while it was being written")]
    Replaced,
}

#[cfg(unix)]
impl From<rustix::io::Errno> for Cause {
    fn from(error: rustix::io::Errno) -> Self {
        Self::Io(error.into())
    }
}

impl Cause {
    /// Returns whether the path was rejected, as opposed to an operation that failed: another path may work.
    pub fn is_rejection(&self) -> bool {
        !matches!(self, Self::Io(_) | Self::Directory { .. } | Self::Replaced)
    }

    /// Suggests what to do, if anything.
    pub fn advice(&self) -> Option<&'static str> {
        match self {
            Self::NotFollowed { .. } => Some("specify the file itself, or another directory"),
            Self::Descriptor(_) | Self::ForeignOwner { .. } => Some("specify another file"),
            Self::BeingWritten { .. } => Some("stop that recording first, or specify another file"),
            _ => None,
        }
    }
}

impl Error {
    fn new<C: Into<Cause>>(act: &'static str, path: &Path) -> impl FnOnce(C) -> Self {
        let path = path.to_owned();
        move |cause| Self { act, path, cause: cause.into() }
    }

    /// An error about a file.
    pub(crate) fn file<C: Into<Cause>>(path: &Path) -> impl FnOnce(C) -> Self {
        Self::new("write", path)
    }

    /// An error about an unnamed file in a directory.
    pub(crate) fn within<C: Into<Cause>>(folder: &Path) -> impl FnOnce(C) -> Self {
        Self::new("write a file in", folder)
    }

    /// An error about a directory.
    pub(crate) fn folder<C: Into<Cause>>(path: &Path) -> impl FnOnce(C) -> Self {
        Self::new("create the directory", path)
    }
}
