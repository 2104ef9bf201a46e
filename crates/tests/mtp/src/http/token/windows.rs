//! A file that whoever has its folder can read: the user alone, in the one for temporary files.

use std::fs::{File, OpenOptions};
use std::io;
use std::path::Path;

pub(super) fn private(path: &Path) -> io::Result<File> {
    OpenOptions::new().write(true).create_new(true).open(path)
}
