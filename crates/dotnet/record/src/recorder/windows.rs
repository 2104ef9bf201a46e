//! Reads the file that is being written, on Windows.

use std::fs::File;
use std::io;
use std::os::windows::fs::FileExt;

/// Whether the file was opened for reading too, which is true for all output files.
pub(super) fn is_readable(_file: &File) -> bool {
    true
}

/// Reads at an offset. Changes the position for writing, so everything must have been written.
pub(super) fn read_at(file: &File, bytes: &mut [u8], at: u64) -> io::Result<usize> {
    file.seek_read(bytes, at)
}
