//! Checks the owner of a socket's file.

use std::fs::symlink_metadata;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

pub(super) fn is_file_of(path: &Path, uid: u32) -> bool {
    symlink_metadata(path).is_ok_and(|file| file.uid() == uid)
}
