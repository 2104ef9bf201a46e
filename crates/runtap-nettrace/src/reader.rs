//! The incremental reader: bytes in, items out. It owns the state between blocks: where in the stream it is, and
//! the tables that blocks fill. What lies inside a block is the business of `block`.
//!
//! Memory: the bytes that were fed and not yet used (at most one block, if the caller asks for items after every
//! feed), the definitions, the stacks since the last sequence point; all of it within [`Limits`].

use runtap_wire::{DecodeError, DecodeErrorKind, Deframer, Reader as Bytes};

use crate::block::blob::Blobs;
use crate::block::stack::StackTable;
use crate::metadata::MetadataTable;
use crate::raw::envelope::{Envelope, Frame, Kind};
use crate::sequence::Sequences;
use crate::{Error, Event, Item, Limits, Metadata, Partial, PartialReason, SequencePoint, TraceHeader};

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

    /// Goes on to the next item that is not simply the next event of the block at hand.
    fn advance(&mut self) -> Result<Step, Error> {
        self.queue.consume(std::mem::take(&mut self.release));
        loop {
            let step = match self.state {
                State::Between => self.next_frame()?,
                State::Payload { kind, version, size } => self.open(kind, version, size)?,
                State::Events { cut } => self.next_event_or_close(cut)?,
                State::Definitions => self.next_definition()?,
                State::Skip { left } => self.skip(left),
                State::Over => return Ok(Step::Starved),
            };
            match step {
                Step::Again => {}
                Step::Starved if self.finished => self.at_end(),
                step => return Ok(step),
            }
        }
    }

    /// Reads what stands between two payloads.
    fn next_frame(&mut self) -> Result<Step, Error> {
        let mut r = Bytes::at(self.queue.pending(), self.queue.offset());
        let frame = self.envelope.next(&mut r, self.limits.max_block);
        let used = self.queue.pending().len() - r.remaining();
        let frame = match frame {
            Ok(Frame::Object { start, kind, .. })
                if kind != Kind::Unknown && (kind == Kind::Trace) == self.header.is_some() =>
            {
                let kind = DecodeErrorKind::Invalid("does not come exactly once, as the first object");
                return Err(self.give_up(DecodeError::new(start, "Trace object", kind).into()));
            }
            Err(Error::Decode(error)) if error.is_incomplete() => {
                self.queue.consume(used);
                return Ok(Step::Starved);
            }
            Err(error) => {
                self.queue.consume(used);
                return Err(self.give_up(error));
            }
            Ok(frame) => frame,
        };
        self.queue.consume(used);
        match frame {
            Frame::End => {
                self.complete = true;
                self.state = State::Over;
                self.counts.trailing_bytes += self.queue.pending().len() as u64;
                self.queue.consume(usize::MAX);
                Ok(Step::End)
            }
            Frame::Object { kind: Kind::Unknown, size, .. } => {
                self.counts.unknown_objects += 1;
                self.state = State::Skip { left: size.into() };
                Ok(Step::Again)
            }
            Frame::Object { kind, version, size, .. } => {
                let size = usize::try_from(size).unwrap_or(usize::MAX);
                self.state = State::Payload { kind, version, size };
                Ok(Step::Again)
            }
        }
    }

    /// Reads a payload, or the first bytes of one that holds several items, if it is there as a whole.
    fn open(&mut self, kind: Kind, version: u32, size: usize) -> Result<Step, Error> {
        let offset = self.queue.offset();
        let Some(payload) = self.queue.pending().get(..size) else { return Ok(Step::Starved) };
        self.block = size;
        let mut r = Bytes::at(payload, offset);
        let opened = match kind {
            Kind::Trace => TraceHeader::decode(&mut r, version).map(|header| {
                self.stacks.set_pointer_size(header.pointer_size);
                self.header = Some(header);
                (State::Between, Step::Header)
            }),
            Kind::Stack => self
                .stacks
                .add_block(&mut r, self.limits.max_stack_bytes)
                .map(|()| (State::Between, Step::Again)),
            Kind::SequencePoint => {
                // Whatever is wrong with the rest of it, ids start anew.
                self.stacks.next_epoch();
                SequencePoint::decode(&mut r).map(|point| {
                    for (thread, sequence) in point.threads.iter() {
                        self.sequences.point(thread, sequence);
                    }
                    (State::Between, Step::SequencePoint)
                })
            }
            Kind::Event | Kind::Metadata => Blobs::start(payload, offset).map(|blobs| {
                self.blobs = blobs;
                (
                    if kind == Kind::Event { State::Events { cut: false } } else { State::Definitions },
                    Step::Again,
                )
            }),
            // Never gets here.
            Kind::Unknown => Ok((State::Between, Step::Again)),
        };
        match opened {
            Ok((state, step)) => {
                self.state = state;
                if state == State::Between {
                    self.release = size;
                }
                if matches!(step, Step::Again) {
                    self.queue.consume(std::mem::take(&mut self.release));
                }
                Ok(step)
            }
            // Nothing can be read without the pointer size and the clock.
            Err(error) if kind == Kind::Trace => Err(self.give_up(error.into())),
            Err(error) => Err(self.leave_block(offset, error, false)),
        }
    }

    /// Goes to the next event of the block at hand, or leaves a block that has no further one.
    fn next_event_or_close(&mut self, cut: bool) -> Result<Step, Error> {
        if self.next_event() {
            return Ok(Step::Event);
        }
        let block = self.queue.pending().get(..self.block).unwrap_or_default();
        let offset = self.offset();
        // Asks a second time, for the reason.
        match self.blobs.advance(block) {
            Err(fault) if !(cut && fault.is_incomplete()) => {
                let error = fault.into_error(self.queue.offset() + self.block as u64);
                Err(self.leave_block(offset, error, cut))
            }
            _ if cut => {
                let unused = self.queue.offset() + self.block as u64 - offset;
                self.end_early(Partial { offset, reason: PartialReason::Cut { unused } });
                Ok(Step::Starved)
            }
            _ => {
                self.queue.consume(self.block);
                self.state = State::Between;
                Ok(Step::Again)
            }
        }
    }

    /// Goes to the next readable definition of the block at hand.
    fn next_definition(&mut self) -> Result<Step, Error> {
        let start = self.queue.offset();
        let offset = self.offset();
        let block = self.queue.pending().get(..self.block).unwrap_or_default();
        match self.blobs.advance(block) {
            Ok(true) => {}
            Ok(false) => {
                self.queue.consume(self.block);
                self.state = State::Between;
                return Ok(Step::Again);
            }
            Err(fault) => {
                let error = fault.into_error(start + self.block as u64);
                return Err(self.leave_block(offset, error, false));
            }
        }
        let range = self.blobs.payload();
        let at = start + range.start as u64;
        let record = block.get(range).unwrap_or_default();
        let Ok(metadata) = Metadata::decode(&mut Bytes::at(record, at)) else {
            self.counts.damaged_metadata += 1;
            return Ok(Step::Again);
        };
        let id = metadata.id;
        match self.metadata.insert(metadata, record.len(), &self.limits) {
            Ok(redefined) => {
                self.counts.redefined_metadata += u64::from(redefined);
                Ok(Step::Metadata(id))
            }
            Err(kind) => {
                Err(self.leave_block(offset, DecodeError::new(at, "event definitions", kind), false))
            }
        }
    }

    /// Drops what is there of an object that is not read.
    fn skip(&mut self, left: u64) -> Step {
        let here = left.min(self.queue.pending().len() as u64);
        self.queue.consume(usize::try_from(here).unwrap_or(usize::MAX));
        self.counts.unknown_bytes += here;
        if here == left {
            self.state = State::Between;
            return Step::Again;
        }
        self.state = State::Skip { left: left - here };
        Step::Starved
    }

    /// No more bytes will come, and the reader needs some.
    fn at_end(&mut self) {
        let offset = self.queue.offset();
        let pending = self.queue.pending();
        if let State::Payload { kind: Kind::Event, .. } = self.state
            && let Ok(blobs) = Blobs::start(pending, offset)
        {
            self.blobs = blobs;
            self.block = pending.len();
            self.state = State::Events { cut: true };
            return;
        }
        let reason = match self.state {
            State::Between if pending.is_empty() => PartialReason::NoEndMarker,
            _ => PartialReason::Cut { unused: pending.len() as u64 },
        };
        self.end_early(Partial { offset, reason });
    }

    /// Nothing more can be read.
    fn end_early(&mut self, partial: Partial) {
        self.partial.get_or_insert(partial);
        self.state = State::Over;
        self.queue.consume(usize::MAX);
    }

    /// An error that cannot be mended.
    #[cold]
    fn give_up(&mut self, error: Error) -> Error {
        let offset = self.queue.offset();
        self.end_early(Partial { offset, reason: PartialReason::Damaged(error.clone()) });
        error
    }

    /// An error inside the block at hand, from `offset` on: goes on behind the block.
    #[cold]
    fn leave_block(&mut self, offset: u64, error: DecodeError, cut: bool) -> Error {
        let error = Error::Decode(error);
        self.partial.get_or_insert_with(|| Partial { offset, reason: PartialReason::Damaged(error.clone()) });
        self.queue.consume(self.block);
        self.state = if cut { State::Over } else { State::Between };
        error
    }
}
