//! Looking at a link without following it, by a descriptor that only points at it (`O_PATH`). The same functions as
//! `bsd.rs`. Source: `open(2)`, `proc(5)`.

use std::ffi::CString;
use std::io;
use std::os::fd::AsFd;
use std::path::Path;

use rustix::fs::{CWD, Mode, OFlags, PROC_SUPER_MAGIC, fstat, fstatfs, openat, readlinkat};

/// The owner of a link, and its text: of one and the same link; `None` where the kernel decides where it leads.
pub(super) fn link(path: &Path) -> io::Result<Option<(u32, CString)>> {
    let link = openat(CWD, path, OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC, Mode::empty())?;
    if is_of_proc(&link)? {
        return Ok(None);
    }
    Ok(Some((fstat(&link)?.st_uid, readlinkat(&link, "", Vec::new())?)))
}

/// Whether it lies in `/proc`.
pub(super) fn is_of_proc(file: &impl AsFd) -> io::Result<bool> {
    Ok(fstatfs(file)?.f_type == PROC_SUPER_MAGIC)
}
