//! Events of `NetPerf`, each followed by its stack, and the tail of versions 1 and 2.
//! Source: nettrace format, "NetPerf V1 and V2" and "NetPerf V3". Does not parse payloads.

use std::ops::Range;

use runtap_wire::{DecodeError, Uuid};

use super::bytes::{Bytes, Fault};
use crate::raw::checked_size;

/// The bytes that the size of an event includes besides payload and stack.
const MIN_SIZE: usize = 56;

/// An event; positions are relative to the start of the block.
#[derive(Debug, Clone, Default)]
pub(crate) struct NetPerfEvent {
    /// The metadata id; 0 for a definition.
    pub(crate) metadata_id: u32,
    pub(crate) thread_id: u32,
    pub(crate) timestamp: u64,
    pub(crate) activity_id: Option<Uuid>,
    pub(crate) related_activity_id: Option<Uuid>,
    pub(crate) payload: Range<usize>,
    pub(crate) stack: Range<usize>,
}

/// Returns the range of the event that starts at `at`.
pub(crate) fn frame(block: &[u8], at: usize) -> Result<Range<usize>, Fault> {
    let mut r = Bytes::new(block, at);
    let size = usize::try_from(r.u32("event size")?).unwrap_or(usize::MAX);
    if size < MIN_SIZE {
        return Err(r.invalid("event size", 4, "is less than 56"));
    }
    if size > usize::try_from(i32::MAX).unwrap_or(usize::MAX) {
        return Err(r.invalid("event size", 4, "is negative"));
    }
    r.bytes(size, "event")?;
    Ok(at..r.position())
}

/// Returns the range of the event of versions 1 and 2 at the start of `pending`, which is at `offset`. `None` if more bytes are
/// needed.
///
/// # Errors
/// The size is invalid, or larger than the limit of blocks.
pub(crate) fn unframed(
    pending: &[u8],
    offset: u64,
    max_block: u32,
) -> Result<Option<Range<usize>>, DecodeError> {
    let size = Bytes::new(pending, 0).u32("event size").unwrap_or(0);
    checked_size(offset, "event size", size, max_block)?;
    match frame(pending, 0) {
        Ok(place) => Ok(Some(place)),
        Err(fault) if fault.is_incomplete() => Ok(None),
        Err(fault) => Err(fault.into_error(offset + pending.len() as u64)),
    }
}

impl NetPerfEvent {
    /// Reads the event at the range that [`frame`] returned.
    pub(crate) fn decode(block: &[u8], place: &Range<usize>) -> Result<Self, Fault> {
        let mut r = Bytes::new(block.get(..place.end).unwrap_or_default(), place.start);
        r.u32("event size")?;
        let mut event = Self {
            metadata_id: r.u32("metadata id")?,
            thread_id: r.u32("thread id")?,
            timestamp: r.u64("time stamp")?,
            activity_id: r.guid("activity id")?,
            related_activity_id: r.guid("related activity id")?,
            payload: 0..0,
            stack: 0..0,
        };
        event.payload = part(&mut r, "payload size", "event payload")?;
        // Padding may follow.
        event.stack = part(&mut r, "stack size", "stack")?;
        Ok(event)
    }
}

/// Reads a size and returns the range of that many bytes.
fn part(r: &mut Bytes<'_>, size: &'static str, what: &'static str) -> Result<Range<usize>, Fault> {
    let size = usize::try_from(r.u32(size)?).unwrap_or(usize::MAX);
    let start = r.position();
    r.bytes(size, what)?;
    Ok(start..r.position())
}

/// The number of bytes after the last event of versions 1 and 2.
pub(crate) const TAIL: usize = 17;

/// Returns the tail of versions 1 and 2 at `offset`: the end of the object, a table with one label that is this offset,
/// the offset of the table, and the offset of that field.
pub(crate) fn tail(offset: u64) -> [u8; TAIL] {
    // Offsets are 32-bit.
    let label = |ahead: u64| {
        let [a, b, c, d, ..] = (offset + ahead).to_le_bytes();
        [a, b, c, d]
    };
    let mut tail = [6, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    for (place, label) in tail.iter_mut().skip(5).zip([label(0), label(1), label(9)].as_flattened()) {
        *place = *label;
    }
    tail
}

/// Returns whether the tail of versions 1 and 2 is at `offset`, where `bytes` begin.
///
/// An event matches by accident only if its thread and time stamp happen to equal those offsets.
pub(crate) fn is_tail(bytes: &[u8], offset: u64) -> bool {
    bytes.starts_with(&tail(offset))
}
