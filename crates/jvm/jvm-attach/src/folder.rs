//! A temporary folder in the JVM's root, and whether users other than the JVM's user and root can replace files in
//! it.

use std::io;
use std::path::Path;

use runtap_transport::Folder;
use runtap_transport::linux::{Location, POINT, Root};
use rustix::fs::{FileType, Mode, OFlags, Stat, StatVfsMountFlags};

use crate::jvm::Jvm;

/// The flags that open a folder itself for reading, but neither a link nor a file.
pub(crate) const READ_FOLDER: OFlags =
    OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// The reason why a folder is unsuitable, for display.
pub(crate) type FolderProblem = String;

/// Opens a folder of the JVM.
pub(crate) fn open(jvm: &Jvm, path: &str) -> io::Result<Folder> {
    let root = jvm.dir().root()?;
    let opened = root.folder_by(Path::new(path), &mut |_| Ok(()))?;
    Ok(Folder::opened(opened, Location::Root(path.into()).shown(jvm.dir())))
}

/// Opens a folder below a root for code that is going to be executed as a user: no other user may be able to
/// replace files in it, and the file system must allow execution.
pub(crate) fn open_for_code(root: &Root, user: u32, path: impl AsRef<Path>) -> Result<Folder, FolderProblem> {
    open_safe(root, user, path.as_ref(), true)
}

/// Opens a folder below a root for data of a user: no other user may be able to replace files in it.
pub(crate) fn open_for_data(root: &Root, user: u32, path: impl AsRef<Path>) -> Result<Folder, FolderProblem> {
    open_safe(root, user, path.as_ref(), false)
}

fn open_safe(root: &Root, user: u32, path: &Path, for_code: bool) -> Result<Folder, FolderProblem> {
    let unfit = |why: &dyn std::fmt::Display| format!("{}: {why}", path.display());
    // The owner of `/` controls everything; in a user namespace, that user's number is not 0.
    let top = root.open(Path::new("/"), POINT);
    let top = top.and_then(|top| Ok(rustix::fs::fstat(top)?)).map_err(|error| unfit(&error))?;
    let trusted = [0, user, top.st_uid];
    let mut exposed = false;
    let opened = root.folder_by(path, &mut |entry| {
        exposed |= is_exposed(entry, &trusted);
        Ok(())
    });
    let opened = opened.map_err(|error| unfit(&error))?;
    if exposed {
        return Err(unfit(&"other users can replace files in it"));
    }
    let mount = rustix::fs::fstatvfs(&opened).map_err(|error| unfit(&io::Error::from(error)))?;
    if for_code && mount.f_flag.contains(StatVfsMountFlags::NOEXEC) {
        return Err(unfit(&"mounted with noexec"));
    }
    if mount.f_flag.contains(StatVfsMountFlags::RDONLY) {
        return Err(unfit(&"read-only"));
    }
    Ok(Folder::opened(opened, path.into()))
}

/// Returns whether other users can add or replace names below this folder or link.
fn is_exposed(entry: &Stat, trusted: &[u32]) -> bool {
    let mode = Mode::from_raw_mode(entry.st_mode);
    let is_link = FileType::from_raw_mode(entry.st_mode) == FileType::Symlink;
    let shared = mode.intersects(Mode::WGRP | Mode::WOTH) && !mode.contains(Mode::SVTX);
    !trusted.contains(&entry.st_uid) || !is_link && shared
}
