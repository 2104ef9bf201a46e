//! Why an output can't be written.

use std::io;
use std::path::{Path, PathBuf};

/// Why an output can't be written.
#[derive(Debug, thiserror::Error)]
#[error("can't {act} {}", path.display())]
pub struct Error {
    act: &'static str,
    path: PathBuf,
    /// What stood in the way.
    #[source]
    pub cause: Cause,
}

/// What stood in the way of an output.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Cause {
    /// The file system.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// A folder on the way, which can't be looked into.
    #[error("{}: {error}", path.display())]
    At {
        /// How it was reached.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// A folder on the way is missing.
    #[error("there is no folder {}", .0.display())]
    NoFolder(PathBuf),
    /// Something on the way is no folder.
    #[error("{} is no folder", .0.display())]
    NotAFolder(PathBuf),
    /// Behind `/proc/PID/fd` of a process that we are not.
    #[error("{} is a descriptor of another process", .0.display())]
    Descriptor(PathBuf),
    /// Somebody else may have laid it for us.
    #[error("{} is a {what} of user {owner}{}, which is not followed", path.display(), if *shared { " where others can write" } else { "" })]
    NotFollowed {
        /// How it was reached.
        path: PathBuf,
        /// A link, a pipe, a device.
        what: &'static str,
        /// User id.
        owner: u32,
        /// Whether others than us and root can write to the folder that it is in.
        shared: bool,
    },
    /// A device, a pipe or a mount that is not ours to write to.
    #[error("{} is a {what} of user {owner}, {}", path.display(), if *elsewhere { "in the files of another process" } else { "and not ours" })]
    NotOurs {
        /// How it was reached.
        path: PathBuf,
        /// What it is.
        what: &'static str,
        /// User id.
        owner: u32,
        /// It lies behind `/proc/PID/root` or `/proc/PID/cwd`.
        elsewhere: bool,
    },
    /// A recording is being written into the file that is there.
    #[error("{} is writing to it", pid.map_or_else(|| "another process".to_owned(), |pid| format!("process {pid}")))]
    BeingWritten {
        /// The process, if it is known.
        pid: Option<u32>,
    },
    /// Its name was given to another file while it was written.
    #[error("somebody else has put another file in its place")]
    Exchanged,
}

#[cfg(unix)]
impl From<rustix::io::Errno> for Cause {
    fn from(error: rustix::io::Errno) -> Self {
        Self::Io(error.into())
    }
}

impl Cause {
    /// Whether another name would do: nothing has failed.
    pub fn is_refusal(&self) -> bool {
        !matches!(self, Self::Io(_) | Self::At { .. } | Self::Exchanged)
    }

    /// The next step, where there is one.
    pub fn advice(&self) -> Option<&'static str> {
        match self {
            Self::NotFollowed { .. } => Some("name the file itself, or another folder"),
            Self::Descriptor(_) | Self::NotOurs { .. } => Some("name another file"),
            Self::BeingWritten { .. } => Some("stop that recording first, or name another file"),
            _ => None,
        }
    }
}

impl Error {
    fn new<C: Into<Cause>>(act: &'static str, path: &Path) -> impl FnOnce(C) -> Self {
        let path = path.to_owned();
        move |cause| Self { act, path, cause: cause.into() }
    }

    /// Of a file.
    pub(crate) fn file<C: Into<Cause>>(path: &Path) -> impl FnOnce(C) -> Self {
        Self::new("write", path)
    }

    /// Of some file in a folder.
    pub(crate) fn within<C: Into<Cause>>(folder: &Path) -> impl FnOnce(C) -> Self {
        Self::new("write a file in", folder)
    }

    /// Of a folder.
    pub(crate) fn folder<C: Into<Cause>>(path: &Path) -> impl FnOnce(C) -> Self {
        Self::new("make the folder", path)
    }
}
