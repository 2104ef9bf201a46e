//! The slow path of the reader: every step except from one event of a block to the next. Reads frames, and handles damage
//! and the end of the stream. `open` adds the contents of complete blocks to the tables.

use runtap_wire::{DecodeError, DecodeErrorKind, Reader as Bytes};

use super::{Decoder, DecoderState, Step};
use crate::block::Fault;
use crate::block::blob::Blobs;
use crate::block::netperf::{self, NetPerfEvent};
use crate::metadata::UNDEFINED;
use crate::raw::{Format, Frame, ObjectKind};
use crate::{Error, Metadata, Partial, PartialReason};

impl Decoder {
    /// Advances to the next item when it is not simply the next event of the current block.
    pub(super) fn advance(&mut self, window: &[u8]) -> Result<Step, Error> {
        self.at += std::mem::take(&mut self.release);
        loop {
            let step = match self.state {
                DecoderState::Between => self.next_frame(window)?,
                DecoderState::Payload { kind, version, size } => self.open(window, kind, version, size)?,
                DecoderState::Events { truncated } => self.next_event_or_close(window, truncated)?,
                DecoderState::Definitions => self.next_definition(window)?,
                DecoderState::Rows => self.next_row(window)?,
                DecoderState::NetPerf { truncated } => self.next_netperf_event(window, truncated)?,
                DecoderState::Unframed => self.next_bare_event(window)?,
                DecoderState::Skip { left } => self.skip(window, left),
                DecoderState::Ended => return Ok(Step::NeedsInput),
            };
            match step {
                Step::Continue => {}
                Step::NeedsInput if self.finished => self.at_end(window),
                step => return Ok(step),
            }
        }
    }

    /// Consumes the rest of the window.
    fn consume_all(&mut self, window: &[u8]) {
        self.at = window.len();
    }

    /// Reads the frame between two payloads.
    fn next_frame(&mut self, window: &[u8]) -> Result<Step, Error> {
        let pending = self.pending(window);
        let mut r = Bytes::at(pending, self.here());
        let frame = self.framing.next(&mut r, self.limits.max_block);
        self.at += pending.len() - r.remaining();
        let frame = match frame {
            Ok(Frame::Object { start, kind, .. })
                if kind != ObjectKind::Unknown && (kind == ObjectKind::Trace) == self.header.is_some() =>
            {
                let kind = DecodeErrorKind::Invalid("does not occur exactly once, as the first object");
                return Err(self.give_up(
                    window,
                    start,
                    DecodeError::new(start, "Trace object", kind).into(),
                ));
            }
            Err(Error::Decode(error)) if error.is_incomplete() => return Ok(Step::NeedsInput),
            Err(error) => return Err(self.give_up(window, self.here(), error)),
            Ok(frame) => frame,
        };
        match frame {
            Frame::End => Ok(self.end(window)),
            Frame::Object { start, kind: ObjectKind::Unknown, size, .. } => {
                self.counts.unknown_objects += 1;
                self.counts.first_unknown.get_or_insert(start);
                self.state = DecoderState::Skip { left: size.into() };
                Ok(Step::Continue)
            }
            Frame::Object { kind, version, size, .. } => {
                let size = usize::try_from(size).unwrap_or(usize::MAX);
                self.state = DecoderState::Payload { kind, version, size };
                Ok(Step::Continue)
            }
        }
    }

    /// Handles the end marker.
    fn end(&mut self, window: &[u8]) -> Step {
        self.complete = true;
        self.state = DecoderState::Ended;
        let here = self.here();
        self.counts.end.get_or_insert(here);
        self.counts.trailing_bytes += self.pending(window).len() as u64;
        self.consume_all(window);
        Step::End
    }

    /// Advances to the next event of the current block, or leaves the block at its end.
    fn next_event_or_close(&mut self, window: &[u8], truncated: bool) -> Result<Step, Error> {
        if self.undefined.is_none() && self.next_event(window) {
            return Ok(Step::Event);
        }
        if let Some(start) = self.undefined.take() {
            return Err(self.refuse_event(window, start, truncated));
        }
        let block = self.payload(window);
        // Read again to get the error.
        let again = match self.framing.format() {
            Format::Nettrace6 => self.blobs.advance::<true>(block),
            _ => self.blobs.advance::<false>(block),
        };
        match again {
            Err(fault) => self.fault(window, fault, truncated),
            Ok(_) => Ok(self.close(truncated)),
        }
    }

    /// Handles an event, starting at `start` of its block, whose id has no definition. If definitions were lost, only this
    /// event is skipped. Otherwise its header is damaged, and so are all later headers of the block, because each header
    /// only states its difference from the previous one.
    #[cold]
    fn refuse_event(&mut self, window: &[u8], start: usize, truncated: bool) -> Error {
        let offset = self.here() + start as u64;
        let error = DecodeError::new(offset, "metadata id", UNDEFINED);
        self.counts.events_without_metadata += 1;
        let head = &self.blobs.head;
        if !self.definitions_lost || head.metadata_id == 0 {
            return self.leave_block(window, offset, error, truncated);
        }
        // The target did not drop this event.
        self.sequences.event(head.capture_thread_id, head.sequence);
        self.note(offset, error)
    }

