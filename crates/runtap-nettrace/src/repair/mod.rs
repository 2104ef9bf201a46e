//! Closes a stream that was cut, so that every tool reads what is there of it. Source: nettrace format, "cut files".
//!
//! What is whole is copied as it stands. A block that is cut, or damaged inside, keeps what comes before the damage; what
//! nobody knows, events that no definition describes, and whatever follows damage between blocks, is left out. Of a
//! definition whose fields cannot be read only these are left out, and a date that is none becomes that of 1970: other tools
//! would refuse the whole stream. Adds nothing but an end marker, and mends no event.

mod events;
mod keep;

use runtap_wire::{DecodeError, DecodeErrorKind, Reader as Bytes, Writer};

use self::keep::{Defined, Keep, keep, netperf_event};
use crate::block::netperf;
use crate::raw::envelope::{BLOCK_VERSION, END_OBJECT, NULL_REFERENCE, padding};
use crate::raw::{Format, Kind};
use crate::walk::{Head, Step, Walker};
use crate::{Partial, PartialReason, TraceHeader};

/// Repairs a stream, piece by piece: bytes go in by [`Self::feed`], bytes come out by [`Self::take_output`].
///
/// ```
/// use runtap_nettrace::Repair;
///
/// # let cut = b"Nettrace\x14\0\0\0!FastSerialization.1";
/// let mut repair = Repair::new();
/// repair.feed(cut);
/// let mut whole = repair.take_output();
/// let (rest, repaired) = repair.finish();
/// whole.extend(rest);
/// assert!(repaired.partial.is_some());
/// ```
#[derive(Debug, Default)]
pub struct Repair {
    walker: Walker,
    output: Output,
    over: bool,
}

#[derive(Debug, Default)]
struct Output {
    bytes: Writer,
    /// Stream offset of the first of `bytes`.
    taken: u64,
    header: Option<TraceHeader>,
    defined: Defined,
    /// Stream offset behind the end marker that was read.
    source_end: Option<u64>,
    repaired: Repaired,
}

/// What was done.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Repaired {
    /// Why the stream was not whole; `None` if it was. The first of several reasons.
    pub partial: Option<Partial>,
    /// Bytes that were read.
    pub bytes_read: u64,
    /// Bytes that were written.
    pub bytes_written: u64,
    /// Objects and blocks that were left out as a whole: of a kind that nobody knows, or with nothing of use in them.
    pub blocks_left_out: u64,
    /// Blocks of which the beginning was kept.
    pub blocks_shortened: u64,
    /// Whether the end marker was added.
    pub end_added: bool,
    /// Bytes after the end marker, which are not copied: another recording, perhaps.
    pub bytes_after_end: u64,
}

impl Repaired {
    /// Whether the output is another than the input.
    pub fn has_changed(&self) -> bool {
        self.partial.is_some() || self.blocks_left_out > 0 || self.blocks_shortened > 0 || self.end_added
    }
}

impl Repair {
    /// At the start of a stream.
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes in the next bytes of the stream.
    pub fn feed(&mut self, bytes: &[u8]) {
        self.output.repaired.bytes_read += bytes.len() as u64;
        self.walker.feed(bytes);
        self.work();
    }

    /// What was repaired so far; at most a block is held back.
    #[must_use]
    pub fn take_output(&mut self) -> Vec<u8> {
        self.output.taken = self.output.offset();
        std::mem::take(&mut self.output.bytes).into_bytes()
    }

    /// The rest of the output, and what was done. Without a [`Self::header`] there is no output.
    #[must_use]
    pub fn finish(mut self) -> (Vec<u8>, Repaired) {
        self.walker.finish();
        self.work();
        let Self { walker, mut output, over } = self;
        if !over && output.header.is_some() {
            output.end(walker.format());
            output.repaired.end_added = true;
        }
        output.repaired.bytes_written = output.offset();
        let after = output.source_end.map_or(0, |end| output.repaired.bytes_read.saturating_sub(end));
        output.repaired.bytes_after_end = after;
        (output.bytes.into_bytes(), output.repaired)
    }

    /// The header, once it was read: without one nothing can be repaired.
    pub fn header(&self) -> Option<&TraceHeader> {
        self.output.header.as_ref()
    }

    fn work(&mut self) {
        let Self { walker, output, over } = self;
        while !*over {
            match walker.next() {
                Ok(None) => return,
                Ok(Some((format, Step::Block { head, payload, cut }))) => {
                    output.block(format, &head, payload, cut);
                }
                Ok(Some((_, Step::Bare { start, event }))) => {
                    let Some(header) = &output.header else { continue };
                    let (version, place) = (header.version, 0..event.len());
                    match netperf_event(Format::NetPerf1, version, event, &place, start, &mut output.defined)
                    {
                        // Nothing of these versions is repaired.
                        Ok(_) => {
                            output.bytes.bytes(event);
                        }
                        // The ids of definitions are their offsets: nothing can be left out and the rest be kept.
                        Err(error) => {
                            output.note(start, PartialReason::Damaged(error.into()));
                            return walker.stop();
                        }
                    }
                }
                Ok(Some((format, Step::End { end, .. }))) => {
                    *over = output.header.is_some();
                    if *over {
                        output.source_end = Some(end);
                        output.end(format);
                    }
                }
                Ok(Some((_, Step::Cut { start, left }))) => {
                    let cut = PartialReason::Cut { unused: left };
                    output.note(start, if left == 0 { PartialReason::NoEndMarker } else { cut });
                }
                Err((offset, error)) => output.note(offset, PartialReason::Damaged(error)),
            }
        }
    }
}

