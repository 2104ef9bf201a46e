//! Repairs a truncated or damaged stream so that every tool can read it. Source: nettrace format, "cut files".
//!
//! Complete blocks are copied unchanged. A truncated or damaged block keeps the entries before the damage. Blocks of
//! unknown kinds, events without a definition, and damaged data between blocks are removed. A definition with unreadable
//! fields loses only its fields, and an invalid date becomes that of 1970, because other tools would reject the whole
//! stream. The repair adds only an end marker, missing first bytes, and a sequence point after a gap; it never changes an
//! event.
//!
//! After damage between blocks, and after a hole, the repair continues with the next object (`resync`). Events whose
//! definitions were lost are removed, stacks that were lost are missing, and both are counted.

mod events;
mod hole;
mod keep;
mod outcome;

use runtap_wire::{DecodeError, DecodeErrorKind, Reader as Bytes, Writer};

use self::keep::{Defined, KeptPayload, keep, netperf_event};
pub use self::outcome::{Repaired, Skipped};
use crate::block::netperf;
use crate::raw::envelope::{BLOCK_VERSION, END_OBJECT, NULL_REFERENCE, padding};
use crate::raw::{Format, ObjectKind};
use crate::walk::{FrameHeader, Step, Walker};
use crate::{Error, Partial, PartialReason, TraceHeader};

/// The average number of times each byte may be read because it is in another block that no valid tags follow.
const MAX_REREADS: u64 = 4;

/// Repairs a stream incrementally: [`Self::feed`] accepts bytes, [`Self::take_output`] returns repaired bytes.
///
/// ```
/// use runtap_nettrace::Repair;
///
/// # let truncated = b"Nettrace\x14\0\0\0!FastSerialization.1";
/// let mut repair = Repair::new();
/// repair.feed(truncated);
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
    /// The stream offset of the first of `bytes`.
    taken: u64,
    header: Option<TraceHeader>,
    defined: Defined,
    /// The greatest time in the header of the last block of events that was kept.
    last_time: u64,
    /// The output position after a sequence point that was added for a gap.
    gap_marked_at: Option<u64>,
    /// The number of bytes in blocks that no valid tags followed; bytes in several such blocks count several times.
    doubted: u64,
    /// The stream offset after the end marker.
    source_end: Option<u64>,
    repaired: Repaired,
}

impl Default for Repair {
    fn default() -> Self {
        Self::new()
    }
}

impl Repair {
    /// Creates a repair at the start of a stream.
    pub fn new() -> Self {
        Self { walker: Walker::with_resync(), output: Output::default(), over: false }
    }

    /// Appends the next bytes of the stream.
    pub fn feed(&mut self, bytes: &[u8]) {
        self.output.repaired.bytes_read += bytes.len() as u64;
        self.walker.feed(bytes);
        self.work();
    }

    /// Takes the output so far; at most one block is held back.
    #[must_use]
    pub fn take_output(&mut self) -> Vec<u8> {
        self.output.taken = self.output.offset();
        std::mem::take(&mut self.output.bytes).into_bytes()
    }

    /// Ends the stream and returns the rest of the output and a summary. Without a [`Self::header`] there is no output.
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

    /// Returns the header. `None` until it was read; without a header nothing can be repaired.
    pub fn header(&self) -> Option<&TraceHeader> {
        self.output.header.as_ref()
    }

