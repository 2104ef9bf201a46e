//! Closes a stream that was cut, so that every tool reads what is there of it. Source: nettrace format, "cut files".
//!
//! What is whole is copied as it stands. A block that is cut, or damaged inside, keeps what comes before the damage; what
//! nobody knows, events that no definition describes, and whatever follows damage between blocks, is left out. Of a
//! definition whose fields cannot be read only these are left out, and a date that is none becomes that of 1970: other tools
//! would refuse the whole stream. Adds nothing but an end marker, first bytes that are missing, and a sequence point where
//! something is missing in between, and mends no event.
//!
//! After damage between blocks, and after a hole, the repair continues with the next object (`resync`). Events whose
//! definitions were lost and stacks that were lost are left out and counted.

mod events;
mod hole;
mod keep;
mod outcome;

use runtap_wire::{DecodeError, DecodeErrorKind, Reader as Bytes, Writer};

use self::keep::{Defined, Keep, keep, netperf_event};
pub use self::outcome::{Repaired, Skipped};
use crate::block::netperf;
use crate::raw::envelope::{BLOCK_VERSION, END_OBJECT, NULL_REFERENCE, padding};
use crate::raw::{Format, Kind};
use crate::walk::{Head, Step, Walker};
use crate::{Error, Partial, PartialReason, TraceHeader};

/// How often each byte may be looked at, on average, because it is in one more block that nothing sound follows.
const MOST_DOUBT: u64 = 4;

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
#[derive(Debug)]
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
    /// The greatest time of the last block of events that was kept, as it says itself.
    last_time: u64,
    /// Where the output is behind a sequence point that was added for a gap.
    gap_told_at: Option<u64>,
    /// Bytes of blocks that nothing sound followed, those that lie in several of them as often.
    doubted: u64,
    /// Stream offset behind the end marker that was read.
    source_end: Option<u64>,
    repaired: Repaired,
}

impl Default for Repair {
    fn default() -> Self {
        Self::new()
    }
}

