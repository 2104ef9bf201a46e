//! What [`Reader::next`](crate::Reader::next) hands out: views of a stream's parts that borrow from the reader.

use runtap_wire::{DecodeError, Reader, Uuid};

use crate::{Metadata, Stack, TraceHeader};

/// One part of a stream, in the order of the stream.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub enum Item<'a> {
    /// The first item.
    Header(&'a TraceHeader),
    /// A definition; events that follow use its id.
    Metadata(&'a Metadata),
    /// An event.
    Event(Event<'a>),
    /// All events before it are older than those after it, and stack ids start anew.
    SequencePoint(SequencePoint<'a>),
    /// The end marker: the stream is whole. The last item.
    End,
}

/// An event.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct Event<'a> {
    /// Which definition describes the event.
    pub metadata_id: u32,
    /// That definition; `None` if the stream did not bring it.
    pub metadata: Option<&'a Metadata>,
    /// Operating system's id of the thread that the event is about: a CPU sample's is the sampled thread.
    pub thread_id: u64,
    /// Operating system's id of the thread that wrote the event.
    pub capture_thread_id: u64,
    /// Processor that the event was written on; `u32::MAX` if the runtime did not know.
    pub processor: u32,
    /// Number of the event among those of its capture thread, modulo 2^32.
    pub sequence: u32,
    /// Id of the call stack, valid up to the next sequence point.
    pub stack_id: u32,
    /// The call stack.
    pub stack: Stack<'a>,
    /// Ticks of the target's clock; see [`TraceHeader::relative_ns`] and [`TraceHeader::utc_ns`]. Not in order over
    /// the stream: only the events between two [`sorted`](Self::sorted) ones are.
    pub timestamp: u64,
    /// The activity (a request, a task) that the event belongs to.
    pub activity_id: Option<Uuid>,
    /// The activity that started that one.
    pub related_activity_id: Option<Uuid>,
    /// Whether a run of one capture thread's events starts here, and no later event of the stream is older.
    pub sorted: bool,
    /// The fields, as [`Metadata::fields`] or the provider's own documentation describes them.
    pub payload: &'a [u8],
}

/// A sequence point.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct SequencePoint<'a> {
    /// Ticks of the target's clock.
    pub timestamp: u64,
    /// For each thread: how many events it has tried to write so far.
    pub threads: ThreadSequences<'a>,
}

impl<'a> SequencePoint<'a> {
    /// Reads the payload of an `SPBlock`.
    pub(crate) fn decode(r: &mut Reader<'a>) -> Result<Self, DecodeError> {
        let timestamp = r.u64("time stamp")?;
        let count = u64::from(r.u32("thread count")?) * 12;
        let records = r.bytes(usize::try_from(count).unwrap_or(usize::MAX), "sequence numbers of threads")?;
        Ok(Self { timestamp, threads: ThreadSequences { records: records.as_chunks().0 } })
    }
}

/// Pairs of (capture thread id, number of its last event).
#[derive(Debug, Clone, Copy)]
pub struct ThreadSequences<'a> {
    pub(crate) records: &'a [[u8; 12]],
}

impl ThreadSequences<'_> {
    /// Number of threads.
    pub fn len(&self) -> usize {
        self.records.len()
    }

    /// Whether the sequence point names no thread.
    pub fn is_empty(&self) -> bool {
        self.records.is_empty()
    }

    /// The pairs.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (u64, u32)> {
        self.records.iter().map(|[t0, t1, t2, t3, t4, t5, t6, t7, s0, s1, s2, s3]| {
            (
                u64::from_le_bytes([*t0, *t1, *t2, *t3, *t4, *t5, *t6, *t7]),
                u32::from_le_bytes([*s0, *s1, *s2, *s3]),
            )
        })
    }
}
