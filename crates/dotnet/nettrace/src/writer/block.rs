//! The blocks that are being written: events, definitions and stacks are appended, and full blocks are taken.

use std::hash::Hash;

use hashbrown::HashMap;
use runtap_wire::{Uuid, Writer as Bytes};

use super::{EventToWrite, size_u32};
use crate::Label;
use crate::block::blob::{COMPRESSED, HEADER_SIZE, flag};

/// The most bytes of a compressed header: every field at its maximum.
pub(super) const MAX_HEADER: usize = 1 + 5 + (5 + 10 + 5) + 10 + 5 + 10 + 16 + 16 + 5;

/// An `EventBlock`, or a `MetadataBlock` of Nettrace 4.
#[derive(Debug, Default)]
pub(super) struct BlobBlock {
    blobs: Bytes,
    /// The least and greatest time stamp.
    times: Option<(u64, u64)>,
    last: Last,
}

/// The fields of the previous blob; equal values are not written again.
#[derive(Debug, Default)]
struct Last {
    metadata_id: u32,
    sequence: u32,
    capture_thread_id: u64,
    processor: u32,
    thread_id: u64,
    stack_id: u32,
    timestamp: u64,
    labels: LabelsToWrite,
    payload_size: usize,
}

/// The labels of an event: two ids in Nettrace 4, a list in Nettrace 6.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LabelsToWrite {
    Activities(Option<Uuid>, Option<Uuid>),
    List(u32),
}

impl Default for LabelsToWrite {
    fn default() -> Self {
        Self::Activities(None, None)
    }
}

impl LabelsToWrite {
    /// Returns the flags of the fields that differ from the previous event.
    fn flags(self, last: Self) -> u8 {
        match (self, last) {
            (Self::Activities(id, related), Self::Activities(last_id, last_related)) => {
                let activity = if id == last_id { 0 } else { flag::ACTIVITY_ID };
                activity | if related == last_related { 0 } else { flag::RELATED_ACTIVITY_ID }
            }
            (Self::List(id), last) => {
                let last = if let Self::List(last) = last { last } else { 0 };
                if id == last { 0 } else { flag::LABEL_LIST_ID }
            }
            // All labels of a block are of one variant.
            (Self::Activities(..), Self::List(_)) => flag::ACTIVITY_ID | flag::RELATED_ACTIVITY_ID,
        }
    }

    fn write(self, flags: u8, w: &mut Bytes) {
        match self {
            Self::Activities(id, related) => {
                for (bit, id) in [(flag::ACTIVITY_ID, id), (flag::RELATED_ACTIVITY_ID, related)] {
                    if flags & bit != 0 {
                        w.guid(id.unwrap_or_default());
                    }
                }
            }
            Self::List(id) if flags & flag::LABEL_LIST_ID != 0 => {
                w.varu32(id);
            }
            Self::List(_) => {}
        }
    }
}

impl BlobBlock {
    /// Returns the size of the payload so far, in bytes.
    pub(super) fn len(&self) -> usize {
        usize::from(HEADER_SIZE) + self.blobs.len()
    }

    /// Appends a definition, which has no id, thread or sequence number in its header.
    pub(super) fn push_record(&mut self, record: &[u8], timestamp: u64) {
        let event = EventToWrite { timestamp, payload: record, ..EventToWrite::default() };
        self.push_event(&event, 0, 0, LabelsToWrite::default(), true);
    }

    /// Appends an event.
    pub(super) fn push_event(
        &mut self,
        event: &EventToWrite<'_>,
        sequence: u32,
        stack_id: u32,
        labels: LabelsToWrite,
        sorted: bool,
    ) {
        let last = &self.last;
        let implied = if event.metadata_id == 0 { last.sequence } else { last.sequence.wrapping_add(1) };
        let counted = sequence != implied
            || event.capture_thread_id != last.capture_thread_id
            || event.processor != last.processor;
        let mut flags = labels.flags(last.labels);
        for (bit, set) in [
            (flag::METADATA_ID, event.metadata_id != last.metadata_id),
            (flag::CAPTURE_THREAD, counted),
            (flag::THREAD_ID, event.thread_id != last.thread_id),
            (flag::STACK_ID, stack_id != last.stack_id),
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
        labels.write(flags, w);
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
            labels,
            payload_size: event.payload.len(),
        };
    }

