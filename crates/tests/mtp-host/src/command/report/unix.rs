//! File stamps from the inode number and the time of the last change.

use std::fs::Metadata;
use std::os::unix::fs::MetadataExt as _;

/// Equal for a file that was not written between two calls.
pub(super) type FileStamp = (u64, u64, u64, i64, i64);

pub(super) fn stamp(metadata: &Metadata) -> FileStamp {
    (metadata.dev(), metadata.ino(), metadata.size(), metadata.ctime(), metadata.ctime_nsec())
}
