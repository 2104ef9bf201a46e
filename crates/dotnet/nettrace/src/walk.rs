//! Iterates over the objects and blocks of a stream, each with its complete payload, for uses that need the structure
//! and not the events. Parses no payload, except the events outside of blocks in `NetPerf` 1 and 2.

use runtap_wire::{Deframer, Reader as Bytes, Writer};

use crate::block::netperf;
use crate::raw::envelope::{BLOCK_VERSION, END_OBJECT, first_tags, is_followed, name_of};
use crate::raw::{Format, Frame, Framing, ObjectKind};
use crate::resync::{self, SearchResult};
use crate::{Error, Limits};

/// Walks over a stream incrementally.
#[derive(Debug, Default)]
pub(crate) struct Walker {
    queue: Deframer,
    framing: Framing,
    state: WalkState,
    limits: Limits,
    /// The number of bytes that were returned, to be released by the next call.
    release: usize,
    finished: bool,
    /// Whether to search for the next object after damage between objects.
    resyncs: bool,
    /// The offset of the last object that was found by a search.
    resumed: Option<u64>,
}

#[derive(Debug, Clone, Default)]
enum WalkState {
    #[default]
    Between,
    Payload(FrameHeader),
    /// After the Trace object of `NetPerf` 1 or 2.
    Bare,
    /// In an object of an unknown kind.
    Skip(u64),
    /// After damage that begins at the offset: searching for the next object.
    Lost(u64),
    Over,
}

/// The header of an object or block.
#[derive(Debug, Clone)]
pub(crate) struct FrameHeader {
    /// The stream offset of its first byte.
    pub(crate) start: u64,
    /// Its bytes before the payload, including padding.
    pub(crate) bytes: Vec<u8>,
    pub(crate) kind: ObjectKind,
    pub(crate) version: u32,
    /// The size of the payload in bytes.
    pub(crate) size: u32,
}

impl FrameHeader {
    /// The bytes before the length of an object's name: two tags, a null reference, two versions.
    const FIXED: usize = 3 + 4 + 4;

    /// Creates the header of a sequence point of Nettrace 4 that is not in the stream, at `start`.
    pub(crate) fn of_sequence_point(start: u64) -> Self {
        let mut w = Writer::new();
        let name = name_of(ObjectKind::SequencePoint);
        w.bytes(&first_tags(Format::Nettrace4)).u32(BLOCK_VERSION).u32(BLOCK_VERSION);
        w.u32(u32::try_from(name.len()).unwrap_or_default()).bytes(name).u8(END_OBJECT);
        Self {
            start,
            bytes: w.into_bytes(),
            kind: ObjectKind::SequencePoint,
            version: BLOCK_VERSION,
            size: 0,
        }
    }

    /// Returns the name of the object.
    pub(crate) fn name(&self) -> &[u8] {
        let rest = self.bytes.get(Self::FIXED..).unwrap_or_default();
        let Some((size, rest)) = rest.split_first_chunk::<4>() else { return &[] };
        rest.get(..usize::try_from(u32::from_le_bytes(*size)).unwrap_or(usize::MAX)).unwrap_or_default()
    }

    /// Returns the header of the object without the size of its payload and the padding.
    pub(crate) fn object_header(&self) -> &[u8] {
        self.bytes.get(..Self::FIXED + 4 + self.name().len() + 1).unwrap_or(&self.bytes)
    }
}

