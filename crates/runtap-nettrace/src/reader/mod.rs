//! The incremental reader: bytes in, items out. It owns the state between blocks: where in the stream it is, and
//! the tables that blocks fill. What lies inside a block is the business of `block`; this file has the interface and
//! the hot path, `advance` all the rest.
//!
//! Memory: the bytes that were fed and not yet used (at most one block, if the caller asks for items after every
//! feed), the definitions, the stacks since the last sequence point; all of it within [`Limits`].

mod advance;

use runtap_wire::{Deframer, Reader as Bytes};

use crate::block::blob::Blobs;
use crate::block::stack::StackTable;
use crate::metadata::MetadataTable;
use crate::raw::envelope::{Envelope, Kind};
use crate::sequence::Sequences;
use crate::{Error, Event, Item, Limits, Metadata, Partial, SequencePoint, TraceHeader};

/// Reads a stream, piece by piece.
///
/// ```
/// use runtap_nettrace::{Item, Reader};
///
/// # fn chunks() -> Vec<Vec<u8>> { vec![b"Nettrace\x14\0\0\0!FastSeria".to_vec(), b"lization.1\x01".to_vec()] }
/// let mut reader = Reader::new();
/// let mut events = 0;
/// for chunk in chunks() {
///     reader.feed(&chunk);
///     while let Some(item) = reader.next()? {
///         if let Item::Event(_) = item {
///             events += 1;
///         }
///     }
/// }
/// reader.finish();
/// while let Some(_rest_of_a_cut_stream) = reader.next()? {}
/// assert!(reader.is_complete() && reader.partial().is_none());
/// # Ok::<(), runtap_nettrace::Error>(())
/// ```
#[derive(Debug)]
pub struct Reader {
    queue: Deframer,
    envelope: Envelope,
    state: State,
    /// Bytes at the front of the queue that the item handed out last borrows; they go with the next call.
    release: usize,
    /// Length of the block at the front of the queue, in the states that are inside one.
    block: usize,
    blobs: Blobs,
    header: Option<TraceHeader>,
    metadata: MetadataTable,
    stacks: StackTable,
    sequences: Sequences,
    limits: Limits,
    counts: Counts,
    finished: bool,
    complete: bool,
    partial: Option<Partial>,
}

/// Oddities that do not end the reading, and what else is worth counting.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Counts {
    /// Objects that were skipped because nobody knows their name, or they ask for a newer reader.
    pub unknown_objects: u64,
    /// Bytes of those.
    pub unknown_bytes: u64,
    /// Definitions that replaced one with the same id.
    pub redefined_metadata: u64,
    /// Definitions that could not be read.
    pub damaged_metadata: u64,
    /// Events whose metadata id is not defined.
    pub events_without_metadata: u64,
    /// Call stacks that were defined.
    pub stacks: u64,
    /// Bytes after the end marker.
    pub trailing_bytes: u64,
}

/// Where in the stream the next byte is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// Between the payloads of two objects.
    Between,
    /// At the first byte of a payload, which may not be there as a whole.
    Payload { kind: Kind, version: u32, size: usize },
    /// Inside an `EventBlock`; `cut` means that the stream ends inside it.
    Events { cut: bool },
    /// Inside a `MetadataBlock`.
    Definitions,
    /// Inside the payload of an object that is not read.
    Skip { left: u64 },
    /// After the end marker, an error that cannot be mended, or the last byte.
    Over,
}

/// What one step of the reader led to.
enum Step {
    Again,
    Starved,
    Header,
    Metadata(u32),
    Event,
    SequencePoint,
    End,
}

impl Default for Reader {
    fn default() -> Self {
        Self::new()
    }
}

impl Reader {
    /// A reader with default limits.
    pub fn new() -> Self {
        Self::with_limits(Limits::default())
    }

    /// A reader with limits of its own.
    pub fn with_limits(limits: Limits) -> Self {
        Self {
            queue: Deframer::new(),
            envelope: Envelope::default(),
            state: State::Between,
            release: 0,
            block: 0,
            blobs: Blobs::default(),
            header: None,
            metadata: MetadataTable::default(),
            stacks: StackTable::default(),
            sequences: Sequences::new(limits.max_threads),
            limits,
            counts: Counts::default(),
            finished: false,
            complete: false,
            partial: None,
        }
    }

