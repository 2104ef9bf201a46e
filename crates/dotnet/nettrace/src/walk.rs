//! From one object or block of a stream to the next, each with its whole payload: for whoever wants to see the structure
//! and not the events. Looks into no payload, but for the events that stand between no blocks in `NetPerf` 1 and 2.

use runtap_wire::{DecodeError, DecodeErrorKind, Deframer, Reader as Bytes, Writer};

use crate::block::netperf;
use crate::raw::envelope::{BLOCK_VERSION, END_OBJECT, first_tags, is_followed, name_of};
use crate::raw::{Format, Frame, Framing, Kind};
use crate::resync::{self, Found};
use crate::{Error, Limits};

/// Walks over a stream, piece by piece.
#[derive(Debug, Default)]
pub(crate) struct Walker {
    queue: Deframer,
    framing: Framing,
    state: State,
    limits: Limits,
    /// Bytes that were handed out and go with the next call.
    release: usize,
    finished: bool,
    /// Whether what follows damage between objects is looked for.
    resyncs: bool,
    /// Where the next object was found last.
    resumed: Option<u64>,
}

#[derive(Debug, Clone, Default)]
enum State {
    #[default]
    Between,
    Payload(Head),
    /// Behind the Trace object of `NetPerf` 1 or 2.
    Bare,
    /// In an object that nobody knows.
    Skip(u64),
    /// Behind damage, which begins at the offset: looking for the next object.
    Lost(u64),
    Over,
}

/// The beginning of an object or block.
#[derive(Debug, Clone)]
pub(crate) struct Head {
    /// Stream offset of its first byte.
    pub(crate) start: u64,
    /// Its bytes up to the payload, padding included.
    pub(crate) bytes: Vec<u8>,
    pub(crate) kind: Kind,
    pub(crate) version: u32,
    /// Size of the payload.
    pub(crate) size: u32,
}

impl Head {
    /// Two tags, a null reference, two versions: what stands before the name of an object and its length.
    const FIXED: usize = 3 + 4 + 4;

    /// That of a sequence point of Nettrace 4 that is not in the stream, at `start`.
    pub(crate) fn of_sequence_point(start: u64) -> Self {
        let mut w = Writer::new();
        let name = name_of(Kind::SequencePoint);
        w.bytes(&first_tags(Format::Nettrace4)).u32(BLOCK_VERSION).u32(BLOCK_VERSION);
        w.u32(u32::try_from(name.len()).unwrap_or_default()).bytes(name).u8(END_OBJECT);
        Self { start, bytes: w.into_bytes(), kind: Kind::SequencePoint, version: BLOCK_VERSION, size: 0 }
    }

    /// The name of an object.
    pub(crate) fn name(&self) -> &[u8] {
        let rest = self.bytes.get(Self::FIXED..).unwrap_or_default();
        let Some((size, rest)) = rest.split_first_chunk::<4>() else { return &[] };
        rest.get(..usize::try_from(u32::from_le_bytes(*size)).unwrap_or(usize::MAX)).unwrap_or_default()
    }

    /// The beginning of an object without the size of its payload and the padding.
    pub(crate) fn object_header(&self) -> &[u8] {
        self.bytes.get(..Self::FIXED + 4 + self.name().len() + 1).unwrap_or(&self.bytes)
    }
}

