//! Events of `NetPerf`, each with its stack behind its payload, and the tail of versions 1 and 2.
//! Source: nettrace format, "NetPerf V1 and V2" and "NetPerf V3". Does not look into payloads.

use std::ops::Range;

use runtap_wire::Uuid;

use super::bytes::{Bytes, Fault};

/// Bytes of an event that its size counts, without payload and stack.
const LEAST_SIZE: usize = 56;

/// An event; places are counted from the start of the block.
#[derive(Debug, Clone, Default)]
pub(crate) struct NetPerfEvent {
    /// 0 for a definition.
    pub(crate) metadata_id: u32,
    pub(crate) thread_id: u32,
    pub(crate) timestamp: u64,
    pub(crate) activity_id: Option<Uuid>,
    pub(crate) related_activity_id: Option<Uuid>,
    pub(crate) payload: Range<usize>,
    pub(crate) stack: Range<usize>,
}

/// The place of the event that begins at `at`.
pub(crate) fn frame(block: &[u8], at: usize) -> Result<Range<usize>, Fault> {
    let mut r = Bytes::new(block, at);
    let size = usize::try_from(r.u32("event size")?).unwrap_or(usize::MAX);
    if size < LEAST_SIZE {
        return Err(r.invalid("event size", 4, "is less than 56"));
    }
    if size > usize::try_from(i32::MAX).unwrap_or(usize::MAX) {
        return Err(r.invalid("event size", 4, "is negative"));
    }
    r.bytes(size, "event")?;
    Ok(at..r.position())
}

impl NetPerfEvent {
    /// Reads the event at the place that [`frame`] gave.
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

/// A size, and so many bytes.
fn part(r: &mut Bytes<'_>, size: &'static str, what: &'static str) -> Result<Range<usize>, Fault> {
    let size = usize::try_from(r.u32(size)?).unwrap_or(usize::MAX);
    let start = r.position();
    r.bytes(size, what)?;
    Ok(start..r.position())
}

/// Bytes behind the last event of versions 1 and 2.
pub(crate) const TAIL: usize = 17;

/// The tail of versions 1 and 2 at `offset`: the end of the object, then a table with one label in it, which names this
/// place, then where the table is, and where that is told.
pub(crate) fn tail(offset: u64) -> [u8; TAIL] {
    // Offsets are written with 32 bits.
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

/// Whether the tail of versions 1 and 2 is at `offset`; `bytes` are those from there on.
///
/// An event could begin like that only if its thread and time stamp happened to be those offsets.
pub(crate) fn is_tail(bytes: &[u8], offset: u64) -> bool {
    bytes.starts_with(&tail(offset))
}
