//! The blocks that the writer has at hand: they grow by events, definitions and stacks, and are taken when full.
//! Knows nothing of the stream around them.

use hashbrown::HashMap;
use runtap_wire::{Uuid, Writer as Bytes};

use super::{EventToWrite, size_u32};
use crate::block::blob::{COMPRESSED, HEADER_SIZE, flag};

/// Most bytes of a compressed header: every field at its widest.
pub(super) const MAX_HEADER: usize = 1 + 5 + (5 + 10 + 5) + 10 + 5 + 10 + 16 + 16 + 5;

/// An `EventBlock` or a `MetadataBlock`.
#[derive(Debug, Default)]
pub(super) struct BlobBlock {
    blobs: Bytes,
    /// Least and greatest time stamp.
    times: Option<(u64, u64)>,
    last: Last,
}

/// What a reader remembers of the blob before; what is equal is not written again.
#[derive(Debug, Default)]
struct Last {
    metadata_id: u32,
    sequence: u32,
    capture_thread_id: u64,
    processor: u32,
    thread_id: u64,
    stack_id: u32,
    timestamp: u64,
    activity_id: Option<Uuid>,
    related_activity_id: Option<Uuid>,
    payload_size: usize,
}

impl BlobBlock {
    /// Bytes of its payload so far.
    pub(super) fn len(&self) -> usize {
        usize::from(HEADER_SIZE) + self.blobs.len()
    }

    /// Appends a definition: no id, no thread, no sequence number.
    pub(super) fn push_record(&mut self, record: &[u8], timestamp: u64) {
        let event = EventToWrite { timestamp, payload: record, ..EventToWrite::default() };
        self.push_event(&event, 0, 0, true);
    }

    /// Appends an event.
    pub(super) fn push_event(
        &mut self,
        event: &EventToWrite<'_>,
        sequence: u32,
        stack_id: u32,
        sorted: bool,
    ) {
        let last = &self.last;
        let implied = if event.metadata_id == 0 { last.sequence } else { last.sequence.wrapping_add(1) };
        let counted = sequence != implied
            || event.capture_thread_id != last.capture_thread_id
            || event.processor != last.processor;
        let mut flags = 0;
        for (bit, set) in [
            (flag::METADATA_ID, event.metadata_id != last.metadata_id),
            (flag::CAPTURE_THREAD, counted),
            (flag::THREAD_ID, event.thread_id != last.thread_id),
            (flag::STACK_ID, stack_id != last.stack_id),
            (flag::ACTIVITY_ID, event.activity_id != last.activity_id),
            (flag::RELATED_ACTIVITY_ID, event.related_activity_id != last.related_activity_id),
            (flag::SORTED, sorted),
            (flag::PAYLOAD_SIZE, event.payload.len() != last.payload_size),
        ] {
            if set {
                flags |= bit;
            }
        }
        let set = |bit| flags & bit != 0;

        let w = &mut self.blobs;
        w.u8(flags);
        if set(flag::METADATA_ID) {
            w.varu32(event.metadata_id);
        }
        if set(flag::CAPTURE_THREAD) {
            w.varu32(sequence.wrapping_sub(last.sequence).wrapping_sub(1));
            w.varu64(event.capture_thread_id).varu32(event.processor);
        }
        if set(flag::THREAD_ID) {
            w.varu64(event.thread_id);
        }
        if set(flag::STACK_ID) {
            w.varu32(stack_id);
        }
        w.varu64(event.timestamp.wrapping_sub(last.timestamp));
        if set(flag::ACTIVITY_ID) {
            w.guid(event.activity_id.unwrap_or_default());
        }
        if set(flag::RELATED_ACTIVITY_ID) {
            w.guid(event.related_activity_id.unwrap_or_default());
        }
        if set(flag::PAYLOAD_SIZE) {
            w.varu32(size_u32(event.payload.len()));
        }
        w.bytes(event.payload);

        let (min, max) = self.times.unwrap_or((event.timestamp, event.timestamp));
        self.times = Some((min.min(event.timestamp), max.max(event.timestamp)));
        self.last = Last {
            metadata_id: event.metadata_id,
            sequence,
            capture_thread_id: event.capture_thread_id,
            processor: event.processor,
            thread_id: event.thread_id,
            stack_id,
            timestamp: event.timestamp,
            activity_id: event.activity_id,
            related_activity_id: event.related_activity_id,
            payload_size: event.payload.len(),
        };
    }

    /// The payload, if there is anything in it; the block is empty then.
    pub(super) fn take(&mut self) -> Option<Vec<u8>> {
        let (min, max) = self.times?;
        let mut payload = Bytes::new();
        payload.u16(HEADER_SIZE).u16(COMPRESSED).u64(min).u64(max).bytes(self.blobs.as_bytes());
        self.blobs.clear();
        self.times = None;
        self.last = Last::default();
        Some(payload.into_bytes())
    }
}

/// A `StackBlock`, and the ids of all stacks since the last sequence point.
#[derive(Debug)]
pub(super) struct StackBlock {
    pointer_size: u32,
    stacks: Bytes,
    count: u32,
    first_id: u32,
    next_id: u32,
    ids: HashMap<Box<[u64]>, u32>,
}

impl StackBlock {
    pub(super) fn new(pointer_size: u32) -> Self {
        Self { pointer_size, stacks: Bytes::new(), count: 0, first_id: 1, next_id: 1, ids: HashMap::new() }
    }

    /// Bytes of its payload so far.
    pub(super) fn len(&self) -> usize {
        8 + self.stacks.len()
    }

    /// The id of a stack; the empty one has an id too, as from the runtime.
    pub(super) fn intern(&mut self, ips: &[u64]) -> u32 {
        if let Some(id) = self.ids.get(ips) {
            return *id;
        }
        let id = self.next_id;
        self.ids.insert(ips.into(), id);
        if self.pointer_size == 4 {
            self.stacks.u32(size_u32(4 * ips.len()));
            for ip in ips {
                // Checked by the caller.
                self.stacks.u32(u32::try_from(*ip).unwrap_or(u32::MAX));
            }
        } else {
            self.stacks.u32(size_u32(8 * ips.len()));
            for ip in ips {
                self.stacks.u64(*ip);
            }
        }
        self.next_id += 1;
        self.count += 1;
        id
    }

    /// The payload, if there is anything in it; the ids stay.
    pub(super) fn take(&mut self) -> Option<Vec<u8>> {
        if self.count == 0 {
            return None;
        }
        let mut payload = Bytes::new();
        payload.u32(self.first_id).u32(self.count).bytes(self.stacks.as_bytes());
        self.stacks.clear();
        self.count = 0;
        self.first_id = self.next_id;
        Some(payload.into_bytes())
    }

    /// Gives ids out anew.
    pub(super) fn next_epoch(&mut self) {
        self.ids.clear();
        self.first_id = 1;
        self.next_id = 1;
    }
}
