//! What a repair has done, in numbers.

use crate::Partial;

/// What was done.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Repaired {
    /// Why the stream was not whole; `None` if it was. The first of several reasons.
    pub partial: Option<Partial>,
    /// Bytes that were read.
    pub bytes_read: u64,
    /// Bytes that were written.
    pub bytes_written: u64,
    /// Objects and blocks that were left out completely: of an unknown kind, or with no readable entry.
    pub blocks_left_out: u64,
    /// Blocks of which the beginning was kept.
    pub blocks_shortened: u64,
    /// Whether the first bytes, which name the format, were missing and were added.
    pub start_added: bool,
    /// Whether the end marker was added.
    pub end_added: bool,
    /// Bytes after the end marker, which are not copied: another recording, perhaps.
    pub bytes_after_end: u64,
    /// The first [`Self::MOST_SKIPPED`] damaged places that were left out. The truncated end of a stream is not listed.
    pub skipped: Vec<Skipped>,
    /// The number of such places.
    pub skipped_places: u64,
    /// The bytes of such places.
    pub bytes_skipped: u64,
    /// Events that were left out because their definitions are missing.
    pub events_left_out: u64,
    /// Events that were kept without their stacks, which are missing.
    pub events_without_stack: u64,
    /// The end of the last of such places, in the list or not.
    skipped_to: u64,
}

/// Bytes of a stream that were left out.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Skipped {
    /// Stream offset of the first.
    pub offset: u64,
    /// How many.
    pub bytes: u64,
}

impl Repaired {
    /// The number of places that [`Self::skipped`] has at most.
    pub const MOST_SKIPPED: usize = 1000;

    /// Whether the output is another than the input.
    pub fn has_changed(&self) -> bool {
        self.partial.is_some() || self.blocks_left_out > 0 || self.blocks_shortened > 0 || self.end_added
    }

    /// Notes that the bytes from `offset` to `end` are left out.
    pub(super) fn skip(&mut self, offset: u64, end: u64) {
        // The damage in a block and what follows the block may overlap.
        let offset = offset.max(self.skipped_to);
        let Some(bytes) = end.checked_sub(offset).filter(|bytes| *bytes > 0) else { return };
        self.bytes_skipped += bytes;
        let continues = self.skipped_places > 0 && offset == self.skipped_to;
        self.skipped_to = end;
        if !continues {
            self.skipped_places += 1;
        }
        // Beyond the limit, the last place is not the last one of the list.
        if self.skipped_places <= Self::MOST_SKIPPED as u64 {
            match self.skipped.last_mut() {
                Some(last) if continues => last.bytes += bytes,
                _ => self.skipped.push(Skipped { offset, bytes }),
            }
        }
    }
}
