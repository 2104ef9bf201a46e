//! What [`Reader::next`](crate::Reader::next) hands out: views of a stream's parts that borrow from the reader.

use runtap_wire::{Reader, Uuid};

use crate::block::point::{FLUSH_METADATA, FLUSH_THREADS};
use crate::{Labels, Metadata, Stack, Thread, TraceHeader};

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
///
/// What a definition says may be replaced by the event's own labels: ask [`Self::level`], [`Self::version`],
/// [`Self::keywords`] and [`Self::opcode`] rather than the definition.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct Event<'a> {
    /// Which definition describes the event.
    pub metadata_id: u32,
    /// That definition. A reader hands out no event without one.
    pub metadata: Option<&'a Metadata>,
    /// Operating system's id of the thread that the event is about: a CPU sample's is the sampled thread. In Nettrace 6
    /// the index of the thread, if the stream does not tell the id.
    pub thread_id: u64,
    /// Operating system's id of the thread that wrote the event; in Nettrace 6 as above.
    pub capture_thread_id: u64,
    /// Operating system's id of the process of the first one, where the stream tells it (Nettrace 6). Otherwise it is
    /// [`TraceHeader::process_id`].
    pub process_id: Option<u64>,
    /// What the stream says about the first one (Nettrace 6).
    pub thread: Option<&'a Thread>,
    /// What the stream says about the second one (Nettrace 6).
    pub capture_thread: Option<&'a Thread>,
    /// Processor that the event was written on; `u32::MAX` if the runtime did not know, or the stream does not tell it
    /// (`NetPerf`).
    pub processor: u32,
    /// Number of the event among those of its capture thread, modulo 2^32. 0 in `NetPerf`, which has none.
    pub sequence: u32,
    /// Id of the call stack, valid up to the next sequence point. `u32::MAX` in `NetPerf`, where the stack stands in the
    /// event: it is [`Self::stack`] alone.
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
    /// What else hangs on the event (Nettrace 6).
    pub labels: Labels<'a>,
    /// Whether a run of one capture thread's events starts here, and no later event of the stream is older.
    pub sorted: bool,
    /// The fields, as [`Metadata::fields`] or the provider's own documentation describes them.
    pub payload: &'a [u8],
}

impl Event<'_> {
    /// Level: 1 critical to 5 verbose; 0 always.
    pub fn level(&self) -> Option<u32> {
        self.labels.level().map(u32::from).or_else(|| self.metadata.map(|metadata| metadata.level))
    }

    /// Version of the event.
    pub fn version(&self) -> Option<u32> {
        self.labels.version().map(u32::from).or_else(|| self.metadata.map(|metadata| metadata.version))
    }

    /// Keywords, one bit each.
    pub fn keywords(&self) -> Option<u64> {
        self.labels.keywords().or_else(|| self.metadata.map(|metadata| metadata.keywords))
    }

    /// Opcode, if anything states one.
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
    /// For each thread: how many events it has tried to write so far.
    pub threads: ThreadSequences<'a>,
    pub(crate) flags: u32,
}

impl SequencePoint<'_> {
    /// Whether indexes of threads are given out anew from here on (Nettrace 6).
    pub fn flushes_threads(&self) -> bool {
        self.flags & FLUSH_THREADS != 0
    }

    /// Whether metadata ids are given out anew from here on (Nettrace 6).
    pub fn flushes_metadata(&self) -> bool {
        self.flags & FLUSH_METADATA != 0
    }
}

/// Pairs of (capture thread, number of its last event). The thread is named as in events' headers: by its id, in Nettrace
/// 6 by its index.
#[derive(Debug, Clone, Copy)]
pub struct ThreadSequences<'a> {
    records: Records<'a>,
}

#[derive(Debug, Clone, Copy)]
enum Records<'a> {
    Fixed(&'a [[u8; 12]]),
    /// So many pairs of variable-length integers, read once before.
    Variable(&'a [u8], u32),
}

impl<'a> ThreadSequences<'a> {
    pub(crate) fn fixed(records: &'a [[u8; 12]]) -> Self {
        Self { records: Records::Fixed(records) }
    }

    pub(crate) fn variable(bytes: &'a [u8], count: u32) -> Self {
        Self { records: Records::Variable(bytes, count) }
    }

    /// Number of threads.
    pub fn len(&self) -> usize {
        match self.records {
            Records::Fixed(records) => records.len(),
            Records::Variable(_, count) => usize::try_from(count).unwrap_or(usize::MAX),
        }
    }

    /// Whether the sequence point names no thread.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The pairs.
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
