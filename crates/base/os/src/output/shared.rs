//! Who can write to a folder besides us. Where others can, a name says nothing of who chose what lies there: whoever may
//! write to a folder may rename or hard-link root's own links, pipes and files into it. The kernel forbids part of that
//! (`fs.protected_hardlinks`, the sticky bit); here nothing relies on it.
//! Source: `path_resolution(7)`, `acl(5)`, `proc_sys_fs(5)`.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};

use rustix::fs::{Mode, Stat};
use rustix::process::geteuid;

use crate::output::system::{FOLDER, has_access_list};

/// Whether anybody but us, root and `system` can make or exchange something in this folder.
///
/// # Errors
/// As `fstat` has.
pub(crate) fn is_shared(folder: impl AsFd, system: u32) -> io::Result<bool> {
    let stat = rustix::fs::fstat(&folder)?;
    let is_ours = [geteuid().as_raw(), 0, system].contains(&stat.st_uid);
    Ok(!is_ours || lets_others_write(folder.as_fd(), &stat))
}

/// Whether anybody but us, root and `user` can put something else under the path of what lies in this folder: in the folder
/// itself or in one above it. In folders with the sticky bit only its owner and theirs can.
pub(crate) fn can_be_exchanged(folder: impl AsFd, user: u32) -> io::Result<bool> {
    let trusted = [geteuid().as_raw(), 0, user, rustix::fs::stat("/")?.st_uid];
    let mut here = rustix::fs::openat(folder, ".", FOLDER, Mode::empty())?;
    loop {
        let stat = rustix::fs::fstat(&here)?;
        let is_sticky = Mode::from_raw_mode(stat.st_mode).contains(Mode::SVTX);
        if !trusted.contains(&stat.st_uid) || !is_sticky && lets_others_write(here.as_fd(), &stat) {
            return Ok(true);
        }
        let above = rustix::fs::openat(&here, "..", FOLDER, Mode::empty())?;
        let its = rustix::fs::fstat(&above)?;
        if (its.st_dev, its.st_ino) == (stat.st_dev, stat.st_ino) {
            return Ok(false);
        }
        here = above;
    }
}

/// Whether its mode lets others write than its owner.
fn lets_others_write(folder: BorrowedFd<'_>, stat: &Stat) -> bool {
    let (mode, us) = (Mode::from_raw_mode(stat.st_mode), geteuid());
    if mode.contains(Mode::WOTH) || !mode.contains(Mode::WGRP) {
        return mode.contains(Mode::WOTH);
    }
    // An access list that lets somebody write shows in the bits of the group. Many systems give each user a group of the
    // same number, for nobody else, and a mask that lets it write.
    let is_private_group = !us.is_root() && [stat.st_uid, stat.st_gid] == [us.as_raw(); 2];
    !is_private_group || has_access_list(folder)
}
