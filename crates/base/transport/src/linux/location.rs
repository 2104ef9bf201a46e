//! Locations of files in the file systems of other processes.

use std::ffi::OsString;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;

use super::process::ProcDir;
use super::root::{Root, open_beneath, open_beneath_no_symlinks};

/// A path, and the directory that it is relative to.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Location {
    /// A path in the file system of this process.
    Own(PathBuf),
    /// A path below the root directory of a process.
    Root(PathBuf),
    /// A path relative to the working directory of a process.
    WorkingDirectory(PathBuf),
}

impl Location {
    /// Creates the location of `path` as seen by a process. `foreign` is whether its mounts or its root differ from
    /// those of this process.
    pub fn of(path: &Path, foreign: bool) -> Self {
        match path.is_absolute() {
            true if foreign => Self::Root(path.to_owned()),
            true => Self::Own(path.to_owned()),
            false => Self::WorkingDirectory(path.to_owned()),
        }
    }

    /// Returns the location of an entry of this directory.
    #[must_use]
    pub fn join(&self, name: impl AsRef<Path>) -> Self {
        match self {
            Self::Own(path) => Self::Own(path.join(name)),
            Self::Root(path) => Self::Root(path.join(name)),
            Self::WorkingDirectory(path) => Self::WorkingDirectory(path.join(name)),
        }
    }

    /// Opens the file. `process` is the process whose root or working directory the path is relative to.
    ///
    /// # Errors
    /// If the file cannot be opened.
    pub fn open(&self, process: &ProcDir, flags: OFlags) -> io::Result<OwnedFd> {
        match self {
            Self::Own(path) => Root::own()?.open(path, flags),
            Self::Root(path) => process.root()?.open(path, flags),
            Self::WorkingDirectory(path) => open_beneath(process.working_directory()?.as_fd(), path, flags),
        }
    }

    /// Opens the file if its path contains no symbolic link.
    ///
    /// # Errors
    /// If the file cannot be opened; `ELOOP` for a symbolic link.
    pub fn open_no_symlinks(&self, process: &ProcDir, flags: OFlags) -> io::Result<OwnedFd> {
        match self {
            Self::Own(path) => Root::own()?.open_no_symlinks(path, flags),
            Self::Root(path) => process.root()?.open_no_symlinks(path, flags),
            Self::WorkingDirectory(path) => {
                open_beneath_no_symlinks(process.working_directory()?.as_fd(), path, flags)
            }
        }
    }

    /// Returns the location of the parent directory, and the file name.
    pub fn split(&self) -> Option<(Self, OsString)> {
        let parts = |path: &Path| {
            let folder = path.parent()?;
            // A path without a directory is relative to the working directory.
            let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
            Some((folder.to_owned(), path.file_name()?.to_owned()))
        };
        Some(match self {
            Self::Own(path) => parts(path).map(|(folder, name)| (Self::Own(folder), name))?,
            Self::Root(path) => parts(path).map(|(folder, name)| (Self::Root(folder), name))?,
            Self::WorkingDirectory(path) => {
                parts(path).map(|(folder, name)| (Self::WorkingDirectory(folder), name))?
            }
        })
    }

    /// Returns whether the path is in the file system of this process.
    pub fn is_own(&self) -> bool {
        matches!(self, Self::Own(_))
    }

    /// Returns the path to display, which goes through `/proc` unless it is in the file system of this process. Not
    /// used to open the file.
    pub fn shown(&self, process: &ProcDir) -> PathBuf {
        match self {
            Self::Own(path) => path.clone(),
            Self::Root(path) => {
                let below = path.strip_prefix("/").unwrap_or(path);
                process.shown("root").join(below)
            }
            Self::WorkingDirectory(path) => process.shown("cwd").join(path),
        }
    }
}

/// Returns the process and its path that [`Location::shown`] displays as `path`.
pub fn seen_by(path: &Path) -> Option<(u32, PathBuf)> {
    let (pid, below) = path.strip_prefix("/proc").ok()?.to_str()?.split_once('/')?;
    let pid = pid.parse().ok()?;
    match below.split_once('/').unwrap_or((below, "")) {
        ("root", below) => Some((pid, Path::new("/").join(below))),
        ("cwd", below) => Some((pid, below.into())),
        _ => None,
    }
}
