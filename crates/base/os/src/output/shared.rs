//! Determines whether other users can write to a directory. If so, the owner of an entry does not prove who put it
//! there: users may rename or hard-link links, pipes and files of root into a directory they can write to. The kernel
//! partly prevents this (`fs.protected_hardlinks`, the sticky bit), but that is not relied on.
//! Source: `path_resolution(7)`, `acl(5)`, `proc_sys_fs(5)`.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};

use rustix::fs::{Mode, Stat};
use rustix::process::geteuid;

use crate::output::system::{FOLDER, has_access_list};

/// Returns whether users other than the current one, root and `system` can create or exchange entries of a directory.
///
/// # Errors
/// If `fstat` fails.
pub(crate) fn is_shared(folder: impl AsFd, system: u32) -> io::Result<bool> {
    let stat = rustix::fs::fstat(&folder)?;
    let is_ours = [geteuid().as_raw(), 0, system].contains(&stat.st_uid);
    Ok(!is_ours || lets_others_write(folder.as_fd(), &stat))
}

/// Returns whether users other than the current one, root and `user` can exchange entries of this directory or of one
/// of its parents. In directories with the sticky bit, only the owners of the directory and of the entry can.
pub(crate) fn can_be_replaced(folder: impl AsFd, user: u32) -> io::Result<bool> {
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

/// Returns whether the mode lets users other than the owner write.
fn lets_others_write(folder: BorrowedFd<'_>, stat: &Stat) -> bool {
    let (mode, us) = (Mode::from_raw_mode(stat.st_mode), geteuid());
    if mode.contains(Mode::WOTH) || !mode.contains(Mode::WGRP) {
        return mode.contains(Mode::WOTH);
    }
    // An access list that lets others write shows in the group bits. Many systems give each user a private group with
    // the same id, and a umask that lets it write.
    let is_private_group = !us.is_root() && [stat.st_uid, stat.st_gid] == [us.as_raw(); 2];
    !is_private_group || has_access_list(folder)
}