/// A step of the walk.
#[derive(Debug)]
pub(crate) enum Step<'a> {
    /// An object or block; without the payload if its kind is unknown. `truncated` means that the stream ends inside it.
    /// If it is not `followed` by valid tags, it or its size is damaged: the search for the next object then starts at
    /// its payload, or where [`Walker::keep_payload`] specifies.
    Block { head: FrameHeader, payload: &'a [u8], truncated: bool, followed: bool },
    /// An event or definition of `NetPerf` 1 or 2.
    Bare { start: u64, event: &'a [u8] },
    /// The end marker, from `start` to `end`.
    End { start: u64, end: u64 },
    /// The bytes between these offsets cannot be read. If `continues`, an object follows; otherwise the stream has ended.
    Gap { start: u64, end: u64, continues: bool },
    /// The stream ends here without an end marker; `left` bytes could not be used.
    Truncated { start: u64, left: u64 },
}

impl Walker {
    /// Creates a walker that continues after damage between objects, in formats in which the next object can be found.
    pub(crate) fn with_resync() -> Self {
        Self { resyncs: true, ..Self::default() }
    }

    /// Keeps the first `bytes` of the last payload, which no valid tags follow: the damage begins after them.
    pub(crate) fn keep_payload(&mut self, bytes: usize) {
        if let WalkState::Lost(since) = &mut self.state {
            self.queue.consume(bytes);
            *since = self.queue.offset();
        }
    }

    /// Appends the next bytes of the stream.
    pub(crate) fn feed(&mut self, bytes: &[u8]) {
        self.queue.consume(std::mem::take(&mut self.release));
        self.queue.feed(bytes);
    }

    /// Marks the end of the stream.
    pub(crate) fn finish(&mut self) {
        self.finished = true;
    }

    /// Returns the format, which is known once the first block was returned.
    pub(crate) fn format(&self) -> Format {
        self.framing.format()
    }

    /// Ends the walk.
    pub(crate) fn stop(&mut self) {
        self.state = WalkState::Over;
    }

    /// Returns the next step and the format. `None` if more bytes are needed, or after the end. An error ends the walk; its
    /// offset is the position of the damage.
    pub(crate) fn next(&mut self) -> Result<Option<(Format, Step<'_>)>, (u64, Error)> {
        self.queue.consume(std::mem::take(&mut self.release));
        loop {
            match std::mem::take(&mut self.state) {
                WalkState::Between => {
                    let here = self.queue.offset();
                    let mut r = Bytes::at(self.queue.pending(), here);
                    let frame = self.framing.next(&mut r, self.limits.max_block);
                    let used = self.queue.pending().len() - r.remaining();
                    match frame {
                        Ok(Frame::Object { start, kind, version, size }) => {
                            let from = usize::try_from(start - here).unwrap_or(usize::MAX);
                            let bytes = self.queue.pending().get(from..used).unwrap_or_default().to_vec();
                            self.queue.consume(used);
                            self.state =
                                WalkState::Payload(FrameHeader { start, bytes, kind, version, size });
                        }
                        Ok(Frame::End) => {
                            let length = if self.format() == Format::Nettrace6 { 4 } else { 1 };
                            self.queue.consume(used);
                            self.state = WalkState::Over;
                            let end = self.queue.offset();
                            return Ok(Some((self.format(), Step::End { start: end - length, end })));
                        }
                        Err(Error::Decode(error)) if error.is_incomplete() => {
                            self.queue.consume(used);
                            return Ok(self.starved());
                        }
                        Err(error) => {
                            self.queue.consume(used);
                            let here = self.queue.offset();
                            self.state =
                                if self.can_resync(&error) { WalkState::Lost(here) } else { WalkState::Over };
                            if self.resyncs && error == Error::NotNettrace {
                                // These may be only half of the first bytes of the stream.
                                self.framing = Framing::default();
                                self.state = WalkState::Lost(0);
                            }
                            return Err((here, error));
                        }
                    }
                }
                WalkState::Payload(head) => {
                    let size = usize::try_from(head.size).unwrap_or(usize::MAX);
                    let truncated = self.queue.pending().len() < size;
                    if head.kind == ObjectKind::Unknown {
                        self.state = WalkState::Skip(head.size.into());
                        return Ok(Some((
                            self.format(),
                            Step::Block { head, payload: &[], truncated: false, followed: true },
                        )));
                    }
                    if truncated && !self.finished {
                        self.state = WalkState::Payload(head);
                        return Ok(None);
                    }
                    match self.is_followed(size) {
                        None => {
                            self.state = WalkState::Payload(head);
                            return Ok(None);
                        }
                        Some(true) => {}
                        Some(false) => {
                            self.state = WalkState::Lost(head.start);
                            let pending = self.queue.pending();
                            let payload = pending.get(..size).unwrap_or(pending);
                            let step = Step::Block { head, payload, truncated, followed: false };
                            return Ok(Some((self.framing.format(), step)));
                        }
                    }
                    self.release = size.min(self.queue.pending().len());
                    self.state = if truncated {
                        WalkState::Over
                    } else if self.format() == Format::NetPerf1 {
                        WalkState::Bare
                    } else {
                        WalkState::Between
                    };
                    let payload = self.queue.pending().get(..self.release).unwrap_or_default();
                    return Ok(Some((
                        self.format(),
                        Step::Block { head, payload, truncated, followed: true },
                    )));
                }
                WalkState::Bare => {
                    let start = self.queue.offset();
                    let pending = self.queue.pending();
                    if pending.get(..netperf::TAIL).is_some_and(|tail| netperf::is_tail(tail, start)) {
                        self.state = WalkState::Over;
                        let end = start + netperf::TAIL as u64;
                        return Ok(Some((self.format(), Step::End { start, end })));
                    }
                    self.state = WalkState::Bare;
                    match netperf::unframed(pending, start, self.limits.max_block) {
                        Ok(Some(place)) if pending.len() >= netperf::TAIL => {
                            self.release = place.end;
                            let event = self.queue.pending().get(place).unwrap_or_default();
                            return Ok(Some((self.format(), Step::Bare { start, event })));
                        }
                        Ok(_) => return Ok(self.starved()),
                        Err(error) => {
                            self.state = WalkState::Over;
                            return Err((start, error.into()));
                        }
                    }
                }
                WalkState::Skip(left) => {
                    let here = left.min(self.queue.pending().len() as u64);
                    self.queue.consume(usize::try_from(here).unwrap_or(usize::MAX));
                    if here < left {
                        self.state = WalkState::Skip(left - here);
                        return Ok(self.starved());
                    }
                }
                WalkState::Lost(start) => {
                    let (pending, here) = (self.queue.pending(), self.queue.offset());
                    // Do not search the damaged bytes again.
                    let passed = usize::from(self.resumed == Some(here)).min(pending.len());
                    let (limit, rest) = (self.limits.max_block, pending.get(passed..).unwrap_or_default());
                    match resync::search(rest, here + passed as u64, self.known(), limit, self.finished) {
                        SearchResult::At { position, format, shift } => {
                            self.queue.consume(passed + position);
                            self.framing.resume(format, shift);
                            self.state = WalkState::Between;
                            let end = self.queue.offset();
                            self.resumed = Some(end);
                            return Ok(Some((format, Step::Gap { start, end, continues: true })));
                        }
                        SearchResult::NotBefore(position) => {
                            self.queue.consume(passed + position);
                            self.state = WalkState::Lost(start);
                            if !self.finished {
                                return Ok(None);
                            }
                            self.state = WalkState::Over;
                            let end = self.queue.offset();
                            return Ok(Some((self.format(), Step::Gap { start, end, continues: false })));
                        }
                    }
                }
                WalkState::Over => {
                    self.state = WalkState::Over;
                    self.queue.consume(usize::MAX);
                    return Ok(None);
                }
            }
        }
    }

    /// Returns the format and the alignment of the stream. `None` if nothing was read.
    fn known(&self) -> Option<(Format, u8)> {
        self.framing.shift().map(|shift| (self.framing.format(), shift))
    }

    /// Returns whether the next object can be found after this error.
    fn can_resync(&self, error: &Error) -> bool {
        let has_names = || matches!(self.framing.format(), Format::NetPerf3 | Format::Nettrace4);
        match error {
            Error::NotNettrace => self.resyncs,
            Error::Decode(_) => self.resyncs && has_names(),
            Error::Unsupported { .. } => false,
        }
    }

    /// Returns whether the payload of `size` bytes is followed by valid tags. `None` if more bytes are needed. A truncated
    /// payload may end anywhere, but must not contain another object.
    fn is_followed(&self, size: usize) -> Option<bool> {
        let format = self.framing.format();
        if !self.resyncs || !matches!(format, Format::NetPerf3 | Format::Nettrace4) {
            return Some(true);
        }
        let pending = self.queue.pending();
        if let Some(rest) = pending.get(size..) {
            return is_followed(rest, format, self.finished);
        }
        let (here, limit) = (self.queue.offset(), self.limits.max_block);
        let found = resync::search(pending, here, self.known(), limit, true);
        Some(matches!(found, SearchResult::NotBefore(_)))
    }

    /// Handles missing bytes.
    fn starved(&mut self) -> Option<(Format, Step<'static>)> {
        if !self.finished {
            return None;
        }
        self.state = WalkState::Over;
        let left = self.queue.pending().len() as u64;
        Some((self.format(), Step::Truncated { start: self.queue.offset(), left }))
    }
}