/// A step of the walk.
#[derive(Debug)]
pub(crate) enum Step<'a> {
    /// An object or block; of one that nobody knows without the payload. `cut` means that the stream ends inside it.
    /// One that is not `followed` by what has to follow it is damaged, or its size is: what follows is looked for from
    /// its payload on, or from where [`Walker::keep_payload`] says.
    Block { head: Head, payload: &'a [u8], cut: bool, followed: bool },
    /// An event or definition of `NetPerf` 1 or 2.
    Bare { start: u64, event: &'a [u8] },
    /// The end marker: from here to there.
    End { start: u64, end: u64 },
    /// The bytes between these offsets can't be read. With `goes_on`, an object follows; otherwise the stream has ended.
    Gap { start: u64, end: u64, goes_on: bool },
    /// The stream ends here, without an end marker; so many bytes are left.
    Cut { start: u64, left: u64 },
}

impl Walker {
    /// A walk that continues after damage between objects, in formats in which the next object can be found.
    pub(crate) fn that_resyncs() -> Self {
        Self { resyncs: true, ..Self::default() }
    }

    /// Keeps the first bytes of the payload that was handed out last, which nothing sound follows: the damage begins there.
    pub(crate) fn keep_payload(&mut self, bytes: usize) {
        if let State::Lost(since) = &mut self.state {
            self.queue.consume(bytes);
            *since = self.queue.offset();
        }
    }

    /// Takes in the next bytes.
    pub(crate) fn feed(&mut self, bytes: &[u8]) {
        self.queue.consume(std::mem::take(&mut self.release));
        self.queue.feed(bytes);
    }

    /// No more bytes will come.
    pub(crate) fn finish(&mut self) {
        self.finished = true;
    }

    /// Known once the first block was handed out.
    pub(crate) fn format(&self) -> Format {
        self.framing.format()
    }

    /// Hands out nothing more.
    pub(crate) fn stop(&mut self) {
        self.state = State::Over;
    }

    /// The next step, and the format, which is known with the first; `None` if more bytes are needed, or after the end. An error ends the walk; it is about what stands
    /// at the offset.
    pub(crate) fn next(&mut self) -> Result<Option<(Format, Step<'_>)>, (u64, Error)> {
        self.queue.consume(std::mem::take(&mut self.release));
        loop {
            match std::mem::take(&mut self.state) {
                State::Between => {
                    let here = self.queue.offset();
                    let mut r = Bytes::at(self.queue.pending(), here);
                    let frame = self.framing.next(&mut r, self.limits.max_block);
                    let used = self.queue.pending().len() - r.remaining();
                    match frame {
                        Ok(Frame::Object { start, kind, version, size }) => {
                            let from = usize::try_from(start - here).unwrap_or(usize::MAX);
                            let bytes = self.queue.pending().get(from..used).unwrap_or_default().to_vec();
                            self.queue.consume(used);
                            self.state = State::Payload(Head { start, bytes, kind, version, size });
                        }
                        Ok(Frame::End) => {
                            let length = if self.format() == Format::Nettrace6 { 4 } else { 1 };
                            self.queue.consume(used);
                            self.state = State::Over;
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
                                if self.can_resync(&error) { State::Lost(here) } else { State::Over };
                            if self.resyncs && error == Error::NotNettrace {
                                // The first bytes may be half of those that there should be.
                                self.framing = Framing::default();
                                self.state = State::Lost(0);
                            }
                            return Err((here, error));
                        }
                    }
                }
                State::Payload(head) => {
                    let size = usize::try_from(head.size).unwrap_or(usize::MAX);
                    let cut = self.queue.pending().len() < size;
                    if head.kind == Kind::Unknown {
                        self.state = State::Skip(head.size.into());
                        return Ok(Some((
                            self.format(),
                            Step::Block { head, payload: &[], cut: false, followed: true },
                        )));
                    }
                    if cut && !self.finished {
                        self.state = State::Payload(head);
                        return Ok(None);
                    }
                    match self.is_followed(size) {
                        None => {
                            self.state = State::Payload(head);
                            return Ok(None);
                        }
                        Some(true) => {}
                        Some(false) => {
                            self.state = State::Lost(head.start);
                            let pending = self.queue.pending();
                            let payload = pending.get(..size).unwrap_or(pending);
                            let step = Step::Block { head, payload, cut, followed: false };
                            return Ok(Some((self.framing.format(), step)));
                        }
                    }
                    self.release = size.min(self.queue.pending().len());
                    self.state = if cut {
                        State::Over
                    } else if self.format() == Format::NetPerf1 {
                        State::Bare
                    } else {
                        State::Between
                    };
                    let payload = self.queue.pending().get(..self.release).unwrap_or_default();
                    return Ok(Some((self.format(), Step::Block { head, payload, cut, followed: true })));
                }
                State::Bare => {
                    let start = self.queue.offset();
                    let pending = self.queue.pending();
                    if pending.get(..netperf::TAIL).is_some_and(|tail| netperf::is_tail(tail, start)) {
                        self.state = State::Over;
                        let end = start + netperf::TAIL as u64;
                        return Ok(Some((self.format(), Step::End { start, end })));
                    }
                    self.state = State::Bare;
                    let (size, limit) =
                        (Bytes::new(pending).u32("event size").unwrap_or(0), self.limits.max_block);
                    let error = match netperf::frame(pending, 0) {
                        _ if size > limit => {
                            let kind = DecodeErrorKind::TooLarge { value: size.into(), limit: limit.into() };
                            DecodeError::new(start, "event size", kind)
                        }
                        Ok(place) if pending.len() >= netperf::TAIL => {
                            self.release = place.end;
                            let event = self.queue.pending().get(place).unwrap_or_default();
                            return Ok(Some((self.format(), Step::Bare { start, event })));
                        }
                        Err(fault) if !fault.is_incomplete() => {
                            fault.into_error(start + pending.len() as u64)
                        }
                        _ => return Ok(self.starved()),
                    };
                    self.state = State::Over;
                    return Err((start, error.into()));
                }
                State::Skip(left) => {
                    let here = left.min(self.queue.pending().len() as u64);
                    self.queue.consume(usize::try_from(here).unwrap_or(usize::MAX));
                    if here < left {
                        self.state = State::Skip(left - here);
                        return Ok(self.starved());
                    }
                }
                State::Lost(start) => {
                    let (pending, here) = (self.queue.pending(), self.queue.offset());
                    // What could not be read there is not read again.
                    let passed = usize::from(self.resumed == Some(here)).min(pending.len());
                    let (limit, rest) = (self.limits.max_block, pending.get(passed..).unwrap_or_default());
                    match resync::search(rest, here + passed as u64, self.known(), limit, self.finished) {
                        Found::At { position, format, shift } => {
                            self.queue.consume(passed + position);
                            self.framing.resume(format, shift);
                            self.state = State::Between;
                            let end = self.queue.offset();
                            self.resumed = Some(end);
                            return Ok(Some((format, Step::Gap { start, end, goes_on: true })));
                        }
                        Found::NotBefore(position) => {
                            self.queue.consume(passed + position);
                            self.state = State::Lost(start);
                            if !self.finished {
                                return Ok(None);
                            }
                            self.state = State::Over;
                            let end = self.queue.offset();
                            return Ok(Some((self.format(), Step::Gap { start, end, goes_on: false })));
                        }
                    }
                }
                State::Over => {
                    self.state = State::Over;
                    self.queue.consume(usize::MAX);
                    return Ok(None);
                }
            }
        }
    }

    /// Format and alignment of what was read; `None` if that is nothing.
    fn known(&self) -> Option<(Format, u8)> {
        self.framing.shift().map(|shift| (self.framing.format(), shift))
    }

    /// Whether the next object can be found behind this error.
    fn can_resync(&self, error: &Error) -> bool {
        let has_names = || matches!(self.framing.format(), Format::NetPerf3 | Format::Nettrace4);
        match error {
            Error::NotNettrace => self.resyncs,
            Error::Decode(_) => self.resyncs && has_names(),
            Error::Unsupported { .. } => false,
        }
    }

    /// Whether the payload of `size` bytes at hand is followed by what has to follow it; `None` if more bytes are needed
    /// to tell. What is truncated may end anywhere, but no other object is in it.
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
        Some(matches!(found, Found::NotBefore(_)))
    }

    /// Something is needed that is not there.
    fn starved(&mut self) -> Option<(Format, Step<'static>)> {
        if !self.finished {
            return None;
        }
        self.state = State::Over;
        let left = self.queue.pending().len() as u64;
        Some((self.format(), Step::Cut { start: self.queue.offset(), left }))
    }
}
