//! A temporary folder as the JVM sees it, resolved in its own root, and whether anybody but the JVM's user and root can
//! exchange what is created in it.

use std::io;
use std::path::Path;

use runtap_transport::Folder;
use runtap_transport::linux::{Location, POINT, Root};
use rustix::fs::{FileType, Mode, OFlags, Stat, StatVfsMountFlags};

use crate::jvm::Jvm;

/// To open a folder itself for reading: neither a link nor a file.
pub(crate) const READ_FOLDER: OFlags =
    OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// What is wrong with a folder, for people.
pub(crate) type Unfit = String;

/// Opens a folder of the JVM.
pub(crate) fn open(jvm: &Jvm, path: &str) -> io::Result<Folder> {
    let root = jvm.dir().root()?;
    let opened = root.folder_by(Path::new(path), &mut |_| Ok(()))?;
    Ok(Folder::opened(opened, Location::Root(path.into()).shown(jvm.dir())))
}

/// A folder below a root for something that is going to be executed as a user: nobody else may be able to exchange it, and
/// the file system must allow it.
pub(crate) fn open_for_code(root: &Root, user: u32, path: impl AsRef<Path>) -> Result<Folder, Unfit> {
    let path = path.as_ref();
    let unfit = |why: &dyn std::fmt::Display| format!("{}: {why}", path.display());
    // Who owns `/` has everything there: in a user namespace that is not root by its number.
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
        return Err(unfit(&"other users can exchange what is in it"));
    }
    let mount = rustix::fs::fstatvfs(&opened).map_err(|error| unfit(&io::Error::from(error)))?;
    if mount.f_flag.contains(StatVfsMountFlags::NOEXEC) {
        return Err(unfit(&"mounted with noexec"));
    }
    if mount.f_flag.contains(StatVfsMountFlags::RDONLY) {
        return Err(unfit(&"read-only"));
    }
    Ok(Folder::opened(opened, path.into()))
}

/// Whether others can take or exchange names behind this folder or link.
fn is_exposed(entry: &Stat, trusted: &[u32]) -> bool {
    let mode = Mode::from_raw_mode(entry.st_mode);
    let is_link = FileType::from_raw_mode(entry.st_mode) == FileType::Symlink;
    let shared = mode.intersects(Mode::WGRP | Mode::WOTH) && !mode.contains(Mode::SVTX);
    !trusted.contains(&entry.st_uid) || !is_link && shared
}
