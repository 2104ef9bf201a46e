//! File stamps from the times of the file, in units of 100 ns.

use std::fs::Metadata;
use std::os::windows::fs::MetadataExt as _;

/// Equal for a file that was not written between two calls.
pub(super) type FileStamp = (u64, u64, u64);

pub(super) fn stamp(metadata: &Metadata) -> FileStamp {
    (metadata.file_size(), metadata.creation_time(), metadata.last_write_time())
}
