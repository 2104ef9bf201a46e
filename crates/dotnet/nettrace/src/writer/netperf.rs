//! Events of `NetPerf` 3, each followed by its stack, and definitions between the events. Source: nettrace format,
//! "NetPerf V3".

use runtap_wire::Writer as Bytes;

use super::{EventToWrite, size_u32};

/// The bytes of an event besides payload, stack and padding, including its size.
pub(super) const HEADER: usize = 60;

/// Appends an event. Thread ids have 32 bits in this version; wider ones are truncated.
pub(super) fn push_event(event: &EventToWrite<'_>, stack: &[u64], pointer_size: u32, w: &mut Bytes) {
    let start = w.len();
    let thread = u32::try_from(event.thread_id & u64::from(u32::MAX)).unwrap_or_default();
    w.u32(0).u32(event.metadata_id).u32(thread).u64(event.timestamp);
    w.guid(event.activity_id.unwrap_or_default()).guid(event.related_activity_id.unwrap_or_default());
    w.u32(size_u32(event.payload.len())).bytes(event.payload);
    if pointer_size == 4 {
        w.u32(size_u32(4 * stack.len()));
        for ip in stack {
            // The caller has checked the addresses.
            w.u32(u32::try_from(*ip).unwrap_or(u32::MAX));
        }
    } else {
        w.u32(size_u32(8 * stack.len()));
        for ip in stack {
            w.u64(*ip);
        }
    }
    // The block starts at a multiple of 4, and so does each event in it.
    while !w.len().is_multiple_of(4) {
        w.u8(0);
    }
    w.patch_u32(start, size_u32(w.len() - start - 4));
}

/// Appends a definition: an event whose metadata id is 0.
pub(super) fn push_definition(record: &[u8], timestamp: u64, w: &mut Bytes) {
    push_event(&EventToWrite { timestamp, payload: record, ..EventToWrite::default() }, &[], 8, w);
}
