//! What the buffers of all threads held, put into the order of time. An event that is younger than the moment at which the
//! buffers began to be emptied stays for the next time: an older one may still come from a buffer that was emptied before.

use crate::records::{Gathered, Records};

/// Bytes of emptied arrays that are kept to be filled again: growing them anew costs more than writing the events.
const SPARE: usize = 8 << 20;

/// Events on their way from the buffers to the stream.
#[derive(Debug, Default)]
pub(crate) struct Batch {
    parts: Vec<Part>,
    /// Those that are due, in order.
    order: Vec<Place>,
    spare: Vec<Records>,
    /// Bytes of all of `spare`.
    spare_bytes: usize,
}

/// What was in one buffer.
#[derive(Debug)]
struct Part {
    thread: u64,
    records: Records,
    /// The first that was not due yet.
    next: usize,
}

#[derive(Debug, Clone, Copy)]
struct Place {
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
    /// Empty arrays, to be exchanged for full ones.
    pub(crate) fn spare(&mut self) -> Records {
        let records = self.spare.pop().unwrap_or_default();
        self.spare_bytes -= records.capacity();
        records
    }

    /// What one buffer of a thread held; of the same thread later ones come later.
    pub(crate) fn add(&mut self, thread: u64, records: Records) {
        self.parts.push(Part { thread, records, next: 0 });
    }

    /// Puts what is not younger than `until` into order.
    pub(crate) fn order(&mut self, until: u64) {
        self.order.clear();
        for (number, part) in self.parts.iter_mut().enumerate() {
            let waiting = part.records.all().get(part.next..).unwrap_or_default();
            let due = waiting.partition_point(|record| record.timestamp <= until);
            let first = part.next;
            let places = waiting.iter().take(due).enumerate().map(|(i, record)| Place {
                timestamp: record.timestamp,
                part: number,
                record: first + i,
            });
            self.order.extend(places);
            part.next += due;
        }
        // Merges the parts, each of which is sorted already.
        self.order.sort_by_key(|place| place.timestamp);
    }

    /// Number of events that are due.
    pub(crate) fn due(&self) -> usize {
        self.order.len()
    }

    /// Some of them, in order, from number `first` on.
    pub(crate) fn some(&self, first: usize, count: usize) -> impl Iterator<Item = Due<'_>> {
        self.order.iter().skip(first).take(count).filter_map(|place| {
            let part = self.parts.get(place.part)?;
            Some(Due { capture_thread_id: part.thread, event: part.records.get(place.record)? })
        })
    }

    /// Forgets those that were due.
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

    /// Takes in arrays to be filled again, as far as there is room for them.
    pub(crate) fn keep(&mut self, mut records: Records) {
        let bytes = self.spare_bytes + records.capacity();
        if bytes <= SPARE {
            records.clear();
            self.spare.push(records);
            self.spare_bytes = bytes;
        }
    }
}
