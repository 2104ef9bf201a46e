//! Reading the file that is being written, on Windows.

use std::fs::File;
use std::io;
use std::os::windows::fs::FileExt;

/// Whether it was opened for reading too: every draft is, and nothing else that is a file.
pub(super) fn is_readable(_file: &File) -> bool {
    true
}

/// Reads at a place of the file. The one where it is written moves: all is written by then.
pub(super) fn read_at(file: &File, bytes: &mut [u8], at: u64) -> io::Result<usize> {
    file.seek_read(bytes, at)
}
