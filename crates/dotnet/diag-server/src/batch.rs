//! Merges the buffers of all threads in order of time. An event that is newer than the start of the collection stays for
//! the next batch: an older event may still be added to a buffer that was already emptied.

use crate::records::{Gathered, Records};

/// The most bytes of emptied arrays to keep for reuse: growing arrays again costs more than writing the events.
const MAX_SPARE_BYTES: usize = 8 << 20;

/// Events on the way from the buffers to the stream.
#[derive(Debug, Default)]
pub(crate) struct Batch {
    parts: Vec<BufferPart>,
    /// The positions of the events that are due, in order.
    order: Vec<EventPosition>,
    spare: Vec<Records>,
    /// The bytes of all spare arrays.
    spare_bytes: usize,
}

/// The contents of one buffer.
#[derive(Debug)]
struct BufferPart {
    thread: u64,
    records: Records,
    /// The index of the first event that was not due.
    next: usize,
}

#[derive(Debug, Clone, Copy)]
struct EventPosition {
    timestamp: u64,
    part: usize,
    record: usize,
}

/// An event of a [`Batch`].
#[derive(Debug, Clone, Copy)]
pub(crate) struct Due<'a> {
    pub capture_thread_id: u64,
    pub event: Gathered<'a>,
}

impl Batch {
    /// Returns empty arrays, to be exchanged for full ones.
    pub(crate) fn spare(&mut self) -> Records {
        let records = self.spare.pop().unwrap_or_default();
        self.spare_bytes -= records.capacity();
        records
    }

    /// Adds the contents of a thread's buffer. Later contents of a thread must be added later.
    pub(crate) fn add(&mut self, thread: u64, records: Records) {
        self.parts.push(BufferPart { thread, records, next: 0 });
    }

    /// Orders the events up to the time `until`.
    pub(crate) fn order(&mut self, until: u64) {
        self.order.clear();
        for (number, part) in self.parts.iter_mut().enumerate() {
            let waiting = part.records.all().get(part.next..).unwrap_or_default();
            let due = waiting.partition_point(|record| record.timestamp <= until);
            let first = part.next;
            let places = waiting.iter().take(due).enumerate().map(|(i, record)| EventPosition {
                timestamp: record.timestamp,
                part: number,
                record: first + i,
            });
            self.order.extend(places);
            part.next += due;
        }
        // Merges the parts, which are sorted.
        self.order.sort_by_key(|place| place.timestamp);
    }

    /// Returns the number of events that are due.
    pub(crate) fn due(&self) -> usize {
        self.order.len()
    }

    /// Returns up to `count` due events in order, from number `first` on.
    pub(crate) fn some(&self, first: usize, count: usize) -> impl Iterator<Item = Due<'_>> {
        self.order.iter().skip(first).take(count).filter_map(|place| {
            let part = self.parts.get(place.part)?;
            Some(Due { capture_thread_id: part.thread, event: part.records.get(place.record)? })
        })
    }

    /// Removes the due events.
    pub(crate) fn clear(&mut self) {
        self.order.clear();
        self.order.shrink_to(1 << 16);
        for part in std::mem::take(&mut self.parts) {
            if part.next < part.records.all().len() {
                self.parts.push(part);
            } else {
                self.keep(part.records);
            }
        }
    }

    /// Keeps arrays for reuse, within the limit.
    pub(crate) fn keep(&mut self, mut records: Records) {
        let bytes = self.spare_bytes + records.capacity();
        if bytes <= MAX_SPARE_BYTES {
            records.clear();
            self.spare.push(records);
            self.spare_bytes = bytes;
        }
    }
}
