//! Creation of a file with the permissions of its folder: only the user can read the folder for temporary files.

use std::fs::{File, OpenOptions};
use std::io;
use std::path::Path;

pub(super) fn private(path: &Path) -> io::Result<File> {
    OpenOptions::new().write(true).create_new(true).open(path)
}
