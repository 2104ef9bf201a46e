//! Whose a pipe is: discovery has asked the system already.

use std::path::Path;

pub(super) fn is_file_of(_path: &Path, _uid: u32) -> bool {
    true
}
