//! Readings of parts of a stream, and how they become one. Finds no parts: that is the business of `parts`.

use runtap_wire::Reader as Bytes;

use super::Reader;
use super::core::{Core, State, Tables};
use crate::raw::{Format, Frame, Kind};

/// What a scan learns from the header of a frame.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Peeked {
    /// From the header to the end of the frame; `None` at the end of the stream, or where it cannot be told.
    pub(crate) length: Option<u64>,
    /// Whether what it says has to be known to all that follows.
    pub(crate) is_read: bool,
    /// Whether it defines what is named up to the next sequence point.
    pub(crate) is_of_epoch: bool,
    /// Whether it is a sequence point.
    pub(crate) ends_epoch: bool,
}

impl Core {
    /// Reads the header of the frame that comes next, with the tag that ends the object before it, and leaves it there; `None` if these are too few bytes.
    pub(crate) fn peek(&self, bytes: &[u8]) -> Option<Peeked> {
        let mut framing = self.framing.clone();
        let mut r = Bytes::at(bytes, self.here());
        let mut peeked = Peeked { length: None, is_read: false, is_of_epoch: false, ends_epoch: false };
        let (kind, size) = match framing.next(&mut r, self.limits.max_block) {
            Ok(Frame::Object { kind, size, .. }) => (kind, size),
            Err(crate::Error::Decode(error)) if error.is_incomplete() => return None,
            Ok(Frame::End) | Err(_) => return Some(peeked),
        };
        let in_place = (kind == Kind::Trace) == self.header.is_none();
        // Blocks of NetPerf hold definitions among their events.
        if !in_place || matches!(framing.format(), Format::NetPerf1 | Format::NetPerf3) {
            return Some(peeked);
        }
        let header = (bytes.len() - r.remaining()) as u64;
        peeked.length = Some(header + u64::from(size));
        peeked.is_of_epoch = matches!(kind, Kind::Stack | Kind::LabelList);
        peeked.ends_epoch = kind == Kind::SequencePoint;
        peeked.is_read = !matches!(kind, Kind::Event | Kind::Stack | Kind::LabelList | Kind::Unknown);
        Some(peeked)
    }

    /// Reads a frame for what it says about all that follows; `None` if nothing can be read any more.
    pub(crate) fn pass(&mut self, frame: &[u8]) -> Option<()> {
        while self.for_each(frame, &mut |_| {}).is_err() {}
        (self.state != State::Over).then_some(())
    }

    /// What comes next is the frame at this offset.
    pub(crate) fn go_to(&mut self, offset: u64) {
        (self.base, self.at, self.release) = (offset, 0, 0);
        self.framing.go_behind_payload();
        self.state = State::Between;
    }

    /// A reading of the part of this number, which begins where this one is.
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
    /// A reader of the part that begins at an offset.
    pub(crate) fn of_part(core: Core, start: u64, last: bool) -> Self {
        Self { core: Core { part_start: start, part_ends: !last, ..core }, ..Self::new() }
    }

    /// Goes on with the bytes at `offset`, where a piece of its [`Part`](crate::Part) begins. Makes no sense for other
    /// readers.
    pub fn go_to(&mut self, offset: u64) {
        self.core.shift();
        self.queue.consume(usize::MAX);
        self.core.go_to(offset);
        if offset == self.core.part_start {
            // What the pieces before it had to tell was told by the parts that they belong to.
            self.core.counts = super::Counts::default();
            self.core.tables.stacks.count_from_here();
            self.core.partial = None;
        }
    }

    /// Takes over what the reader of the next part has found: [`Self::lost`], [`Self::counts`], [`Self::partial`],
    /// [`Self::is_complete`] and [`Self::metadata`] then speak of both. Readers are joined in the order of their parts,
    /// when each has read its own.
    pub fn join(&mut self, next: Self) {
        let (core, next) = (&mut self.core, next.core);
        let stacks = core.tables.stacks.defined();
        core.sequences.join(next.sequences);
        core.counts.add(&next.counts);
        core.partial = core.partial.take().or(next.partial);
        core.complete |= next.complete;
        core.header = core.header.take().or(next.header);
        core.tables = next.tables;
        core.tables.stacks.add_defined(stacks);
    }
}
