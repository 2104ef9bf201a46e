//! What is done to files in an open folder on Unix: by its descriptor, whatever becomes of its path.

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
use crate::output::shared::can_be_exchanged;
use crate::output::system;

/// Read and write for us alone.
pub(crate) const PRIVATE: Mode = Mode::RUSR.union(Mode::WUSR);
/// Read and write for everybody whom the process's mask lets.
pub(crate) const PUBLIC: Mode =
    PRIVATE.union(Mode::RGRP).union(Mode::WGRP).union(Mode::ROTH).union(Mode::WOTH);
/// Read and write for us, and read for everybody whom the process's mask lets.
pub(crate) const LOADABLE: Mode = PRIVATE.union(Mode::RGRP).union(Mode::ROTH);
/// No file that is there, and no link.
const NEW: OFlags =
    OFlags::RDWR.union(OFlags::CREATE).union(OFlags::EXCL).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// A folder that stays the one it is.
pub(crate) type FolderHandle = Arc<OwnedFd>;

impl Folder {
    pub(crate) fn handle(&self) -> FolderHandle {
        Arc::clone(&self.fd)
    }

    /// A file that was not there, to write and to read.
    pub(crate) fn create(&self, name: &OsStr, mode: Mode) -> io::Result<File> {
        Ok(rustix::fs::openat(&self.fd, name, NEW, mode)?.into())
    }

    pub(crate) fn remove(&self, name: &OsStr) {
        remove(&self.fd, name);
    }

    /// In place of what has the new name.
    pub(crate) fn rename(&self, from: &OsStr, to: &OsStr) -> io::Result<()> {
        Ok(rustix::fs::renameat(&self.fd, from, &self.fd, to)?)
    }

    /// Whether a name is that of this file.
    pub(crate) fn has(&self, name: &OsStr, file: &File) -> io::Result<bool> {
        let there = rustix::fs::statat(&self.fd, name, AtFlags::SYMLINK_NOFOLLOW)?;
        let ours = rustix::fs::fstat(file)?;
        Ok((there.st_dev, there.st_ino) == (ours.st_dev, ours.st_ino))
    }

    /// Refuses the name of a file that is [locked](lock). One that can't be opened is not looked at.
    pub(crate) fn refuse_a_writer(&self, name: &OsStr) -> Result<(), Cause> {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let Ok(file) = rustix::fs::openat(&self.fd, name, flags, Mode::empty()) else { return Ok(()) };
        if rustix::fs::flock(&file, FlockOperation::NonBlockingLockShared) != Err(Errno::WOULDBLOCK) {
            return Ok(());
        }
        let pid = holder(&file);
        // The holder is not a process of this user: other users must not be able to block a file by locking it.
        if pid.is_none() && cfg!(target_os = "linux") {
            return Ok(());
        }
        Err(Cause::BeingWritten { pid })
    }

    /// Whether anybody but us, root and this user can put something else under a path in it.
    pub(crate) fn can_be_exchanged(&self, user: u32) -> io::Result<bool> {
        can_be_exchanged(&self.fd, user)
    }
}

/// The process of our user, or root's, that has locked a file through a descriptor that is open for writing, according to the
/// kernel. A lock through a read-only descriptor does not count: any reader of the file can take one, and start a set-uid program
/// such as `su`, which keeps it as root. Nor does the lock of a process whose descriptors we may not examine.
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

/// Who has locked a file, by a line such as `1: FLOCK  ADVISORY  WRITE 359 00:13:11691 0 EOF`.
fn locked_by(line: &str, inode: &str) -> Option<u32> {
    let mut words = line.split_whitespace();
    let (kind, pid) = (words.nth(1)?, words.nth(2)?);
    let is_it = words.next()?.rsplit(':').next()? == inode;
    (kind == "FLOCK" && is_it).then(|| pid.parse().ok())?
}

/// Whether a process has the lock by a descriptor that it can write to.
fn can_write(pid: u32, inode: &str) -> bool {
    let Ok(descriptors) = std::fs::read_dir(format!("/proc/{pid}/fdinfo")) else { return false };
    let mut infos = descriptors.flatten().filter_map(|it| std::fs::read_to_string(it.path()).ok());
    infos.any(|info| has_writable_lock(&info, inode))
}

/// Whether a descriptor has the lock and can be written to, by its `fdinfo`.
fn has_writable_lock(info: &str, inode: &str) -> bool {
    let of = |name| info.lines().filter_map(move |line| line.strip_prefix(name)).map(str::trim);
    let flags = of("flags:").next().and_then(|flags| u32::from_str_radix(flags, 8).ok()).unwrap_or(0);
    let is_writable = flags & OFlags::RWMODE.bits() != OFlags::RDONLY.bits();
    is_writable && of("lock:").any(|lock| locked_by(lock, inode).is_some())
}

/// Locks a file that is being written, as long as it is open anywhere in this process.
pub(crate) fn lock(file: &File) {
    // A file system without locks: nothing is noticed then.
    let _ = rustix::fs::flock(file, FlockOperation::NonBlockingLockExclusive);
}

pub(crate) fn remove(folder: &FolderHandle, name: &OsStr) {
    // The folder may be gone with all that is in it.
    let _ = rustix::fs::unlinkat(folder, name, AtFlags::empty());
}

pub(crate) fn set_mode(file: &File, mode: Mode) {
    // A file system without modes has none to keep, and ours is the strictest.
    let _ = rustix::fs::fchmod(file, mode);
}

pub(crate) fn sync(file: impl AsFd) -> io::Result<()> {
    match rustix::fs::fsync(file) {
        // A file system that has nothing to write to.
        Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => Ok(()),
        synced => Ok(synced?),
    }
}

pub(crate) fn random_u64() -> u64 {
    crate::random_u64()
}

/// The same file for reading, from its beginning, whatever has its name by now. A clone would share the place in it with
/// whoever still writes.
pub fn reopened(file: &File, path: &Path) -> io::Result<File> {
    system::reopened(file, path)
}

/// Whether two paths are those of the same file.
pub fn is_same_path(a: &Path, b: &Path) -> bool {
    matches!((a.metadata(), b.metadata()), (Ok(a), Ok(b)) if same(&a, &b))
}

/// Whether a path is that of this file.
pub fn is_path_of(path: &Path, file: &File) -> bool {
    matches!((path.metadata(), file.metadata()), (Ok(a), Ok(b)) if same(&a, &b))
}

/// Whether two are the same file, whatever it is called.
pub fn same(a: &Metadata, b: &Metadata) -> bool {
    (a.dev(), a.ino()) == (b.dev(), b.ino())
}
