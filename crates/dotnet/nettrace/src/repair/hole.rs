//! Runs of zeros in the place of headers, which file systems leave for blocks that were never written. Zeros are a
//! valid compressed header, of an event like the previous one: without this check, a hole would be read as events.

use runtap_wire::DecodeErrorKind;

use crate::block::blob::Blobs;
use crate::block::netperf;
use crate::raw::Format;

/// The least number of zeros, including those of an entry's header, that count as a hole: the size of a sector.
pub(super) const MIN_LENGTH: usize = 512;

/// The error of an entry that starts in a hole or before one.
pub(super) const HOLE: DecodeErrorKind = DecodeErrorKind::Invalid("is in a run of zeros");

/// Returns the start of the hole that contains the `header` bytes at `at`. `None` if no hole contains them.
pub(super) fn around(payload: &[u8], at: usize, header: usize) -> Option<usize> {
    let zeros =
        |bytes: &mut dyn Iterator<Item = &u8>| bytes.take(MIN_LENGTH).take_while(|byte| **byte == 0).count();
    let (before, after) = payload.split_at_checked(at)?;
    let after = zeros(&mut after.iter());
    if after < header {
        return None;
    }
    let before = zeros(&mut before.iter().rev());
    (before + after >= MIN_LENGTH).then_some(at - before)
}

/// Returns whether the entry at `range` is in a hole, or ends in a hole that contains the header of the next entry.
pub(super) fn touches(payload: &[u8], range: &std::ops::Range<usize>, header: usize) -> bool {
    around(payload, range.start, header).is_some()
        || around(payload, range.end, header).is_some_and(|start| start < range.end)
}

/// Returns whether the first hole after `from` reaches the end of the payload. The hole, and the payload, may be longer
/// then.
pub(super) fn is_the_rest(payload: &[u8], from: usize) -> bool {
    let zeros = payload.iter().rev().take_while(|byte| **byte == 0).count();
    let other = payload.get(from..payload.len() - zeros).unwrap_or_default();
    zeros >= MIN_LENGTH && !other.split(|byte| *byte != 0).any(|zeros| zeros.len() >= MIN_LENGTH)
}

/// Returns the start of the last event of a block of events that is readable to its end and has more than one event.
pub(super) fn last_event(format: Format, payload: &[u8]) -> Option<usize> {
    let mut last = None;
    if format == Format::NetPerf3 {
        let mut at = 0;
        while at < payload.len() {
            last = Some(at).filter(|at| *at > 0);
            at = netperf::frame(payload, at).ok()?.end;
        }
        return last;
    }
    let mut blobs = Blobs::start(payload, 0).ok()?;
    let first = blobs.position();
    while blobs.position() < payload.len() {
        last = Some(blobs.position()).filter(|at| *at > first);
        blobs.advance::<false>(payload).ok()?;
    }
    last
}

/// Returns whether all events before `end` have times within the range in the header of their block. For Nettrace 4.
pub(super) fn are_times_sound(payload: &[u8], end: usize) -> bool {
    let number = |at: usize| payload.get(at..)?.first_chunk::<8>().map(|bytes| u64::from_le_bytes(*bytes));
    let (Some(least), Some(most)) = (number(4), number(12)) else { return false };
    let Ok(mut blobs) = Blobs::start(payload, 0) else { return false };
    while blobs.position() < end {
        if !matches!(blobs.advance::<false>(payload), Ok(true))
            || !(least..=most).contains(&blobs.head.timestamp)
        {
            return false;
        }
    }
    blobs.position() == end
}