    /// Leaves the current block at its end.
    fn close(&mut self, truncated: bool) -> Step {
        if truncated {
            let unused = self.here() + self.block as u64 - self.offset();
            self.end_early(Partial { offset: self.offset(), reason: PartialReason::Cut { unused } });
            return Step::NeedsInput;
        }
        self.at += self.block;
        self.state = DecoderState::Between;
        Step::Continue
    }

    /// Handles data in the current block that cannot be read, from the current position on.
    fn fault(&mut self, window: &[u8], fault: Fault, truncated: bool) -> Result<Step, Error> {
        if truncated && fault.is_incomplete() {
            return Ok(self.close(true));
        }
        let error = fault.into_error(self.here() + self.block as u64);
        Err(self.leave_block(window, self.offset(), error, truncated))
    }

    /// Advances to the next readable definition of the current block.
    fn next_definition(&mut self, window: &[u8]) -> Result<Step, Error> {
        let (offset, block, before) = (self.offset(), self.payload(window), self.blobs);
        match self.blobs.advance::<false>(block) {
            Ok(true) => {}
            Ok(false) => return Ok(self.close(false)),
            Err(fault) => {
                self.definitions_lost = true;
                return self.fault(window, fault, false);
            }
        }
        let range = self.blobs.place.payload_range();
        let at = self.here() + range.start as u64;
        let record = block.get(range).unwrap_or_default();
        // Do not decode a definition that is too large: its fields would take many times its size in memory.
        let readable = record.get(..record.len().min(self.limits.max_definition)).unwrap_or_default();
        let metadata = Metadata::decode_v4(&mut Bytes::at(readable, at));
        if self.has_to_wait(metadata.as_ref()) {
            self.blobs = before;
            return Ok(Step::Waiting);
        }
        match self.define(metadata, record.len()) {
            Ok(step) => Ok(step),
            Err(kind) => {
                let error = DecodeError::new(at, "event definitions", kind);
                Err(self.leave_definitions(window, offset, error))
            }
        }
    }

    /// Advances to the next definition in a block of Nettrace 6.
    fn next_row(&mut self, window: &[u8]) -> Result<Step, Error> {
        let (offset, block) = (self.offset(), self.payload(window));
        let rest = block.get(self.row..).unwrap_or_default();
        if rest.is_empty() {
            return Ok(self.close(false));
        }
        let mut r = Bytes::at(rest, offset);
        let row = r.u16("size of a definition").and_then(|size| r.sub(size.into(), "definition"));
        let step = row.and_then(|mut row| {
            let size = row.remaining();
            let metadata = Metadata::decode_v6(&mut row);
            if self.has_to_wait(metadata.as_ref()) {
                return Ok(Step::Waiting);
            }
            self.row += rest.len() - r.remaining();
            self.define(metadata, size).map_err(|kind| DecodeError::new(offset, "event definitions", kind))
        });
        step.map_err(|error| self.leave_definitions(window, offset, error))
    }

    /// Leaves a block of definitions that cannot be read from `offset` on.
    fn leave_definitions(&mut self, window: &[u8], offset: u64, error: DecodeError) -> Error {
        self.definitions_lost = true;
        self.leave_block(window, offset, error, false)
    }

    /// Returns whether events that are held back use another definition with this id.
    fn has_to_wait(&self, metadata: Result<&Metadata, &DecodeError>) -> bool {
        self.held_back
            && metadata.is_ok_and(|new| self.tables.metadata.get(new.id).is_some_and(|old| old != new))
    }

    /// Adds a definition with an encoded size of `size` bytes.
    fn define(
        &mut self,
        metadata: Result<Metadata, DecodeError>,
        size: usize,
    ) -> Result<Step, DecodeErrorKind> {
        // The id 0 is reserved for definitions.
        let is_sound = |metadata: &Metadata| metadata.id != 0 && size <= self.limits.max_definition;
        let Some(metadata) = metadata.ok().filter(is_sound) else {
            self.counts.damaged_metadata += 1;
            self.definitions_lost = true;
            return Ok(Step::Continue);
        };
        let id = metadata.id;
        let redefined = self.tables.metadata.insert(metadata, size, &self.limits)?;
        self.counts.redefined_metadata += u64::from(redefined);
        Ok(Step::Metadata(id))
    }

    /// Advances to the next event or definition of a block of `NetPerf` 3.
    fn next_netperf_event(&mut self, window: &[u8], truncated: bool) -> Result<Step, Error> {
        let block = self.payload(window);
        if self.row >= block.len() {
            return Ok(self.close(truncated));
        }
        let place = match netperf::frame(block, self.row) {
            Ok(place) => place,
            Err(fault) => return self.fault(window, fault, truncated),
        };
        let start = self.offset();
        self.row = place.end;
        self.netperf_event_at(block, &place, start)
    }

