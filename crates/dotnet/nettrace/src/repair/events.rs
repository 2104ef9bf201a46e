//! What of a block of events, or of Nettrace 4's definitions, can be kept. Each compressed header says how it differs from
//! the one before: where something is left out in the middle, the header behind it is written anew.

use std::borrow::Cow;

use runtap_wire::{DecodeError, Writer};

use super::hole;
use super::keep::{Defined, Keep, UNREADABLE};
use crate::block::blob::{Blobs, Head};
use crate::metadata::UNDEFINED;
use crate::{Error, Metadata};

/// What becomes of a blob.
enum Verdict<'a> {
    Keep,
    /// With another payload of the same length.
    Repair(Cow<'a, [u8]>, DecodeError),
    LeaveOut(DecodeError),
    /// Nor is anything kept that follows it.
    End(DecodeError),
}

/// Events: up to the first that cannot be read, or has no definition. Where definitions were lost only the events are
/// left out that have none: as a reader does.
pub(super) fn keep<const V6: bool>(payload: &[u8], offset: u64, defined: &mut Defined) -> Keep {
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

/// Definitions of Nettrace 4: those that can be read, up to the first of which the end is not known.
pub(super) fn keep_definitions(payload: &[u8], offset: u64, defined: &mut Defined) -> Keep {
    let (kept, ended_early) = blobs::<false>(payload, offset, |_, at, record| {
        match defined.add(Metadata::repair_v4(record, at), at) {
            Ok(Cow::Borrowed(_)) => Verdict::Keep,
            Ok(repaired) => Verdict::Repair(repaired, DecodeError::new(at, "definition", UNREADABLE)),
            Err(error) => Verdict::LeaveOut(error),
        }
    });
    // One that was repaired is not lost.
    defined.lost |= ended_early;
    kept
}

/// The blobs that `judge` keeps, given the header, the offset of the blob and the payload of each; and whether the block
/// could not be read to its end.
fn blobs<const V6: bool>(
    payload: &[u8],
    offset: u64,
    mut judge: impl for<'a> FnMut(&Head, u64, &'a [u8]) -> Verdict<'a>,
) -> (Keep, bool) {
    let mut blobs = match Blobs::start(payload, offset) {
        Ok(blobs) => blobs,
        Err(error) => return (Keep::Nothing(Some(error.into())), true),
    };
    let mut kept = Kept {
        payload,
        up_to: blobs.position(),
        rest: None,
        is_behind_a_gap: false,
        last: Head::default(),
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
        None => Keep::All,
        damage if kept.any => Keep::Shortened { kept: kept.into_payload(), damage, ended },
        damage => Keep::Nothing(damage),
    };
    (kept, ended.is_some())
}

/// Flags and a difference of times.
const SHORTEST_HEADER: usize = 2;

/// A payload of which something may be left out.
struct Kept<'a> {
    payload: &'a [u8],
    /// What is kept as it stands: everything up to here.
    up_to: usize,
    /// What is kept behind the first thing that is left out.
    rest: Option<Writer>,
    /// Whether what comes next follows something that is left out.
    is_behind_a_gap: bool,
    /// The header of what was kept last; zeros at the beginning of a block.
    last: Head,
    any: bool,
}

impl Kept<'_> {
    /// Keeps the blob that the cursor is on, which begins at `start`, perhaps with a payload that is `repaired`.
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
            // Behind the payload there may be padding.
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