    fn work(&mut self) {
        let Self { walker, output, over } = self;
        while !*over {
            match walker.next() {
                Ok(None) => return,
                Ok(Some((format, Step::Block { head, payload, truncated, followed: true }))) => {
                    output.block(format, &head, payload, truncated);
                }
                Ok(Some((format, Step::Block { head, payload, truncated, followed: false }))) => {
                    if let Some(bytes) = output.doubtful_block(format, &head, payload, truncated) {
                        walker.keep_payload(bytes);
                    }
                }
                Ok(Some((format, Step::Gap { start, end, continues }))) => {
                    output.gap(format, start, end, continues);
                }
                Ok(Some((_, Step::Bare { start, event }))) => {
                    let Some(header) = &output.header else { continue };
                    let (version, place) = (header.version, 0..event.len());
                    match netperf_event(Format::NetPerf1, version, event, &place, start, &mut output.defined)
                    {
                        // These versions are not repaired.
                        Ok(_) => {
                            output.bytes.bytes(event);
                        }
                        // The ids of definitions are their offsets, so removing anything would invalidate the rest.
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
                Ok(Some((_, Step::Truncated { start, left }))) => {
                    let truncated = PartialReason::Cut { unused: left };
                    output.note(start, if left == 0 { PartialReason::NoEndMarker } else { truncated });
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

    fn block(&mut self, format: Format, head: &FrameHeader, payload: &[u8], truncated: bool) {
        let keep = self.judge(format, head, payload);
        self.write_kept(format, head, payload, &keep, truncated);
    }

    /// Handles a block that no valid tags follow: its size may be wrong, and its payload may span several blocks. Keeps only
    /// entries that are valid by themselves. Returns how many bytes of the payload were kept, if any.
    fn doubtful_block(
        &mut self,
        format: Format,
        head: &FrameHeader,
        payload: &[u8],
        truncated: bool,
    ) -> Option<usize> {
        let offset = head.start + head.bytes.len() as u64;
        let end = offset + payload.len() as u64;
        let before = (self.defined.begin_trial(), self.header.clone());
        // The valid part of other kinds is unknown. A malicious stream may nest blocks that all reach to its end.
        self.doubted = self.doubted.saturating_add(payload.len() as u64);
        let may_be_judged = self.doubted <= end.saturating_mul(MAX_REREADS);
        let may_be_kept =
            !truncated && may_be_judged && matches!(head.kind, ObjectKind::Trace | ObjectKind::Event);
        let mut keep =
            if may_be_kept { self.judge(format, head, payload) } else { KeptPayload::Nothing(None) };
        let up_to = match (head.kind, &keep) {
            (ObjectKind::Trace, KeptPayload::All) => {
                let is_sound = self.header.as_ref().is_some_and(|header| header.sync_time.is_some());
                is_sound.then_some(payload.len())
            }
            // The last event has its stated length, but its payload may belong to other data.
            (ObjectKind::Event, KeptPayload::All) => hole::last_event(format, payload),
            (ObjectKind::Event, KeptPayload::Shortened { damage: Some(Error::Decode(error)), ended, .. })
                if error.kind == hole::HOLE =>
            {
                ended.filter(|ended| hole::is_the_rest(payload, *ended))
            }
            _ => None,
        };
        let is_sound = |up_to: &usize| {
            (head.kind, format) != (ObjectKind::Event, Format::Nettrace4)
                || hole::are_times_sound(payload, *up_to)
        };
        let up_to = up_to.filter(is_sound);
        if let (ObjectKind::Event, KeptPayload::All, Some(up_to)) = (head.kind, &keep, up_to) {
            let kept = payload.get(..up_to).unwrap_or_default().to_vec();
            keep = KeptPayload::Shortened { kept, damage: None, ended: Some(up_to) };
        }
        let damaged_from = up_to.map_or(head.start, |up_to| offset + up_to as u64);
        let error =
            DecodeError::new(end, "what follows a block", DecodeErrorKind::Invalid("is not an object"));
        self.note(damaged_from, PartialReason::Damaged(error.into()));
        if let Some(up_to) = up_to {
            self.defined.end_trial();
            // The next object may follow.
            self.write_kept(format, head, payload.get(..up_to).unwrap_or(payload), &keep, false);
        } else {
            self.defined.undo(&before.0);
            self.header = before.1;
            self.repaired.blocks_left_out += 1;
        }
        up_to
    }

    /// Handles the unreadable bytes between two offsets. Data after the gap cannot refer to data in it, nor to stacks before
    /// it, because a sequence point may be in the gap.
    fn gap(&mut self, format: Format, start: u64, end: u64, continues: bool) {
        self.repaired.skip(start, end);
        if self.header.is_none() {
            self.repaired.start_added = continues;
        } else if continues {
            self.defined.lose();
            if format == Format::Nettrace4 && self.gap_marked_at != Some(self.offset()) {
                let head = FrameHeader::of_sequence_point(start);
                let mut point = self.last_time.to_le_bytes().to_vec();
                point.resize(12, 0);
                self.write(format, &head, &point);
                self.gap_marked_at = Some(self.offset());
            }
        }
    }

    /// Determines what to keep of a block.
    fn judge(&mut self, format: Format, head: &FrameHeader, payload: &[u8]) -> KeptPayload {
        let offset = head.start + head.bytes.len() as u64;
        // Readers reject a stream without a Trace object at the start, or with two of them.
        let out_of_place = (head.kind == ObjectKind::Trace) == self.header.is_some();
        if out_of_place || head.kind == ObjectKind::Unknown {
            KeptPayload::Nothing(None)
        } else if head.kind == ObjectKind::Trace {
            match TraceHeader::decode(&mut Bytes::at(payload, offset), format, head.version) {
                Ok(header) => {
                    let keep = repaired_header(&header, format, payload, offset);
                    self.header = Some(header);
                    keep
                }
                Err(error) => KeptPayload::Nothing(Some(error.into())),
            }
        } else {
            let version = self.header.as_ref().map_or(0, |header| header.version);
            keep((format, version), head.kind, payload, offset, &mut self.defined)
        }
    }

    /// Writes the kept part of a block, and records what was removed.
    fn write_kept(
        &mut self,
        format: Format,
        head: &FrameHeader,
        payload: &[u8],
        keep: &KeptPayload,
        truncated: bool,
    ) {
        let offset = head.start + head.bytes.len() as u64;
        let version = head.version;
        if format == Format::Nettrace4 && head.kind != ObjectKind::Trace && version != BLOCK_VERSION {
            let kind = DecodeErrorKind::Unexpected { value: version.into(), expected: "2" };
            let error = DecodeError::new(head.start, "version of a block", kind);
            self.note(head.start, PartialReason::Damaged(error.into()));
        }
        if truncated {
            let kept = match keep {
                KeptPayload::All => payload.len(),
                KeptPayload::Shortened { kept, .. } => kept.len(),
                KeptPayload::Nothing(_) => 0,
            };
            let unused = payload.len().saturating_sub(kept) as u64;
            self.note(offset + kept as u64, PartialReason::Cut { unused });
        }
        let end = offset + payload.len() as u64;
        let (kept, error, lost_from) = match keep {
            KeptPayload::All => (Some(payload), &None, end),
            KeptPayload::Shortened { kept, damage, ended } => {
                (Some(kept.as_slice()), damage, ended.map_or(end, |ended| offset + ended as u64))
            }
            KeptPayload::Nothing(error) => (None, error, if error.is_some() { head.start } else { end }),
        };
        if !truncated {
            self.repaired.skip(lost_from, end);
        }
        if let (ObjectKind::Event, Some(time)) =
            (head.kind, kept.and_then(|kept| kept.get(12..)?.first_chunk()))
        {
            self.last_time = u64::from_le_bytes(*time);
        }
        if let Some(error) = error {
            self.note(offset, PartialReason::Damaged(error.clone()));
        }
        match kept {
            Some(kept) => {
                self.repaired.blocks_shortened += u64::from(truncated || !matches!(keep, KeptPayload::All));
                self.write(format, head, kept);
            }
            None => self.repaired.blocks_left_out += 1,
        }
    }

    /// Writes an object or block with its original header.
    fn write(&mut self, format: Format, head: &FrameHeader, payload: &[u8]) {
        let size = u32::try_from(payload.len()).unwrap_or(u32::MAX);
        if head.kind == ObjectKind::Trace {
            self.bytes.bytes(&first_bytes(format));
        }
        match format {
            Format::Nettrace6 => {
                // The block got shorter: 24 bits are enough.
                let [a, b, c, _] = size.to_le_bytes();
                let kind = head.bytes.last().copied().unwrap_or_default();
                self.bytes.bytes(&[a, b, c, kind]).bytes(payload);
            }
            _ if head.kind == ObjectKind::Trace => {
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

/// The position of an object's version: after two tags and a null reference.
const VERSION: std::ops::Range<usize> = 3..7;

/// Returns a header with the date of 1970 in the place of an invalid date.
fn repaired_header(header: &TraceHeader, format: Format, payload: &[u8], offset: u64) -> KeptPayload {
    let at = if format == Format::NetPerf1 { 4 } else { 0 };
    let mut repaired = payload.to_vec();
    match repaired.get_mut(at..at + 16) {
        Some(date) if header.sync_time.is_none() => {
            for (place, part) in date.chunks_exact_mut(2).zip([1970_u16, 1, 4, 1, 0, 0, 0, 0]) {
                place.copy_from_slice(&part.to_le_bytes());
            }
            let kind = DecodeErrorKind::Invalid("is not a date");
            let damage = Some(DecodeError::new(offset + at as u64, "sync time", kind).into());
            KeptPayload::Shortened { kept: repaired, damage, ended: None }
        }
        _ => KeptPayload::All,
    }
}

/// Returns the bytes before the first object or block.
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
