//! By the times of the file, in units of 100 ns.

use std::fs::Metadata;
use std::os::windows::fs::MetadataExt as _;

/// What a file looks like that was not written since.
pub(super) type Look = (u64, u64, u64);

pub(super) fn look(there: &Metadata) -> Look {
    (there.file_size(), there.creation_time(), there.last_write_time())
}
