//! How Linux lets a program look at a file without opening it: by a descriptor that only points (`O_PATH`), which stays on
//! what was looked at. The same functions as `system/bsd.rs`, which is for systems that have no such thing.
//! Source: `open(2)`, `proc(5)`, `acl(5)`, `statx(2)`.

use std::ffi::{CString, OsStr};
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};
use std::path::Path;

use rustix::fs::{
    AtFlags, FileType, Mode, OFlags, PROC_SUPER_MAGIC, Stat, StatxAttributes, StatxFlags, fstat, fstatfs,
    getxattr, openat, readlinkat, statx,
};
use rustix::io::Errno;

/// A folder on the way, of which nothing is read.
pub(crate) const FOLDER: OFlags = OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);
const POINT: OFlags = OFlags::PATH.union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// What is under a name.
pub(crate) enum Seen {
    Nothing,
    Link,
    /// The kernel knows where it leads, its text does not say it.
    MagicLink,
    Folder(OwnedFd),
    Other(Thing),
}

/// A file that is no folder and no link, as it was looked at.
pub(crate) struct Thing {
    fd: OwnedFd,
    pub(crate) stat: Stat,
}

pub(crate) fn look(folder: &OwnedFd, _path: &Path, name: &OsStr) -> io::Result<Seen> {
    let fd = match openat(folder, name, POINT, Mode::empty()) {
        Err(Errno::NOENT) => return Ok(Seen::Nothing),
        opened => opened?,
    };
    let stat = fstat(&fd)?;
    Ok(match FileType::from_raw_mode(stat.st_mode) {
        FileType::Symlink if fstatfs(folder)?.f_type == PROC_SUPER_MAGIC => Seen::MagicLink,
        FileType::Symlink => Seen::Link,
        FileType::Directory => Seen::Folder(fd),
        _ => Seen::Other(Thing { fd, stat }),
    })
}

/// What is known of a link, and its text: of one and the same link.
pub(crate) fn link(folder: &OwnedFd, name: &OsStr) -> io::Result<(Stat, CString)> {
    let link = openat(folder, name, POINT, Mode::empty())?;
    Ok((fstat(&link)?, readlinkat(&link, "", Vec::new())?))
}

/// Whether what is in a folder stands for open files of ourselves, or of one of our threads.
pub(crate) fn has_own_descriptors(folder: &Path) -> bool {
    let own = Path::new("/proc").join(std::process::id().to_string());
    folder.starts_with(own) || folder.starts_with("/proc/self") || folder.starts_with("/proc/thread-self")
}

impl Thing {
    /// Whether it has a mount of its own, as a container's single files have: it can't be replaced by another.
    pub(crate) fn is_mount(&self) -> bool {
        // Before Linux 5.8 that isn't told.
        statx(&self.fd, "", AtFlags::EMPTY_PATH, StatxFlags::empty())
            .is_ok_and(|stat| stat.stx_attributes.contains(StatxAttributes::MOUNT_ROOT))
    }

    /// Opens the very thing that was looked at, whatever has this name by now.
    pub(crate) fn open(&self, _folder: &OwnedFd, _name: &OsStr) -> io::Result<File> {
        let very = format!("/proc/self/fd/{}", self.fd.as_raw_fd());
        let flags = OFlags::WRONLY | OFlags::NOCTTY | OFlags::CLOEXEC;
        Ok(rustix::fs::open(very, flags, Mode::empty())?.into())
    }
}

/// Whether a folder has an access list.
pub(crate) fn has_access_list(folder: BorrowedFd<'_>) -> bool {
    // The folder is only pointed at, so it has no attributes but by a path.
    let path = format!("/proc/self/fd/{}", folder.as_raw_fd());
    let none: &mut [u8] = &mut [];
    !matches!(getxattr(path, "system.posix_acl_access", none), Err(Errno::NODATA | Errno::OPNOTSUPP))
}

/// The same file for reading, from its beginning, whatever has its name by now.
pub(crate) fn reopened(file: &File, _path: &Path) -> io::Result<File> {
    File::open(format!("/proc/self/fd/{}", file.as_raw_fd()))
}