    /// Advances to the next event or definition of `NetPerf` 1 or 2.
    fn next_bare_event(&mut self, window: &[u8]) -> Result<Step, Error> {
        let pending = self.pending(window);
        match self.is_tail(window) {
            None => return Ok(Step::NeedsInput),
            Some(true) => {
                self.at += netperf::TAIL;
                return Ok(self.end(window));
            }
            Some(false) => {}
        }
        let at = self.here();
        let place = match netperf::unframed(pending, at, self.limits.max_block) {
            Ok(Some(place)) => place,
            Ok(None) => return Ok(Step::NeedsInput),
            Err(error) => return Err(self.give_up(window, at, error.into())),
        };
        self.block = place.end;
        self.release = place.end;
        let start = self.here();
        let step = self.netperf_event_at(pending, &place, start);
        if !matches!(step, Ok(Step::Event)) {
            self.at += std::mem::take(&mut self.release);
        }
        step
    }

    /// Decodes an event or a definition of `NetPerf`, given its range in the current payload and its stream offset.
    fn netperf_event_at(
        &mut self,
        payload: &[u8],
        place: &std::ops::Range<usize>,
        offset: u64,
    ) -> Result<Step, Error> {
        let end = self.here() + place.end as u64;
        self.netperf = match NetPerfEvent::decode(payload, place) {
            Ok(event) => event,
            // The next event can be found, because this one states its size.
            Err(fault) => return Err(self.note(offset, fault.into_error(end))),
        };
        if self.netperf.metadata_id != 0 {
            if self.tables.metadata.get(self.netperf.metadata_id).is_none() {
                self.counts.events_without_metadata += 1;
                return Err(self.note(offset, DecodeError::new(offset, "metadata id", UNDEFINED)));
            }
            return Ok(Step::Event);
        }
        let range = self.netperf.payload.clone();
        let size = range.len();
        let record = payload.get(range).unwrap_or_default();
        let readable = record.get(..size.min(self.limits.max_definition)).unwrap_or_default();
        let mut r = Bytes::at(readable, offset);
        let version = self.header.as_ref().map_or(0, |header| header.version);
        let metadata = Metadata::decode_netperf(&mut r, self.framing.format(), offset, version);
        self.define(metadata, size)
            .map_err(|kind| self.note(offset, DecodeError::new(offset, "event definitions", kind)))
    }

    /// Discards the available bytes of a skipped object.
    fn skip(&mut self, window: &[u8], left: u64) -> Step {
        let here = left.min(self.pending(window).len() as u64);
        self.at += usize::try_from(here).unwrap_or(usize::MAX);
        self.counts.unknown_bytes += here;
        if here == left {
            self.state = DecoderState::Between;
            return Step::Continue;
        }
        self.state = DecoderState::Skip { left: left - here };
        Step::NeedsInput
    }

    /// Handles missing bytes at the end of the stream.
    fn at_end(&mut self, window: &[u8]) {
        let (offset, pending) = (self.here(), self.pending(window));
        if let DecoderState::Payload { kind: ObjectKind::Event, .. } = self.state {
            self.block = pending.len();
            self.row = 0;
            if self.framing.format() == Format::NetPerf3 {
                self.state = DecoderState::NetPerf { truncated: true };
                return;
            }
            if let Ok(blobs) = Blobs::start(pending, offset) {
                self.blobs = blobs;
                self.state = DecoderState::Events { truncated: true };
                return;
            }
        }
        if self.part_ends && pending.is_empty() {
            self.state = DecoderState::Ended;
            return;
        }
        let reason = match self.state {
            DecoderState::Between | DecoderState::Unframed if pending.is_empty() => {
                PartialReason::NoEndMarker
            }
            _ => PartialReason::Cut { unused: pending.len() as u64 },
        };
        self.end_early(Partial { offset, reason });
        self.consume_all(window);
    }

    /// Ends the reading before the end marker.
    fn end_early(&mut self, partial: Partial) {
        self.partial.get_or_insert(partial);
        self.state = DecoderState::Ended;
    }

    /// Records an error at `offset` that does not end the reading.
    #[cold]
    fn note(&mut self, offset: u64, error: DecodeError) -> Error {
        let error = Error::Decode(error);
        self.partial.get_or_insert_with(|| Partial { offset, reason: PartialReason::Damaged(error.clone()) });
        error
    }

    /// Ends the reading with an error at `offset`.
    #[cold]
    pub(super) fn give_up(&mut self, window: &[u8], offset: u64, error: Error) -> Error {
        self.end_early(Partial { offset, reason: PartialReason::Damaged(error.clone()) });
        self.consume_all(window);
        error
    }

    /// Records an error at `offset` in the current block, and continues after the block.
    #[cold]
    pub(super) fn leave_block(
        &mut self,
        window: &[u8],
        offset: u64,
        error: DecodeError,
        truncated: bool,
    ) -> Error {
        self.at = (self.at + self.block).min(window.len());
        self.state = if truncated { DecoderState::Ended } else { DecoderState::Between };
        self.note(offset, error)
    }
}
