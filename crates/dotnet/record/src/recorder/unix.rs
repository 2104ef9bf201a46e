//! Reads the file that is being written, on Unix.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use rustix::fs::OFlags;

/// Whether the file was opened for reading too.
pub(super) fn is_readable(file: &File) -> bool {
    rustix::fs::fcntl_getfl(file).is_ok_and(|flags| flags & OFlags::ACCMODE == OFlags::RDWR)
}

/// Reads at an offset without changing the position for writing.
pub(super) fn read_at(file: &File, bytes: &mut [u8], at: u64) -> io::Result<usize> {
    file.read_at(bytes, at)
}
