//! Operations on files in an open directory on Unix. They use its descriptor, so renaming the directory does not
//! matter.

use std::ffi::OsStr;
use std::fs::{File, Metadata};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::Arc;

pub(crate) use rustix::fs::Mode;
use rustix::fs::{AtFlags, FlockOperation, OFlags};
use rustix::io::Errno;

use crate::output::error::Cause;
use crate::output::place::Folder;
use crate::output::shared::can_be_replaced;
use crate::output::system;

/// Readable and writable by the owner.
pub(crate) const PRIVATE: Mode = Mode::RUSR.union(Mode::WUSR);
/// Readable and writable by everyone, subject to the umask.
pub(crate) const PUBLIC: Mode =
    PRIVATE.union(Mode::RGRP).union(Mode::WGRP).union(Mode::ROTH).union(Mode::WOTH);
/// Writable by the owner, and readable by everyone, subject to the umask.
pub(crate) const LOADABLE: Mode = PRIVATE.union(Mode::RGRP).union(Mode::ROTH);
/// Fails if the file exists, and follows no symbolic link.
const NEW: OFlags =
    OFlags::RDWR.union(OFlags::CREATE).union(OFlags::EXCL).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// A reference to an open directory.
pub(crate) type FolderHandle = Arc<OwnedFd>;

impl Folder {
    pub(crate) fn handle(&self) -> FolderHandle {
        Arc::clone(&self.fd)
    }

    /// Creates a new file for reading and writing.
    pub(crate) fn create(&self, name: &OsStr, mode: Mode) -> io::Result<File> {
        Ok(rustix::fs::openat(&self.fd, name, NEW, mode)?.into())
    }

    pub(crate) fn remove(&self, name: &OsStr) {
        remove(&self.fd, name);
    }

    /// Renames a file, replacing any file named `to`.
    pub(crate) fn rename(&self, from: &OsStr, to: &OsStr) -> io::Result<()> {
        Ok(rustix::fs::renameat(&self.fd, from, &self.fd, to)?)
    }

    /// Returns whether `name` refers to `file`.
    pub(crate) fn has(&self, name: &OsStr, file: &File) -> io::Result<bool> {
        let there = rustix::fs::statat(&self.fd, name, AtFlags::SYMLINK_NOFOLLOW)?;
        let ours = rustix::fs::fstat(file)?;
        Ok((there.st_dev, there.st_ino) == (ours.st_dev, ours.st_ino))
    }

    /// Fails if the file is [locked](lock). A file that cannot be opened is ignored.
    pub(crate) fn reject_if_locked(&self, name: &OsStr) -> Result<(), Cause> {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let Ok(file) = rustix::fs::openat(&self.fd, name, flags, Mode::empty()) else { return Ok(()) };
        if rustix::fs::flock(&file, FlockOperation::NonBlockingLockShared) != Err(Errno::WOULDBLOCK) {
            return Ok(());
        }
        let pid = holder(&file);
        // Ignore locks of other users: they must not be able to block a file.
        if pid.is_none() && cfg!(target_os = "linux") {
            return Ok(());
        }
        Err(Cause::BeingWritten { pid })
    }

    /// Returns whether users other than the current one, root and `user` can replace an entry of the directory or of
    /// its parents.
    pub(crate) fn can_be_replaced(&self, user: u32) -> io::Result<bool> {
        can_be_replaced(&self.fd, user)
    }
}

/// Returns the process that has locked a file through a writable descriptor, if it belongs to the current user or root.
///
/// A lock through a read-only descriptor does not count: any reader of the file can take one and then start a set-uid
/// program such as `su`, which keeps it as root. Processes whose descriptors cannot be read do not count either.
/// Source: `proc_locks(5)`, `proc_pid_fdinfo(5)`.
fn holder(file: &OwnedFd) -> Option<u32> {
    let inode = rustix::fs::fstat(file).ok()?.st_ino.to_string();
    let locks = std::fs::read_to_string("/proc/locks").ok()?;
    let us = rustix::process::geteuid().as_raw();
    let is_trusted = |pid: &u32| {
        std::fs::metadata(format!("/proc/{pid}")).is_ok_and(|process| [us, 0].contains(&process.uid()))
    };
    let mut holders = locks.lines().filter_map(|line| locked_by(line, &inode));
    holders.find(|pid| is_trusted(pid) && can_write(*pid, &inode))
}

/// Parses a line such as `1: FLOCK  ADVISORY  WRITE 359 00:13:11691 0 EOF` and returns the process if it locked
/// `inode`.
fn locked_by(line: &str, inode: &str) -> Option<u32> {
    let mut words = line.split_whitespace();
    let (kind, pid) = (words.nth(1)?, words.nth(2)?);
    let is_it = words.next()?.rsplit(':').next()? == inode;
    (kind == "FLOCK" && is_it).then(|| pid.parse().ok())?
}

/// Returns whether a process holds the lock through a writable descriptor.
fn can_write(pid: u32, inode: &str) -> bool {
    let Ok(descriptors) = std::fs::read_dir(format!("/proc/{pid}/fdinfo")) else { return false };
    let mut infos = descriptors.flatten().filter_map(|it| std::fs::read_to_string(it.path()).ok());
    infos.any(|info| has_writable_lock(&info, inode))
}

/// Returns whether a descriptor is writable and holds the lock, according to its `fdinfo`.
fn has_writable_lock(info: &str, inode: &str) -> bool {
    let of = |name| info.lines().filter_map(move |line| line.strip_prefix(name)).map(str::trim);
    let flags = of("flags:").next().and_then(|flags| u32::from_str_radix(flags, 8).ok()).unwrap_or(0);
    let is_writable = flags & OFlags::RWMODE.bits() != OFlags::RDONLY.bits();
    is_writable && of("lock:").any(|lock| locked_by(lock, inode).is_some())
}

/// Locks a file while any descriptor of it is open in this process.
pub(crate) fn lock(file: &File) {
    // File systems without locks ignore concurrent writers.
    let _ = rustix::fs::flock(file, FlockOperation::NonBlockingLockExclusive);
}

pub(crate) fn remove(folder: &FolderHandle, name: &OsStr) {
    // The directory may have been deleted.
    let _ = rustix::fs::unlinkat(folder, name, AtFlags::empty());
}

pub(crate) fn set_mode(file: &File, mode: Mode) {
    // File systems without modes ignore the call.
    let _ = rustix::fs::fchmod(file, mode);
}

pub(crate) fn sync(file: impl AsFd) -> io::Result<()> {
    match rustix::fs::fsync(file) {
        // The file system has no persistent storage.
        Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => Ok(()),
        synced => Ok(synced?),
    }
}

pub(crate) fn random_u64() -> u64 {
    crate::random_u64()
}

/// Opens the file again for reading from its start, even if its name was reused. A clone would share the position with
/// the writer.
pub fn reopened(file: &File, path: &Path) -> io::Result<File> {
    system::reopened(file, path)
}

/// Returns whether two paths refer to the same file.
pub fn is_same_path(a: &Path, b: &Path) -> bool {
    matches!((a.metadata(), b.metadata()), (Ok(a), Ok(b)) if is_same_file(&a, &b))
}

/// Returns whether `path` refers to `file`.
pub fn is_path_of(path: &Path, file: &File) -> bool {
    matches!((path.metadata(), file.metadata()), (Ok(a), Ok(b)) if is_same_file(&a, &b))
}

/// Returns whether two sets of metadata belong to the same file.
pub fn is_same_file(a: &Metadata, b: &Metadata) -> bool {
    (a.dev(), a.ino()) == (b.dev(), b.ino())
}
