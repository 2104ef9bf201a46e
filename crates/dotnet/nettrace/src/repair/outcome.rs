//! The summary of a repair.

use crate::Partial;

/// The summary of a repair.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Repaired {
    /// The first reason why the stream was incomplete. `None` if it was complete.
    pub partial: Option<Partial>,
    /// The number of bytes that were read.
    pub bytes_read: u64,
    /// The number of bytes that were written.
    pub bytes_written: u64,
    /// Objects and blocks that were removed completely: of an unknown kind, or without a readable entry.
    pub blocks_left_out: u64,
    /// Blocks that were shortened: only their start was kept.
    pub blocks_shortened: u64,
    /// Whether the first bytes, which name the format, were missing and were added.
    pub start_added: bool,
    /// Whether the end marker was added.
    pub end_added: bool,
    /// Bytes after the end marker, which are not copied. They may be another recording.
    pub bytes_after_end: u64,
    /// The first [`Self::MAX_SKIPPED`] damaged places that were removed. The truncated end of a stream is not listed.
    pub skipped: Vec<Skipped>,
    /// The number of damaged places that were removed.
    pub skipped_places: u64,
    /// The number of bytes of these places.
    pub bytes_skipped: u64,
    /// Events that were removed because their definitions are missing.
    pub events_left_out: u64,
    /// Events that were kept without their stacks, which are missing.
    pub events_without_stack: u64,
    /// The end of the last damaged place, whether listed or not.
    skipped_to: u64,
}

/// A range of bytes that was removed from a stream.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Skipped {
    /// The stream offset of the first byte.
    pub offset: u64,
    /// The number of bytes.
    pub bytes: u64,
}

impl Repaired {
    /// The most places that [`Self::skipped`] lists.
    pub const MAX_SKIPPED: usize = 1000;

    /// Returns whether the output differs from the input.
    pub fn has_changed(&self) -> bool {
        self.partial.is_some() || self.blocks_left_out > 0 || self.blocks_shortened > 0 || self.end_added
    }

    /// Records that the bytes from `offset` to `end` were removed.
    pub(super) fn skip(&mut self, offset: u64, end: u64) {
        // Damage in a block may overlap with damage after the block.
        let offset = offset.max(self.skipped_to);
        let Some(bytes) = end.checked_sub(offset).filter(|bytes| *bytes > 0) else { return };
        self.bytes_skipped += bytes;
        let continues = self.skipped_places > 0 && offset == self.skipped_to;
        self.skipped_to = end;
        if !continues {
            self.skipped_places += 1;
        }
        // Beyond the limit, the last place is not the last listed one.
        if self.skipped_places <= Self::MAX_SKIPPED as u64 {
            match self.skipped.last_mut() {
                Some(last) if continues => last.bytes += bytes,
                _ => self.skipped.push(Skipped { offset, bytes }),
            }
        }
    }
}
