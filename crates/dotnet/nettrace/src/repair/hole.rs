//! Runs of zeros where headers should be, as a file system leaves them for blocks that were never written. Zeros are a
//! sound compressed header, of an event like the one before: without this, a hole would be read as events.

use runtap_wire::DecodeErrorKind;

use crate::block::blob::Blobs;
use crate::block::netperf;
use crate::raw::Format;

/// So many zeros, with the beginning of an entry among them, are a hole: the size of a sector.
pub(super) const LEAST: usize = 512;

/// What is wrong with an entry that is in a hole, or contains the beginning of one.
pub(super) const HOLE: DecodeErrorKind = DecodeErrorKind::Invalid("is in a run of zeros");

/// Where the hole begins in which the `header` bytes at `at` are; `None` if they are in none.
pub(super) fn around(payload: &[u8], at: usize, header: usize) -> Option<usize> {
    let zeros =
        |bytes: &mut dyn Iterator<Item = &u8>| bytes.take(LEAST).take_while(|byte| **byte == 0).count();
    let (before, after) = payload.split_at_checked(at)?;
    let after = zeros(&mut after.iter());
    if after < header {
        return None;
    }
    let before = zeros(&mut before.iter().rev());
    (before + after >= LEAST).then_some(at - before)
}

/// Whether an entry that is at `range` is in a hole, or ends in one that has the header of the next entry.
pub(super) fn touches(payload: &[u8], range: &std::ops::Range<usize>, header: usize) -> bool {
    around(payload, range.start, header).is_some()
        || around(payload, range.end, header).is_some_and(|start| start < range.end)
}

/// Whether the first hole after `from` reaches the end of the payload. The hole may be longer then, and so the payload.
pub(super) fn is_the_rest(payload: &[u8], from: usize) -> bool {
    let zeros = payload.iter().rev().take_while(|byte| **byte == 0).count();
    let other = payload.get(from..payload.len() - zeros).unwrap_or_default();
    zeros >= LEAST && !other.split(|byte| *byte != 0).any(|zeros| zeros.len() >= LEAST)
}

/// Where the last event begins of a block of events that can be read to its end, if it is not the only one.
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

/// Whether all times of the events in front of `end` are those that their block has according to its header. For Nettrace 4.
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
