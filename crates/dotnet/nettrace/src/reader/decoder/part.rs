//! Readers of parts of a stream, and joining their results. `parts` finds the parts.

use runtap_wire::Reader as Bytes;

use super::{Counts, Decoder, DecoderState, Tables};
use crate::Reader;
use crate::raw::{Format, Frame, ObjectKind};

/// The information that a scan needs from the header of a frame.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Peeked {
    /// The length from the header to the end of the frame. `None` at the end of the stream, or if unknown.
    pub(crate) length: Option<u64>,
    /// Whether all later parts need its contents.
    pub(crate) is_read: bool,
    /// Whether it defines data that is referred to until the next sequence point.
    pub(crate) is_of_epoch: bool,
    /// Whether it is a sequence point.
    pub(crate) ends_epoch: bool,
}

impl Decoder {
    /// Reads the header of the next frame, with the tag that ends the previous object, without consuming it. `None` if more
    /// bytes are needed.
    pub(crate) fn peek(&self, bytes: &[u8]) -> Option<Peeked> {
        let mut framing = self.framing.clone();
        let mut r = Bytes::at(bytes, self.here());
        let mut peeked = Peeked { length: None, is_read: false, is_of_epoch: false, ends_epoch: false };
        let (kind, size) = match framing.next(&mut r, self.limits.max_block) {
            Ok(Frame::Object { kind, size, .. }) => (kind, size),
            Err(crate::Error::Decode(error)) if error.is_incomplete() => return None,
            Ok(Frame::End) | Err(_) => return Some(peeked),
        };
        let in_place = (kind == ObjectKind::Trace) == self.header.is_none();
        // Blocks of NetPerf contain definitions between events.
        if !in_place || matches!(framing.format(), Format::NetPerf1 | Format::NetPerf3) {
            return Some(peeked);
        }
        let header = (bytes.len() - r.remaining()) as u64;
        peeked.length = Some(header + u64::from(size));
        peeked.is_of_epoch = matches!(kind, ObjectKind::Stack | ObjectKind::LabelList);
        peeked.ends_epoch = kind == ObjectKind::SequencePoint;
        peeked.is_read = !matches!(
            kind,
            ObjectKind::Event | ObjectKind::Stack | ObjectKind::LabelList | ObjectKind::Unknown
        );
        Some(peeked)
    }

    /// Reads a frame for the information that later parts need. `None` if nothing more can be read.
    pub(crate) fn pass(&mut self, frame: &[u8]) -> Option<()> {
        while self.for_each(frame, &mut |_| {}).is_err() {}
        (self.state != DecoderState::Ended).then_some(())
    }

    /// Sets the offset of the next frame.
    pub(crate) fn seek(&mut self, offset: u64) {
        (self.base, self.at, self.release) = (offset, 0, 0);
        self.framing.go_behind_payload();
        self.state = DecoderState::Between;
    }

    /// Creates the decoder of the part with this number, which starts at the current position.
    pub(crate) fn for_part(&self, index: u64) -> Self {
        let mut tables = Tables {
            metadata: self.tables.metadata.clone(),
            threads: self.tables.threads.clone(),
            ..Tables::default()
        };
        tables.stacks.set_pointer_size(self.header.as_ref().map_or(8, |header| header.pointer_size));
        tables.stacks.set_part(index);
        Self {
            framing: self.framing.clone(),
            header: self.header.clone(),
            tables,
            sequences: self.sequences.of_part(),
            definitions_lost: self.definitions_lost,
            ..Self::new(self.limits)
        }
    }
}

impl Reader {
    /// Creates a reader of the part that starts at an offset.
    pub(crate) fn of_part(decoder: Decoder, start: u64, last: bool) -> Self {
        Self { decoder: Decoder { part_start: start, part_ends: !last, ..decoder }, ..Self::new() }
    }

    /// Continues with the bytes at `offset`, where a range of its [`Part`](crate::Part) starts. Not useful for other
    /// readers.
    pub fn seek(&mut self, offset: u64) {
        self.decoder.shift();
        self.queue.consume(usize::MAX);
        self.decoder.seek(offset);
        if offset == self.decoder.part_start {
            // The earlier ranges belong to other parts, which report their results.
            self.decoder.counts = Counts::default();
            self.decoder.tables.stacks.reset_defined();
            self.decoder.partial = None;
        }
    }

    /// Adds the results of the reader of the next part: [`Self::lost`], [`Self::counts`], [`Self::partial`],
    /// [`Self::is_complete`] and [`Self::metadata`] then cover both parts. Join readers in the order of their parts,
    /// when each has read its part.
    pub fn join(&mut self, next: Self) {
        let (decoder, next) = (&mut self.decoder, next.decoder);
        let stacks = decoder.tables.stacks.defined();
        decoder.sequences.join(next.sequences);
        decoder.counts.add(&next.counts);
        decoder.partial = decoder.partial.take().or(next.partial);
        decoder.complete |= next.complete;
        decoder.header = decoder.header.take().or(next.header);
        decoder.tables = next.tables;
        decoder.tables.stacks.add_defined(stacks);
    }
}
