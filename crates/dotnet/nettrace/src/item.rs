//! The items that [`Reader::next`](crate::Reader::next) returns: views of the stream that borrow from the reader.

use runtap_wire::{Reader, Uuid};

use crate::block::point::{FLUSH_METADATA, FLUSH_THREADS};
use crate::{Labels, Metadata, Stack, Thread, TraceHeader};

/// One part of a stream, in the order of the stream.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub enum StreamItem<'a> {
    /// The header, which is the first item.
    Header(&'a TraceHeader),
    /// A definition, whose id later events use.
    Metadata(&'a Metadata),
    /// An event.
    Event(Event<'a>),
    /// A sequence point: all events before it are older than all events after it, and stack ids are reassigned.
    SequencePoint(SequencePoint<'a>),
    /// The end marker, which is the last item of a complete stream.
    End,
}

/// An event.
///
/// Labels of the event can override values of its definition: use [`Self::level`], [`Self::version`],
/// [`Self::keywords`] and [`Self::opcode`] instead of the fields of the definition.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct Event<'a> {
    /// The id of the definition that describes the event.
    pub metadata_id: u32,
    /// The definition. A reader returns no event without one.
    pub metadata: Option<&'a Metadata>,
    /// The operating system's id of the thread that the event is about; for a CPU sample, the sampled thread. In Nettrace 6
    /// the index of the thread if the stream does not state the id.
    pub thread_id: u64,
    /// The operating system's id of the thread that wrote the event; in Nettrace 6 its index if the id is missing.
    pub capture_thread_id: u64,
    /// The operating system's id of the process of [`Self::thread_id`], if the stream states it (Nettrace 6). If `None`, the
    /// process is [`TraceHeader::process_id`].
    pub process_id: Option<u64>,
    /// The description of the thread that the event is about (Nettrace 6).
    pub thread: Option<&'a Thread>,
    /// The description of the thread that wrote the event (Nettrace 6).
    pub capture_thread: Option<&'a Thread>,
    /// The processor that the event was written on; `u32::MAX` if unknown to the runtime or not in the stream (`NetPerf`).
    pub processor: u32,
    /// The sequence number of the event in its capture thread, modulo 2^32. 0 in `NetPerf`, which has none.
    pub sequence: u32,
    /// The id of the call stack, valid until the next sequence point. `u32::MAX` in `NetPerf`, where [`Self::stack`] is part
    /// of the event.
    pub stack_id: u32,
    /// The call stack.
    pub stack: Stack<'a>,
    /// Ticks of the target's clock; see [`TraceHeader::relative_ns`] and [`TraceHeader::utc_ns`]. Ordered only between
    /// two [`sorted`](Self::sorted) events, not in the whole stream.
    pub timestamp: u64,
    /// The activity (a request, a task) that the event belongs to.
    pub activity_id: Option<Uuid>,
    /// The activity that started [`Self::activity_id`].
    pub related_activity_id: Option<Uuid>,
    /// Labels of the event (Nettrace 6).
    pub labels: Labels<'a>,
    /// Whether a run of events of one capture thread starts here, and no later event of the stream is older.
    pub sorted: bool,
    /// The fields, as [`Metadata::fields`] or the provider's own documentation describes them.
    pub payload: &'a [u8],
}

impl Event<'_> {
    /// Returns the level: 1 critical to 5 verbose; 0 always. `None` if unknown.
    pub fn level(&self) -> Option<u32> {
        self.labels.level().map(u32::from).or_else(|| self.metadata.map(|metadata| metadata.level))
    }

    /// Returns the version of the event. `None` if unknown.
    pub fn version(&self) -> Option<u32> {
        self.labels.version().map(u32::from).or_else(|| self.metadata.map(|metadata| metadata.version))
    }

    /// Returns the keywords, one bit each. `None` if unknown.
    pub fn keywords(&self) -> Option<u64> {
        self.labels.keywords().or_else(|| self.metadata.map(|metadata| metadata.keywords))
    }

    /// Returns the opcode. `None` if neither the labels nor the definition state one.
    pub fn opcode(&self) -> Option<u8> {
        self.labels.opcode().or_else(|| self.metadata.and_then(|metadata| metadata.opcode))
    }
}

/// A sequence point.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct SequencePoint<'a> {
    /// Ticks of the target's clock.
    pub timestamp: u64,
    /// For each thread, the number of events that it has tried to write.
    pub threads: ThreadSequences<'a>,
    pub(crate) flags: u32,
}

impl SequencePoint<'_> {
    /// Returns whether thread indexes are reassigned after this point (Nettrace 6).
    pub fn flushes_threads(&self) -> bool {
        self.flags & FLUSH_THREADS != 0
    }

    /// Returns whether metadata ids are reassigned after this point (Nettrace 6).
    pub fn flushes_metadata(&self) -> bool {
        self.flags & FLUSH_METADATA != 0
    }
}

/// Pairs of a capture thread and the sequence number of its last event. Threads are identified as in events: by id, in
/// Nettrace 6 by index.
#[derive(Debug, Clone, Copy)]
pub struct ThreadSequences<'a> {
    records: Records<'a>,
}

#[derive(Debug, Clone, Copy)]
enum Records<'a> {
    Fixed(&'a [[u8; 12]]),
    /// The number of pairs of variable-length integers, which were validated before.
    Variable(&'a [u8], u32),
}

impl<'a> ThreadSequences<'a> {
    pub(crate) fn fixed(records: &'a [[u8; 12]]) -> Self {
        Self { records: Records::Fixed(records) }
    }

    pub(crate) fn variable(bytes: &'a [u8], count: u32) -> Self {
        Self { records: Records::Variable(bytes, count) }
    }

    /// Returns the number of threads.
    pub fn len(&self) -> usize {
        match self.records {
            Records::Fixed(records) => records.len(),
            Records::Variable(_, count) => usize::try_from(count).unwrap_or(usize::MAX),
        }
    }

    /// Returns whether the sequence point lists no thread.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the pairs.
    pub fn iter(&self) -> impl Iterator<Item = (u64, u32)> + use<'a> {
        let (fixed, variable) = match self.records {
            Records::Fixed(records) => (records, &[][..]),
            Records::Variable(bytes, _) => (&[][..], bytes),
        };
        let fixed = fixed.iter().map(|[t0, t1, t2, t3, t4, t5, t6, t7, s0, s1, s2, s3]| {
            (
                u64::from_le_bytes([*t0, *t1, *t2, *t3, *t4, *t5, *t6, *t7]),
                u32::from_le_bytes([*s0, *s1, *s2, *s3]),
            )
        });
        let mut r = Reader::new(variable);
        let variable = std::iter::from_fn(move || {
            if r.is_empty() {
                return None;
            }
            Some((r.varu64("thread index").ok()?, r.varu32("sequence number").ok()?))
        });
        fixed.chain(variable)
    }
}