    /// Takes in the next bytes of the stream. Call [`Self::next`] until it gives `None` before the next feed, else
    /// the bytes pile up. Does nothing after [`Self::finish`] or an error that cannot be mended.
    pub fn feed(&mut self, bytes: &[u8]) {
        if self.complete {
            self.counts.trailing_bytes += bytes.len() as u64;
        } else if !self.finished && self.state != State::Over {
            self.queue.consume(std::mem::take(&mut self.release));
            self.queue.feed(bytes);
        }
    }

    /// Says that no more bytes will come. [`Self::next`] then gives what can be read of a block that is cut.
    pub fn finish(&mut self) {
        self.finished = true;
    }

    /// The next item. `None` means that more bytes are needed; after [`Self::finish`] and after an error that
    /// cannot be mended it means that there is nothing more.
    ///
    /// Everything in front of a damaged place was delivered when its error comes. An error inside a block is
    /// returned once, and the next call goes on behind that block; after one between blocks, every further call
    /// gives `None`. [`Self::partial`] remembers the first.
    #[inline]
    #[expect(clippy::should_implement_trait, reason = "an iterator cannot lend, and this one fails")]
    pub fn next(&mut self) -> Result<Option<Item<'_>>, Error> {
        let step = if matches!(self.state, State::Events { .. }) && self.next_event() {
            Step::Event
        } else {
            self.advance()?
        };
        Ok(match step {
            Step::Event => Some(Item::Event(self.event())),
            Step::Header => self.header.as_ref().map(Item::Header),
            Step::Metadata(id) => self.metadata.get(id).map(Item::Metadata),
            // Decoded once before, when its threads were counted.
            Step::SequencePoint => {
                SequencePoint::decode(&mut Bytes::new(self.block())).ok().map(Item::SequencePoint)
            }
            Step::End => Some(Item::End),
            Step::Again | Step::Starved => None,
        })
    }

    /// What the stream says about itself, once that was read.
    pub fn header(&self) -> Option<&TraceHeader> {
        self.header.as_ref()
    }

    /// Stream offset in bytes of what is read next.
    pub fn offset(&self) -> u64 {
        let inside = match self.state {
            State::Events { .. } | State::Definitions => self.blobs.position(),
            _ => self.release,
        };
        self.queue.offset() + inside as u64
    }

    /// Whether the end marker was seen.
    pub fn is_complete(&self) -> bool {
        self.complete
    }

    /// Why the stream is not whole. Known after an error, or when [`Self::next`] gave `None` after
    /// [`Self::finish`].
    pub fn partial(&self) -> Option<&Partial> {
        self.partial.as_ref()
    }

    /// Events that the runtime dropped, as gaps in the sequence numbers show. Losses after a thread's last event or
    /// sequence point, and before its first one, leave no gap.
    pub fn lost(&self) -> u64 {
        self.sequences.lost()
    }

    /// The definition of `id`, if the stream has brought one so far.
    pub fn metadata(&self, id: u32) -> Option<&Metadata> {
        self.metadata.get(id)
    }

    /// Oddities so far.
    pub fn counts(&self) -> Counts {
        Counts { stacks: self.stacks.defined(), ..self.counts.clone() }
    }

    /// Goes to the next event of the block at hand; `false` if there is none, or it cannot be read.
    #[inline]
    fn next_event(&mut self) -> bool {
        let block = self.queue.pending().get(..self.block).unwrap_or_default();
        // A fault comes up again in `next_event_or_close`, which has the time for it.
        if !matches!(self.blobs.advance(block), Ok(true)) {
            return false;
        }
        let head = &self.blobs.head;
        if head.metadata_id != 0 {
            self.sequences.event(head.capture_thread_id, head.sequence);
        }
        if self.metadata.get(head.metadata_id).is_none() {
            self.counts.events_without_metadata += 1;
        }
        true
    }

    /// The payload at hand.
    #[inline]
    fn block(&self) -> &[u8] {
        self.queue.pending().get(..self.block).unwrap_or_default()
    }

    #[inline]
    fn event(&self) -> Event<'_> {
        let head = &self.blobs.head;
        Event {
            metadata_id: head.metadata_id,
            metadata: self.metadata.get(head.metadata_id),
            thread_id: head.thread_id,
            capture_thread_id: head.capture_thread_id,
            processor: head.processor,
            sequence: head.sequence,
            stack_id: head.stack_id,
            stack: self.stacks.stack(head.stack_id),
            timestamp: head.timestamp,
            activity_id: head.activity_id,
            related_activity_id: head.related_activity_id,
            sorted: head.sorted,
            payload: self.queue.pending().get(self.blobs.payload()).unwrap_or_default(),
        }
    }
}
