//! Opening regular files on Windows.

use std::fs::File;
use std::io;
use std::os::windows::fs::OpenOptionsExt as _;
use std::path::Path;

/// `FILE_FLAG_OPEN_REPARSE_POINT`.
const OPEN_REPARSE_POINT: u32 = 0x0020_0000;

pub(super) fn open(path: &Path) -> io::Result<File> {
    File::options().read(true).custom_flags(OPEN_REPARSE_POINT).open(path)
}

pub(super) fn open_by_links(path: &Path) -> io::Result<File> {
    File::open(path)
}

pub(super) fn is_deleted(file: &File) -> io::Result<bool> {
    crate::windows::file::is_deleted(file)
}
