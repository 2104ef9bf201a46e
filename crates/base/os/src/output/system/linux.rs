//! Examines files without opening them, through `O_PATH` descriptors, which keep referring to the examined file. The
//! functions are those of `system/bsd.rs`, which is for systems without such descriptors.
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

/// Flags for opening a directory without reading it.
pub(crate) const FOLDER: OFlags = OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);
const POINT: OFlags = OFlags::PATH.union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// The object with a given name.
pub(crate) enum Examined {
    Nothing,
    Link,
    /// A link in `/proc` that only the kernel can resolve.
    MagicLink,
    Folder(OwnedFd),
    Other(OtherFile),
}

/// An examined file that is neither a directory nor a link.
pub(crate) struct OtherFile {
    fd: OwnedFd,
    pub(crate) stat: Stat,
}

pub(crate) fn look(folder: &OwnedFd, _path: &Path, name: &OsStr) -> io::Result<Examined> {
    let fd = match openat(folder, name, POINT, Mode::empty()) {
        Err(Errno::NOENT) => return Ok(Examined::Nothing),
        opened => opened?,
    };
    let stat = fstat(&fd)?;
    Ok(match FileType::from_raw_mode(stat.st_mode) {
        FileType::Symlink if fstatfs(folder)?.f_type == PROC_SUPER_MAGIC => Examined::MagicLink,
        FileType::Symlink => Examined::Link,
        FileType::Directory => Examined::Folder(fd),
        _ => Examined::Other(OtherFile { fd, stat }),
    })
}

/// Returns the metadata and the text of the same link.
pub(crate) fn link(folder: &OwnedFd, name: &OsStr) -> io::Result<(Stat, CString)> {
    let link = openat(folder, name, POINT, Mode::empty())?;
    Ok((fstat(&link)?, readlinkat(&link, "", Vec::new())?))
}

/// Returns whether the entries of a directory are open files of this process or of one of its threads.
pub(crate) fn has_own_descriptors(folder: &Path) -> bool {
    let own = Path::new("/proc").join(std::process::id().to_string());
    folder.starts_with(own) || folder.starts_with("/proc/self") || folder.starts_with("/proc/thread-self")
}

impl OtherFile {
    /// Returns whether the file is a mount point, like single files mounted into a container, which cannot be replaced.
    pub(crate) fn is_mount(&self) -> bool {
        // Not reported before Linux 5.8.
        statx(&self.fd, "", AtFlags::EMPTY_PATH, StatxFlags::empty())
            .is_ok_and(|stat| stat.stx_attributes.contains(StatxAttributes::MOUNT_ROOT))
    }

    /// Opens the examined file, even if another file has its name meanwhile.
    pub(crate) fn open(&self, _folder: &OwnedFd, _name: &OsStr) -> io::Result<File> {
        let very = format!("/proc/self/fd/{}", self.fd.as_raw_fd());
        let flags = OFlags::WRONLY | OFlags::NOCTTY | OFlags::CLOEXEC;
        Ok(rustix::fs::open(very, flags, Mode::empty())?.into())
    }
}

/// Returns whether a directory has an access list.
pub(crate) fn has_access_list(folder: BorrowedFd<'_>) -> bool {
    // Attributes of an `O_PATH` descriptor can only be read through a path.
    let path = format!("/proc/self/fd/{}", folder.as_raw_fd());
    let none: &mut [u8] = &mut [];
    !matches!(getxattr(path, "system.posix_acl_access", none), Err(Errno::NODATA | Errno::OPNOTSUPP))
}

/// Opens the file again for reading from its start, even if its name was reused.
pub(crate) fn reopened(file: &File, _path: &Path) -> io::Result<File> {
    File::open(format!("/proc/self/fd/{}", file.as_raw_fd()))
}