    /// Takes the payload and clears the block. `None` if the block is empty.
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

/// A block that assigns increasing ids to distinct values, with the ids of all values since the last sequence point.
#[derive(Debug)]
struct Interned<T> {
    bytes: Bytes,
    count: u32,
    first_id: u32,
    next_id: u32,
    ids: HashMap<Box<[T]>, u32>,
}

impl<T: Copy + Eq + Hash> Interned<T> {
    fn new() -> Self {
        Self { bytes: Bytes::new(), count: 0, first_id: 1, next_id: 1, ids: HashMap::new() }
    }

    /// Returns the size of the payload so far, in bytes.
    fn len(&self) -> usize {
        8 + self.bytes.len()
    }

    /// Returns the id of a value. `write` adds the value to the block if it is new.
    fn intern(&mut self, thing: &[T], write: impl FnOnce(&mut Bytes)) -> u32 {
        if let Some(id) = self.ids.get(thing) {
            return *id;
        }
        let id = self.next_id;
        self.ids.insert(thing.into(), id);
        write(&mut self.bytes);
        self.next_id += 1;
        self.count += 1;
        id
    }

    /// Takes the payload and keeps the ids. `None` if the block is empty.
    fn take(&mut self) -> Option<Vec<u8>> {
        if self.count == 0 {
            return None;
        }
        let mut payload = Bytes::new();
        payload.u32(self.first_id).u32(self.count).bytes(self.bytes.as_bytes());
        self.bytes.clear();
        self.count = 0;
        self.first_id = self.next_id;
        Some(payload.into_bytes())
    }

    /// Starts assigning ids anew.
    fn next_epoch(&mut self) {
        self.ids.clear();
        self.first_id = 1;
        self.next_id = 1;
    }
}

/// A `StackBlock`.
#[derive(Debug)]
pub(super) struct StackBlock {
    pointer_size: u32,
    stacks: Interned<u64>,
}

impl StackBlock {
    pub(super) fn new(pointer_size: u32) -> Self {
        Self { pointer_size, stacks: Interned::new() }
    }

    /// Returns the size of the payload so far, in bytes.
    pub(super) fn len(&self) -> usize {
        self.stacks.len()
    }

    /// Returns the id of a stack. As in the runtime, the empty stack has an id, too. (In Nettrace 6 its id is always 0.)
    pub(super) fn intern(&mut self, ips: &[u64]) -> u32 {
        let pointer_size = self.pointer_size;
        self.stacks.intern(ips, |bytes| {
            if pointer_size == 4 {
                bytes.u32(size_u32(4 * ips.len()));
                for ip in ips {
                    // The caller has checked the addresses.
                    bytes.u32(u32::try_from(*ip).unwrap_or(u32::MAX));
                }
            } else {
                bytes.u32(size_u32(8 * ips.len()));
                for ip in ips {
                    bytes.u64(*ip);
                }
            }
        })
    }

    /// Takes the payload and keeps the ids. `None` if the block is empty.
    pub(super) fn take(&mut self) -> Option<Vec<u8>> {
        self.stacks.take()
    }

    /// Starts assigning ids anew.
    pub(super) fn next_epoch(&mut self) {
        self.stacks.next_epoch();
    }
}

/// A block of label lists of Nettrace 6.
#[derive(Debug)]
pub(super) struct LabelBlock {
    lists: Interned<u8>,
}

impl Default for LabelBlock {
    fn default() -> Self {
        Self { lists: Interned::new() }
    }
}

impl LabelBlock {
    /// Returns the size of the payload so far, in bytes.
    pub(super) fn len(&self) -> usize {
        self.lists.len()
    }

    /// Returns the encoded label list of an event, activities first. Empty for an event without labels.
    pub(super) fn encode(event: &EventToWrite<'_>) -> Bytes {
        let activities = [
            event.activity_id.map(Label::ActivityId),
            event.related_activity_id.map(Label::RelatedActivityId),
        ];
        let mut labels = activities.iter().flatten().chain(event.labels).peekable();
        let mut list = Bytes::new();
        while let Some(label) = labels.next() {
            label.encode(labels.peek().is_none(), &mut list);
        }
        list
    }

    /// Returns the id of a list; 0 for the empty list.
    pub(super) fn intern(&mut self, list: &[u8]) -> u32 {
        if list.is_empty() {
            return 0;
        }
        self.lists.intern(list, |bytes| {
            bytes.bytes(list);
        })
    }

    /// Takes the payload and keeps the ids. `None` if the block is empty.
    pub(super) fn take(&mut self) -> Option<Vec<u8>> {
        self.lists.take()
    }

    /// Starts assigning ids anew.
    pub(super) fn next_epoch(&mut self) {
        self.lists.next_epoch();
    }
}
