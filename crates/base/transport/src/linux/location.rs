//! Where something lies, and in whose file system: the only form in which paths of other processes are kept here.

use std::ffi::OsString;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;

use super::process::ProcDir;
use super::root::{Root, open_beneath, open_beneath_no_symlinks};

/// A path, and from where it counts.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Location {
    /// Our own file system.
    Ours(PathBuf),
    /// The root directory of a process.
    Root(PathBuf),
    /// The working directory of a process: relative.
    WorkingDirectory(PathBuf),
}

impl Location {
    /// A path as a process has it that has our mounts and our root, or does not (`foreign`).
    pub fn of(path: &Path, foreign: bool) -> Self {
        match path.is_absolute() {
            true if foreign => Self::Root(path.to_owned()),
            true => Self::Ours(path.to_owned()),
            false => Self::WorkingDirectory(path.to_owned()),
        }
    }

    /// An entry of this folder.
    #[must_use]
    pub fn join(&self, name: impl AsRef<Path>) -> Self {
        match self {
            Self::Ours(path) => Self::Ours(path.join(name)),
            Self::Root(path) => Self::Root(path.join(name)),
            Self::WorkingDirectory(path) => Self::WorkingDirectory(path.join(name)),
        }
    }

    /// Opens it. `process` is whose root or working directory is meant.
    ///
    /// # Errors
    /// As opening has.
    pub fn open(&self, process: &ProcDir, flags: OFlags) -> io::Result<OwnedFd> {
        match self {
            Self::Ours(path) => Root::ours()?.open(path, flags),
            Self::Root(path) => process.root()?.open(path, flags),
            Self::WorkingDirectory(path) => open_beneath(process.working_directory()?.as_fd(), path, flags),
        }
    }

    /// The same where no link is on the way.
    ///
    /// # Errors
    /// As opening has, and ELOOP for a link.
    pub fn open_no_symlinks(&self, process: &ProcDir, flags: OFlags) -> io::Result<OwnedFd> {
        match self {
            Self::Ours(path) => Root::ours()?.open_no_symlinks(path, flags),
            Self::Root(path) => process.root()?.open_no_symlinks(path, flags),
            Self::WorkingDirectory(path) => {
                open_beneath_no_symlinks(process.working_directory()?.as_fd(), path, flags)
            }
        }
    }

    /// Its folder, and its name there.
    pub fn split(&self) -> Option<(Self, OsString)> {
        let parts = |path: &Path| {
            let folder = path.parent()?;
            // Without a folder in it a path is of the working directory.
            let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
            Some((folder.to_owned(), path.file_name()?.to_owned()))
        };
        Some(match self {
            Self::Ours(path) => parts(path).map(|(folder, name)| (Self::Ours(folder), name))?,
            Self::Root(path) => parts(path).map(|(folder, name)| (Self::Root(folder), name))?,
            Self::WorkingDirectory(path) => {
                parts(path).map(|(folder, name)| (Self::WorkingDirectory(folder), name))?
            }
        })
    }

    /// Whether it is the same whoever's it is.
    pub fn is_ours(&self) -> bool {
        matches!(self, Self::Ours(_))
    }

    /// As people and other tools would write it: through `/proc`, where it is not ours. Nothing of ours opens that.
    pub fn shown(&self, process: &ProcDir) -> PathBuf {
        match self {
            Self::Ours(path) => path.clone(),
            Self::Root(path) => {
                let below = path.strip_prefix("/").unwrap_or(path);
                process.shown("root").join(below)
            }
            Self::WorkingDirectory(path) => process.shown("cwd").join(path),
        }
    }
}

/// Whose file system a path is of that was shown so, and what it is called there: the way back from [`Location::shown`].
pub fn seen_by(path: &Path) -> Option<(u32, PathBuf)> {
    let (pid, below) = path.strip_prefix("/proc").ok()?.to_str()?.split_once('/')?;
    let pid = pid.parse().ok()?;
    match below.split_once('/').unwrap_or((below, "")) {
        ("root", below) => Some((pid, Path::new("/").join(below))),
        ("cwd", below) => Some((pid, below.into())),
        _ => None,
    }
}
