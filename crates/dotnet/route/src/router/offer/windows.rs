//! Checks the owner of a pipe, which discovery has already verified.

use std::path::Path;

pub(super) fn is_file_of(_path: &Path, _uid: u32) -> bool {
    true
}
