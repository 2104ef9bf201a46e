//! Events that wait for a session's reader: their headers, stacks and payloads in growing arrays, so that adding an event
//! allocates nothing once the arrays have grown.

use uuid::Uuid;

use crate::definition::{Definition, EventData};

/// Events of one thread, in the order of their time stamps.
#[derive(Debug, Default)]
pub(crate) struct Records {
    headers: Vec<Record>,
    stacks: Vec<u64>,
    payloads: Vec<u8>,
    extras: Vec<Extra>,
}

/// The header of an event. Kept small, because writing to memory is half of the cost of an event. The event's data in each
/// array starts where that of the previous event ends.
#[derive(Debug)]
pub(crate) struct Record {
    /// [`Definition::index`].
    pub definition: usize,
    pub timestamp: u64,
    /// The sequence number in the writing thread.
    pub sequence: u32,
    stack_end: usize,
    payload_end: usize,
    extra_end: usize,
}

/// Data that most events do not have.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Extra {
    /// The thread that the event is about, if it is not the writing thread.
    pub thread: Option<u64>,
    pub activity: Option<Uuid>,
    pub related_activity: Option<Uuid>,
}

/// An event with its data.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Gathered<'a> {
    pub record: &'a Record,
    pub extra: Option<&'a Extra>,
    pub stack: &'a [u64],
    pub payload: &'a [u8],
}

impl Extra {
    /// Returns whether the event has such data. Checked before copying.
    #[inline]
    fn is_needed(data: &EventData<'_>) -> bool {
        data.thread_id.is_some() || data.activity_id.is_some() || data.related_activity_id.is_some()
    }

    fn of(data: &EventData<'_>) -> Self {
        Self {
            thread: data.thread_id,
            activity: data.activity_id,
            related_activity: data.related_activity_id,
        }
    }
}

/// Returns the size of an event in the arrays, in bytes.
#[inline]
pub(crate) fn size_of_event(data: &EventData<'_>, stack: &[u64]) -> usize {
    let extra = if Extra::is_needed(data) { size_of::<Extra>() } else { 0 };
    size_of::<Record>() + extra + size_of_val(stack) + data.payload.len()
}

impl Gathered<'_> {
    /// Returns the size of this event in the arrays, in bytes.
    pub(crate) fn size(&self) -> usize {
        let extra = self.extra.map_or(0, size_of_val);
        size_of::<Record>() + extra + size_of_val(self.stack) + self.payload.len()
    }
}

impl Records {
    #[inline]
    pub(crate) fn push(
        &mut self,
        definition: &Definition,
        data: &EventData<'_>,
        stack: &[u64],
        sequence: u32,
        timestamp: u64,
    ) {
        self.stacks.extend_from_slice(stack);
        self.payloads.extend_from_slice(data.payload);
        if Extra::is_needed(data) {
            self.extras.push(Extra::of(data));
        }
        self.headers.push(Record {
            definition: definition.index,
            timestamp,
            sequence,
            stack_end: self.stacks.len(),
            payload_end: self.payloads.len(),
            extra_end: self.extras.len(),
        });
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.headers.is_empty()
    }

    pub(crate) fn all(&self) -> &[Record] {
        &self.headers
    }

    /// Returns the event with this index in [`all`](Self::all).
    pub(crate) fn get(&self, index: usize) -> Option<Gathered<'_>> {
        let record = self.headers.get(index)?;
        let before = index.checked_sub(1).and_then(|before| self.headers.get(before));
        let start = |end: fn(&Record) -> usize| before.map_or(0, end);
        Some(Gathered {
            record,
            extra: self.extras.get(start(|r| r.extra_end)..record.extra_end)?.first(),
            stack: self.stacks.get(start(|r| r.stack_end)..record.stack_end)?,
            payload: self.payloads.get(start(|r| r.payload_end)..record.payload_end)?,
        })
    }

    /// Removes the events and keeps the memory.
    pub(crate) fn clear(&mut self) {
        self.headers.clear();
        self.stacks.clear();
        self.payloads.clear();
        self.extras.clear();
    }

    /// Returns the allocated memory in bytes.
    pub(crate) fn capacity(&self) -> usize {
        self.headers.capacity() * size_of::<Record>()
            + self.stacks.capacity() * size_of::<u64>()
            + self.payloads.capacity()
            + self.extras.capacity() * size_of::<Extra>()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicU64;

    use proptest::prelude::*;
    use runtap_nettrace::Metadata;

    use super::*;

    type Written = (Vec<u64>, Vec<u8>, Option<u64>, Option<u128>, Option<u128>);

    proptest! {
        #[test]
        fn events_are_found_as_they_were_written(written: Vec<Written>) {
            let definition =
                Definition { index: 3, metadata: Metadata::new("P", 1, "E"), wanted_by: AtomicU64::new(0) };
            let (mut records, mut sizes, mut time) = (Records::default(), Vec::new(), 0);
            for (stack, payload, thread_id, activity, related) in &written {
                let [activity_id, related_activity_id] = [activity, related].map(|id| id.map(Uuid::from_u128));
                let data = EventData { thread_id: *thread_id, activity_id, related_activity_id, payload, stack };
                records.push(&definition, &data, stack, 1, time);
                sizes.push(size_of_event(&data, stack));
                time += 1;
            }
            for (index, (stack, payload, thread_id, activity, related)) in written.iter().enumerate() {
                let event = records.get(index).unwrap();
                let extra = event.extra.copied().unwrap_or_default();
                let ids = [extra.activity, extra.related_activity].map(|id| id.map(|id| id.as_u128()));
                prop_assert_eq!((event.stack, event.payload), (&stack[..], &payload[..]));
                prop_assert_eq!((extra.thread, ids), (*thread_id, [*activity, *related]));
                prop_assert_eq!(event.size(), sizes[index]);
                prop_assert_eq!(event.record.timestamp, u64::try_from(index).unwrap());
            }
            prop_assert!(records.get(written.len()).is_none());
        }
    }
}