impl Repair {
    /// At the start of a stream.
    pub fn new() -> Self {
        Self { walker: Walker::that_resyncs(), output: Output::default(), over: false }
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
        output.repaired.events_left_out = output.defined.events_left_out;
        output.repaired.events_without_stack = output.defined.events_without_stack;
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
                Ok(Some((format, Step::Block { head, payload, cut, followed: true }))) => {
                    output.block(format, &head, payload, cut);
                }
                Ok(Some((format, Step::Block { head, payload, cut, followed: false }))) => {
                    if let Some(bytes) = output.doubtful_block(format, &head, payload, cut) {
                        walker.keep_payload(bytes);
                    }
                }
                Ok(Some((format, Step::Gap { start, end, goes_on }))) => {
                    output.gap(format, start, end, goes_on);
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
        let keep = self.judge(format, head, payload);
        self.write_kept(format, head, payload, &keep, cut);
    }

    /// A block that nothing sound follows: its size may be wrong, and its payload that of several. What is kept of it has
    /// to be sound by itself; how many bytes of the payload that is, if any.
    fn doubtful_block(&mut self, format: Format, head: &Head, payload: &[u8], cut: bool) -> Option<usize> {
        let offset = head.start + head.bytes.len() as u64;
        let end = offset + payload.len() as u64;
        let before = (self.defined.begin_trial(), self.header.clone());
        // Of no other kind it can be known how much is sound. Blocks may be made to lie in one another, each to its end.
        self.doubted = self.doubted.saturating_add(payload.len() as u64);
        let may_be_judged = self.doubted <= end.saturating_mul(MOST_DOUBT);
        let may_be_kept = !cut && may_be_judged && matches!(head.kind, Kind::Trace | Kind::Event);
        let mut keep = if may_be_kept { self.judge(format, head, payload) } else { Keep::Nothing(None) };
        let up_to = match (head.kind, &keep) {
            (Kind::Trace, Keep::All) => {
                let is_sound = self.header.as_ref().is_some_and(|header| header.sync_time.is_some());
                is_sound.then_some(payload.len())
            }
            // The last event is as long as it says, wherever its payload comes from.
            (Kind::Event, Keep::All) => hole::last_event(format, payload),
            (Kind::Event, Keep::Shortened { damage: Some(Error::Decode(error)), ended, .. })
                if error.kind == hole::HOLE =>
            {
                ended.filter(|ended| hole::is_the_rest(payload, *ended))
            }
            _ => None,
        };
        let is_sound = |up_to: &usize| {
            (head.kind, format) != (Kind::Event, Format::Nettrace4) || hole::are_times_sound(payload, *up_to)
        };
        let up_to = up_to.filter(is_sound);
        if let (Kind::Event, Keep::All, Some(up_to)) = (head.kind, &keep, up_to) {
            let kept = payload.get(..up_to).unwrap_or_default().to_vec();
            keep = Keep::Shortened { kept, damage: None, ended: Some(up_to) };
        }
        let damaged_from = up_to.map_or(head.start, |up_to| offset + up_to as u64);
        let error = DecodeError::new(end, "what follows a block", DecodeErrorKind::Invalid("is no object"));
        self.note(damaged_from, PartialReason::Damaged(error.into()));
        if let Some(up_to) = up_to {
            self.defined.end_trial();
            // What is behind may be the next object.
            self.write_kept(format, head, payload.get(..up_to).unwrap_or(payload), &keep, false);
        } else {
            self.defined.undo(&before.0);
            self.header = before.1;
            self.repaired.blocks_left_out += 1;
        }
        up_to
    }

    /// What lies between two offsets can't be read. What is behind it can't refer to what is in it, nor, as a sequence
    /// point may be in it, to stacks in front of it.
    fn gap(&mut self, format: Format, start: u64, end: u64, goes_on: bool) {
        self.repaired.skip(start, end);
        if self.header.is_none() {
            self.repaired.start_added = goes_on;
        } else if goes_on {
            self.defined.lose();
            if format == Format::Nettrace4 && self.gap_told_at != Some(self.offset()) {
                let head = Head::of_sequence_point(start);
                let mut point = self.last_time.to_le_bytes().to_vec();
                point.resize(12, 0);
                self.write(format, &head, &point);
                self.gap_told_at = Some(self.offset());
            }
        }
    }

    /// What of a block is kept.
    fn judge(&mut self, format: Format, head: &Head, payload: &[u8]) -> Keep {
        let offset = head.start + head.bytes.len() as u64;
        // Readers refuse a stream without a Trace object at the start, or with two.
        let out_of_place = (head.kind == Kind::Trace) == self.header.is_some();
        if out_of_place || head.kind == Kind::Unknown {
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
        }
    }

    /// Writes what is kept of a block, and notes what is not.
    fn write_kept(&mut self, format: Format, head: &Head, payload: &[u8], keep: &Keep, cut: bool) {
        let offset = head.start + head.bytes.len() as u64;
        let version = head.version;
        if format == Format::Nettrace4 && head.kind != Kind::Trace && version != BLOCK_VERSION {
            let kind = DecodeErrorKind::Unexpected { value: version.into(), expected: "2" };
            let error = DecodeError::new(head.start, "version of a block", kind);
            self.note(head.start, PartialReason::Damaged(error.into()));
        }
        if cut {
            let kept = match keep {
                Keep::All => payload.len(),
                Keep::Shortened { kept, .. } => kept.len(),
                Keep::Nothing(_) => 0,
            };
            let unused = payload.len().saturating_sub(kept) as u64;
            self.note(offset + kept as u64, PartialReason::Cut { unused });
        }
        let end = offset + payload.len() as u64;
        let (kept, error, lost_from) = match keep {
            Keep::All => (Some(payload), &None, end),
            Keep::Shortened { kept, damage, ended } => {
                (Some(kept.as_slice()), damage, ended.map_or(end, |ended| offset + ended as u64))
            }
            Keep::Nothing(error) => (None, error, if error.is_some() { head.start } else { end }),
        };
        if !cut {
            self.repaired.skip(lost_from, end);
        }
        if let (Kind::Event, Some(time)) = (head.kind, kept.and_then(|kept| kept.get(12..)?.first_chunk())) {
            self.last_time = u64::from_le_bytes(*time);
        }
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
            let damage = Some(DecodeError::new(offset + at as u64, "sync time", kind).into());
            Keep::Shortened { kept: repaired, damage, ended: None }
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
