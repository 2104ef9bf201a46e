//! Determines what to keep of a block of events or of Nettrace 4's definitions. Each compressed header states only its
//! difference from the previous one: if an entry is removed in the middle, the header after it is written anew.

use std::borrow::Cow;

use runtap_wire::{DecodeError, Writer};

use super::hole;
use super::keep::{Defined, KeptPayload, UNREADABLE};
use crate::block::blob::{BlobHeader, Blobs};
use crate::metadata::UNDEFINED;
use crate::{Error, Metadata};

/// The decision about a blob.
enum Verdict<'a> {
    Keep,
    /// Keep the blob with another payload of the same length.
    Repair(Cow<'a, [u8]>, DecodeError),
    LeaveOut(DecodeError),
    /// Remove the blob and everything after it.
    End(DecodeError),
}

/// Keeps events until one cannot be read or has no definition. If definitions were lost, only the events without a
/// definition are removed, as in a reader.
pub(super) fn keep<const V6: bool>(payload: &[u8], offset: u64, defined: &mut Defined) -> KeptPayload {
    let (kept, _) = blobs::<V6>(payload, offset, |head, at, _| {
        let error = || DecodeError::new(at, "metadata id", UNDEFINED);
        match head.metadata_id {
            id if defined.has(id) => {
                defined.count_stack(head.stack_id);
                Verdict::Keep
            }
            0 => Verdict::End(error()),
            _ if defined.lost => {
                defined.events_left_out += 1;
                Verdict::LeaveOut(error())
            }
            _ => Verdict::End(error()),
        }
    });
    kept
}

/// Keeps the readable definitions of Nettrace 4, until the end of one is unknown.
pub(super) fn keep_definitions(payload: &[u8], offset: u64, defined: &mut Defined) -> KeptPayload {
    let (kept, ended_early) = blobs::<false>(payload, offset, |_, at, record| {
        match defined.add(Metadata::repair_v4(record, at), at) {
            Ok(Cow::Borrowed(_)) => Verdict::Keep,
            Ok(repaired) => Verdict::Repair(repaired, DecodeError::new(at, "definition", UNREADABLE)),
            Err(error) => Verdict::LeaveOut(error),
        }
    });
    // A repaired definition is not lost.
    defined.lost |= ended_early;
    kept
}

/// Returns the blobs that `judge` keeps, and whether the block could not be read to its end. `judge` gets the header, the
/// offset and the payload of each blob.
fn blobs<const V6: bool>(
    payload: &[u8],
    offset: u64,
    mut judge: impl for<'a> FnMut(&BlobHeader, u64, &'a [u8]) -> Verdict<'a>,
) -> (KeptPayload, bool) {
    let mut blobs = match Blobs::start(payload, offset) {
        Ok(blobs) => blobs,
        Err(error) => return (KeptPayload::Nothing(Some(error.into())), true),
    };
    let mut kept = FilteredPayload {
        payload,
        up_to: blobs.position(),
        rest: None,
        is_behind_a_gap: false,
        last: BlobHeader::default(),
        any: false,
    };
    let mut damage: Option<Error> = None;
    let ended = loop {
        let start = blobs.position();
        let verdict = match blobs.advance::<V6>(payload) {
            Ok(true) if hole::touches(payload, &(start..blobs.position()), SHORTEST_HEADER) => {
                Verdict::End(DecodeError::new(offset + start as u64, "event", hole::HOLE))
            }
            Ok(true) => judge(&blobs.head, offset + start as u64, blobs.place.payload(payload)),
            Ok(false) => break None,
            Err(fault) => Verdict::End(fault.into_error(offset + payload.len() as u64)),
        };
        match verdict {
            Verdict::Keep => kept.keep::<V6>(&blobs, start, None),
            Verdict::Repair(repaired, error) => {
                damage.get_or_insert_with(|| error.into());
                kept.keep::<V6>(&blobs, start, Some(&repaired));
            }
            Verdict::LeaveOut(error) => {
                damage.get_or_insert_with(|| error.into());
                kept.leave_out();
            }
            Verdict::End(error) => {
                damage.get_or_insert_with(|| error.into());
                break Some(start);
            }
        }
    };
    let kept = match damage {
        None => KeptPayload::All,
        damage if kept.any => KeptPayload::Shortened { kept: kept.into_payload(), damage, ended },
        damage => KeptPayload::Nothing(damage),
    };
    (kept, ended.is_some())
}

/// The shortest header in bytes: flags and a time difference.
const SHORTEST_HEADER: usize = 2;

/// A payload from which blobs may be removed.
struct FilteredPayload<'a> {
    payload: &'a [u8],
    /// Everything up to this position is kept unchanged.
    up_to: usize,
    /// The kept bytes after the first removed blob.
    rest: Option<Writer>,
    /// Whether the previous blob was removed.
    is_behind_a_gap: bool,
    /// The header of the last kept blob; zeros at the start of a block.
    last: BlobHeader,
    any: bool,
}

impl FilteredPayload<'_> {
    /// Keeps the blob at the cursor, which starts at `start`, with the `repaired` payload if there is one.
    fn keep<const V6: bool>(&mut self, blobs: &Blobs, start: usize, repaired: Option<&[u8]>) {
        let next = blobs.position();
        if self.rest.is_none() && repaired.is_none() {
            self.up_to = next;
        } else {
            let rest = self.rest.get_or_insert_default();
            let (part, range) =
                (|range| self.payload.get(range).unwrap_or_default(), blobs.place.payload_range());
            if self.is_behind_a_gap && blobs.compressed() {
                blobs.head.write_compressed::<V6>(&self.last, rest);
            } else {
                rest.bytes(part(start..range.start));
            }
            // Padding may follow the payload.
            rest.bytes(repaired.unwrap_or_else(|| part(range.clone()))).bytes(part(range.end..next));
        }
        self.is_behind_a_gap = false;
        self.last = blobs.head;
        self.any = true;
    }

    fn leave_out(&mut self) {
        self.rest.get_or_insert_default();
        self.is_behind_a_gap = true;
    }

    fn into_payload(self) -> Vec<u8> {
        let mut payload = self.payload.get(..self.up_to).unwrap_or_default().to_vec();
        payload.extend(self.rest.map(Writer::into_bytes).unwrap_or_default());
        payload
    }
}
