//! Events that wait for a session's reader: their headers, stacks and payloads in three growing arrays, so that adding one
//! allocates nothing once the arrays have grown.

use std::ops::Range;

use uuid::Uuid;

use crate::definition::{Definition, EventData};

/// Events of one thread, in the order of their time stamps.
#[derive(Debug, Default)]
pub(crate) struct Records {
    headers: Vec<Record>,
    stacks: Vec<u64>,
    payloads: Vec<u8>,
}

/// The header of an event.
#[derive(Debug)]
pub(crate) struct Record {
    /// [`Definition::index`].
    pub definition: usize,
    pub timestamp: u64,
    pub thread_id: u64,
    /// Its number among those of the writing thread.
    pub sequence: u32,
    pub activity_id: Option<Uuid>,
    pub related_activity_id: Option<Uuid>,
    stack: Range<usize>,
    payload: Range<usize>,
}

/// What an event takes here, in bytes.
pub(crate) fn size_of_event(stack: &[u64], payload: &[u8]) -> usize {
    size_of::<Record>() + size_of_val(stack) + payload.len()
}

impl Record {
    /// The same of an event that is here.
    pub(crate) fn size(&self) -> usize {
        size_of::<Self>() + self.stack.len() * size_of::<u64>() + self.payload.len()
    }
}

impl Records {
    pub(crate) fn push(
        &mut self,
        definition: &Definition,
        data: &EventData<'_>,
        stack: &[u64],
        (writing_thread, sequence): (u64, u32),
        timestamp: u64,
    ) {
        let stack_start = self.stacks.len();
        self.stacks.extend_from_slice(stack);
        let payload_start = self.payloads.len();
        self.payloads.extend_from_slice(data.payload);
        self.headers.push(Record {
            definition: definition.index,
            timestamp,
            thread_id: data.thread_id.unwrap_or(writing_thread),
            sequence,
            activity_id: data.activity_id,
            related_activity_id: data.related_activity_id,
            stack: stack_start..self.stacks.len(),
            payload: payload_start..self.payloads.len(),
        });
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.headers.is_empty()
    }

    pub(crate) fn all(&self) -> &[Record] {
        &self.headers
    }

    pub(crate) fn stack(&self, record: &Record) -> &[u64] {
        self.stacks.get(record.stack.clone()).unwrap_or_default()
    }

    pub(crate) fn payload(&self, record: &Record) -> &[u8] {
        self.payloads.get(record.payload.clone()).unwrap_or_default()
    }

    /// Forgets the events and keeps the memory.
    pub(crate) fn clear(&mut self) {
        self.headers.clear();
        self.stacks.clear();
        self.payloads.clear();
    }

    /// Bytes of memory, in use or not.
    pub(crate) fn capacity(&self) -> usize {
        self.headers.capacity() * size_of::<Record>()
            + self.stacks.capacity() * size_of::<u64>()
            + self.payloads.capacity()
    }
}
