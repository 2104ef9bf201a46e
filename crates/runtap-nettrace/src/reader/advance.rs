//! The slow half of the reader: whatever is not the next event of the block at hand. It takes payloads off the stream,
//! fills the tables from them, and settles what happens at damage and at the end. Refuses to look at single events.

use runtap_wire::{DecodeError, DecodeErrorKind, Reader as Bytes};

use super::{Reader, State, Step};
use crate::block::blob::Blobs;
use crate::raw::envelope::{Frame, Kind};
use crate::{Error, Metadata, Partial, PartialReason, SequencePoint, TraceHeader};

impl Reader {
    /// Goes on to the next item that is not simply the next event of the block at hand.
    pub(super) fn advance(&mut self) -> Result<Step, Error> {
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
                return Err(self.give_up(start, DecodeError::new(start, "Trace object", kind).into()));
            }
            Err(Error::Decode(error)) if error.is_incomplete() => {
                self.queue.consume(used);
                return Ok(Step::Starved);
            }
            Err(error) => {
                self.queue.consume(used);
                return Err(self.give_up(self.queue.offset(), error));
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
            Err(error) if kind == Kind::Trace => Err(self.give_up(offset, error.into())),
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
        let Ok(metadata) = Metadata::decode_v4(&mut Bytes::at(record, at)) else {
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

    /// An error that cannot be mended, from `offset` on.
    #[cold]
    fn give_up(&mut self, offset: u64, error: Error) -> Error {
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
