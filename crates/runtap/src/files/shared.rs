//! Who can write to a folder besides us. Where others can, a name says nothing of who chose what lies there: whoever may
//! write to a folder may rename or hard-link root's own links, pipes and files into it. The kernel forbids part of that
//! (`fs.protected_hardlinks`, the sticky bit); here nothing relies on it.
//! Source: `path_resolution(7)`, `acl(5)`, `proc_sys_fs(5)`.

use std::io;
use std::os::fd::{AsFd, AsRawFd};

use rustix::fs::Mode;
use rustix::io::Errno;
use rustix::process::geteuid;

/// Whether anybody but us, root and `system` can make or exchange something in this folder.
///
/// # Errors
/// As `fstat` has.
pub(super) fn is_shared(folder: impl AsFd, system: u32) -> io::Result<bool> {
    let (folder, us) = (folder.as_fd(), geteuid());
    let stat = rustix::fs::fstat(folder)?;
    let mode = Mode::from_raw_mode(stat.st_mode);
    if ![us.as_raw(), 0, system].contains(&stat.st_uid) || mode.contains(Mode::WOTH) {
        return Ok(true);
    }
    // An access list that lets somebody write shows in the bits of the group.
    if !mode.contains(Mode::WGRP) {
        return Ok(false);
    }
    // Many systems give each user a group of the same number, for nobody else, and a mask that lets it write.
    let is_private_group = !us.is_root() && [stat.st_uid, stat.st_gid] == [us.as_raw(); 2];
    Ok(!is_private_group || has_access_list(folder))
}

fn has_access_list(folder: impl AsRawFd) -> bool {
    // The folder is only pointed at, so it has no attributes but by a path.
    let path = format!("/proc/self/fd/{}", folder.as_raw_fd());
    let none: &mut [u8] = &mut [];
    !matches!(
        rustix::fs::getxattr(path, "system.posix_acl_access", none),
        Err(Errno::NODATA | Errno::OPNOTSUPP)
    )
}