impl Output {
    fn offset(&self) -> u64 {
        self.taken + self.bytes.len() as u64
    }

    fn note(&mut self, offset: u64, reason: PartialReason) {
        self.repaired.partial.get_or_insert(Partial { offset, reason });
    }

    fn block(&mut self, format: Format, head: &Head, payload: &[u8], cut: bool) {
        let offset = head.start + head.bytes.len() as u64;
        // Readers refuse a stream without a Trace object at the start, or with two.
        let out_of_place = (head.kind == Kind::Trace) == self.header.is_some();
        let keep = if out_of_place || head.kind == Kind::Unknown {
            Keep::Nothing(None)
        } else if head.kind == Kind::Trace {
            match TraceHeader::decode(&mut Bytes::at(payload, offset), format, head.version) {
                Ok(header) => {
                    let keep = mended_header(&header, format, payload, offset);
                    self.header = Some(header);
                    keep
                }
                Err(error) => Keep::Nothing(Some(error.into())),
            }
        } else {
            let version = self.header.as_ref().map_or(0, |header| header.version);
            keep((format, version), head.kind, payload, offset, &mut self.defined)
        };
        let version = head.version;
        if format == Format::Nettrace4 && head.kind != Kind::Trace && version != BLOCK_VERSION {
            let kind = DecodeErrorKind::Unexpected { value: version.into(), expected: "2" };
            let error = DecodeError::new(head.start, "version of a block", kind);
            self.note(head.start, PartialReason::Damaged(error.into()));
        }
        if cut {
            let kept = match &keep {
                Keep::All => payload.len(),
                Keep::Shortened(kept, _) => kept.len(),
                Keep::Nothing(_) => 0,
            };
            let unused = payload.len().saturating_sub(kept) as u64;
            self.note(offset + kept as u64, PartialReason::Cut { unused });
        }
        let (kept, error) = match &keep {
            Keep::All => (Some(payload), &None),
            Keep::Shortened(kept, error) => (Some(kept.as_slice()), error),
            Keep::Nothing(error) => (None, error),
        };
        if let Some(error) = error {
            self.note(offset, PartialReason::Damaged(error.clone()));
        }
        match kept {
            Some(kept) => {
                self.repaired.blocks_shortened += u64::from(cut || !matches!(keep, Keep::All));
                self.write(format, head, kept);
            }
            None => self.repaired.blocks_left_out += 1,
        }
    }

    /// Writes an object or block, with the beginning that it had.
    fn write(&mut self, format: Format, head: &Head, payload: &[u8]) {
        let size = u32::try_from(payload.len()).unwrap_or(u32::MAX);
        if head.kind == Kind::Trace {
            self.bytes.bytes(&first_bytes(format));
        }
        match format {
            Format::Nettrace6 => {
                // Shorter than it was: 24 bits are enough.
                let [a, b, c, _] = size.to_le_bytes();
                let kind = head.bytes.last().copied().unwrap_or_default();
                self.bytes.bytes(&[a, b, c, kind]).bytes(payload);
            }
            _ if head.kind == Kind::Trace => {
                self.bytes.bytes(&head.bytes).bytes(payload);
                if format != Format::NetPerf1 {
                    self.bytes.u8(END_OBJECT);
                }
            }
            _ => {
                let mut object = head.object_header().to_vec();
                if let (Format::Nettrace4, Some(version)) = (format, object.get_mut(VERSION)) {
                    version.copy_from_slice(&BLOCK_VERSION.to_le_bytes());
                }
                self.bytes.bytes(&object).u32(size);
                for _ in 0..padding(self.offset()) {
                    self.bytes.u8(0);
                }
                self.bytes.bytes(payload).u8(END_OBJECT);
            }
        }
    }

    fn end(&mut self, format: Format) {
        match format {
            Format::Nettrace6 => {
                self.bytes.u32(0);
            }
            Format::NetPerf1 => {
                let end = self.offset();
                self.bytes.bytes(&netperf::tail(end));
            }
            Format::NetPerf3 | Format::Nettrace4 => {
                self.bytes.u8(NULL_REFERENCE);
            }
        }
    }
}

/// Where an object has its version: behind two tags and a null reference.
const VERSION: std::ops::Range<usize> = 3..7;

/// A header with the date of 1970 for one that is no date: nobody knows when the recording was made.
fn mended_header(header: &TraceHeader, format: Format, payload: &[u8], offset: u64) -> Keep {
    let at = if format == Format::NetPerf1 { 4 } else { 0 };
    let mut repaired = payload.to_vec();
    match repaired.get_mut(at..at + 16) {
        Some(date) if header.sync_time.is_none() => {
            for (place, part) in date.chunks_exact_mut(2).zip([1970_u16, 1, 4, 1, 0, 0, 0, 0]) {
                place.copy_from_slice(&part.to_le_bytes());
            }
            let kind = DecodeErrorKind::Invalid("is no date");
            Keep::Shortened(repaired, Some(DecodeError::new(offset + at as u64, "sync time", kind).into()))
        }
        _ => Keep::All,
    }
}

/// What stands in front of the first object or block.
fn first_bytes(format: Format) -> Vec<u8> {
    use crate::raw::envelope::{MAGIC, SERIALIZER};
    use crate::raw::v6::MAJOR;

    let mut w = Writer::new();
    match format {
        Format::NetPerf1 | Format::NetPerf3 => w.bytes(SERIALIZER),
        Format::Nettrace4 => w.bytes(MAGIC).bytes(SERIALIZER),
        Format::Nettrace6 => w.bytes(MAGIC).u32(0).u32(MAJOR).u32(0),
    };
    w.into_bytes()
}
