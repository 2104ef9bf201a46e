//! Examines links without following them, through `O_PATH` descriptors. The functions are those of `bsd.rs`. Source:
//! `open(2)`, `proc(5)`.

use std::ffi::CString;
use std::io;
use std::os::fd::AsFd;
use std::path::Path;

use rustix::fs::{CWD, Mode, OFlags, PROC_SUPER_MAGIC, fstat, fstatfs, openat, readlinkat};

/// Returns the owner and the text of the same link. `None` if only the kernel can resolve it.
pub(super) fn link(path: &Path) -> io::Result<Option<(u32, CString)>> {
    let link = openat(CWD, path, OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC, Mode::empty())?;
    if is_of_proc(&link)? {
        return Ok(None);
    }
    Ok(Some((fstat(&link)?.st_uid, readlinkat(&link, "", Vec::new())?)))
}

/// Returns whether a file is in `/proc`.
pub(super) fn is_of_proc(file: &impl AsFd) -> io::Result<bool> {
    Ok(fstatfs(file)?.f_type == PROC_SUPER_MAGIC)
}
