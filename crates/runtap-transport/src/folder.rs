//! A folder that is held by a descriptor: what is made in it and removed from it is in this folder, whatever becomes of its
//! name.

use std::ffi::OsStr;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::{AtFlags, OFlags, Stat};

#[cfg(target_os = "linux")]
const FOLDER: OFlags = crate::root::POINT.union(OFlags::DIRECTORY);
#[cfg(not(target_os = "linux"))]
const FOLDER: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

/// A folder that is held by a descriptor. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Folder {
    opened: Arc<OwnedFd>,
    path: PathBuf,
    /// Whether the path is one that we were given, and not another process's.
    #[cfg_attr(not(target_os = "linux"), allow(dead_code, reason = "binding goes by the path there"))]
    named: bool,
}

impl Folder {
    /// The folder at a path of ours; links are followed, and below `/proc/PID/root` they stay there. An empty path is the
    /// working directory.
    ///
    /// # Errors
    /// As opening has.
    pub fn open(path: &Path) -> io::Result<Self> {
        let path = if path.as_os_str().is_empty() { Path::new(".") } else { path };
        #[cfg(target_os = "linux")]
        let (folder, named) = (crate::root::open_named(path, FOLDER)?, crate::root::within(path).is_none());
        #[cfg(not(target_os = "linux"))]
        let (folder, named) =
            (rustix::fs::openat(rustix::fs::CWD, path, FOLDER, rustix::fs::Mode::empty())?, true);
        // The working directory may change before the folder is used by its name.
        Ok(Self { opened: Arc::new(folder), path: std::path::absolute(path)?, named })
    }

    /// The folder behind a descriptor, and what it is called for people.
    #[cfg(target_os = "linux")]
    pub(crate) fn opened(folder: OwnedFd, path: PathBuf) -> Self {
        Self { opened: Arc::new(folder), path, named: false }
    }

    /// What it is called. For messages; its descriptor counts.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether it was opened by its path, so that whoever wants to find something in it may use that.
    #[cfg(target_os = "linux")]
    pub(crate) fn is_named(&self) -> bool {
        self.named
    }

    /// What an entry is; a link is not followed.
    ///
    /// # Errors
    /// As `fstatat` has.
    pub fn stat(&self, name: &OsStr) -> io::Result<Stat> {
        Ok(rustix::fs::statat(&self.opened, name, AtFlags::SYMLINK_NOFOLLOW)?)
    }

    /// Whether an entry is a socket on which nobody listens: only then its file is of no use. A link is not followed, and
    /// nothing but a socket is dialled.
    pub fn is_dead_socket(&self, name: &OsStr) -> bool {
        crate::unix::stale_owner(self, name).is_some()
    }

    /// Removes an entry that is no folder.
    ///
    /// # Errors
    /// As `unlinkat` has.
    pub fn remove(&self, name: &OsStr) -> io::Result<()> {
        Ok(rustix::fs::unlinkat(&self.opened, name, AtFlags::empty())?)
    }
}

impl AsFd for Folder {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.opened.as_fd()
    }
}
