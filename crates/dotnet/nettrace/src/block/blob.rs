//! `EventBlock` and `MetadataBlock` of Nettrace 4, and event blocks of Nettrace 6: the block header and the headers of the
//! blobs (events or definitions) in it, compressed or not. Source: nettrace format, "blocks", "event headers" and
//! "V6, events". Does not parse payloads.
//!
//! This is the hot loop of every reader. The flag byte is tested by plain branches, which predict well because few
//! different flag bytes occur in a stream.

use std::ops::Range;

use runtap_wire::{DecodeError, DecodeErrorKind, Reader, Writer};

use super::bytes::{Bytes, Fault};

/// The least size of a block header in bytes; later versions may append fields.
pub(crate) const HEADER_SIZE: u16 = 20;
/// Block flag: event headers are compressed.
pub(crate) const COMPRESSED: u16 = 1;

/// Bits of the first byte of a compressed header: which fields follow. Other fields keep their previous value.
pub(crate) mod flag {
    pub(crate) const METADATA_ID: u8 = 1;
    pub(crate) const CAPTURE_THREAD: u8 = 2;
    pub(crate) const THREAD_ID: u8 = 4;
    pub(crate) const STACK_ID: u8 = 8;
    pub(crate) const ACTIVITY_ID: u8 = 16;
    /// The bit of `ACTIVITY_ID`, in Nettrace 6.
    pub(crate) const LABEL_LIST_ID: u8 = 16;
    pub(crate) const RELATED_ACTIVITY_ID: u8 = 32;
    pub(crate) const SORTED: u8 = 64;
    pub(crate) const PAYLOAD_SIZE: u8 = 128;
}

/// The bit in the metadata id of an uncompressed header for events that are *not* [`sorted`](crate::Event::sorted).
pub(crate) const UNSORTED: u32 = 1 << 31;
/// The size of an uncompressed header in Nettrace 4, in bytes.
pub(crate) const UNCOMPRESSED_SIZE: usize = 80;
/// The size of an uncompressed header in Nettrace 6, in bytes.
pub(crate) const UNCOMPRESSED_SIZE_V6: usize = 52;

/// With at least this many bytes left in the block, a header is read without bounds checks for each field.
const WINDOW: usize = 128;

/// The fields of one blob's header.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct BlobHeader {
    pub(crate) metadata_id: u32,
    pub(crate) sequence: u32,
    /// In Nettrace 6 the index of the thread, as for `thread_id`.
    pub(crate) capture_thread_id: u64,
    pub(crate) thread_id: u64,
    pub(crate) processor: u32,
    pub(crate) stack_id: u32,
    pub(crate) timestamp: u64,
    /// As encoded; all zeros mean none.
    pub(crate) activity_id: u128,
    pub(crate) related_activity_id: u128,
    /// Nettrace 6 only.
    pub(crate) label_list_id: u32,
    pub(crate) sorted: bool,
    payload_size: usize,
}

/// The position of a blob in its block, and the fields in its header.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct BlobPosition {
    /// Bits of [`flag`]; all bits for uncompressed headers.
    pub(crate) flags: u8,
    payload_start: usize,
    payload_end: usize,
    next: usize,
}

impl BlobPosition {
    /// Returns the bytes of the payload.
    #[inline]
    pub(crate) fn payload<'b>(&self, block: &'b [u8]) -> &'b [u8] {
        block.get(self.payload_range()).unwrap_or_default()
    }

    /// Returns the position after the blob, from the start of the block.
    pub(crate) fn next(&self) -> usize {
        self.next
    }

    /// Returns the range of the payload, from the start of the block.
    pub(crate) fn payload_range(&self) -> Range<usize> {
        self.payload_start..self.payload_end
    }
}

/// A cursor over the blobs of one block. The state of compressed headers is zero at the start of every block.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Blobs {
    pub(crate) head: BlobHeader,
    pub(crate) place: BlobPosition,
    compressed: bool,
}

impl Blobs {
    /// Reads the header of a block that starts at `offset` in the stream.
    pub(crate) fn start(block: &[u8], offset: u64) -> Result<Self, DecodeError> {
        let mut r = Reader::at(block, offset);
        let size = r.u16("block header size")?;
        if size < HEADER_SIZE {
            let kind = DecodeErrorKind::TooSmall { value: size.into(), least: HEADER_SIZE.into() };
            return Err(DecodeError::new(offset, "block header size", kind));
        }
        let flags = r.u16("block flags")?;
        // The time range, and fields of later versions.
        r.bytes(usize::from(size) - 4, "block header")?;
        let place = BlobPosition { next: usize::from(size), ..BlobPosition::default() };
        Ok(Self { compressed: flags & COMPRESSED != 0, place, head: BlobHeader::default() })
    }

    /// Returns whether the headers are compressed.
    pub(crate) fn compressed(&self) -> bool {
        self.compressed
    }

    /// Returns the position of the first unread byte, from the start of the block.
    pub(crate) fn position(&self) -> usize {
        self.place.next
    }

    /// Advances to the next blob; `false` at the end of the block. A blob that does not fit into `block` is a fault and ends
    /// the block; the cursor stays before it.
    #[inline]
    pub(crate) fn advance<const V6: bool>(&mut self, block: &[u8]) -> Result<bool, Fault> {
        let rest = block.get(self.place.next..).unwrap_or_default();
        if self.compressed
            && let Some((flags, length, payload)) = self.head.read_quickly::<V6>(rest)
        {
            let payload_start = self.place.next + length;
            let next = payload_start + payload.len();
            self.place = BlobPosition { flags, payload_start, payload_end: next, next };
            return Ok(true);
        }
        if rest.is_empty() {
            return Ok(false);
        }
        *self = self.advance_carefully::<V6>(block)?;
        Ok(true)
    }

    /// Returns a cursor at a later position: after the blob with the header `head`, which ends at `next`.
    pub(crate) fn at(self, head: BlobHeader, next: usize) -> Self {
        let place = BlobPosition { flags: 0, payload_start: next, payload_end: next, next };
        Self { head, place, ..self }
    }

    /// Returns the part of a block on which [`BlobHeader::read_quickly`] can be called.
    pub(crate) fn quick_part<'b>(&self, block: &'b [u8]) -> &'b [u8] {
        if self.compressed { block } else { &[] }
    }

    /// Returns a cursor on the next blob. Handles all blobs, unlike [`BlobHeader::read_quickly`].
    #[cold]
    #[inline(never)]
    pub(crate) fn advance_carefully<const V6: bool>(mut self, block: &[u8]) -> Result<Self, Fault> {
        let mut r = Bytes::new(block, self.place.next);
        let (flags, padded) = if self.compressed {
            (self.head.compressed::<V6>(&mut r)?, 0)
        } else {
            (u8::MAX, self.head.uncompressed::<V6>(&mut r)?)
        };
        let size = self.head.payload_size;
        let payload_start = r.position();
        r.bytes(size, "event payload")?;
        let payload_end = r.position();
        if padded != 0 {
            // The runtime pads these headers to 4 bytes and includes the padding in the size; other writers do not.
            let header = if V6 { UNCOMPRESSED_SIZE_V6 } else { UNCOMPRESSED_SIZE };
            r.bytes(padded.saturating_sub(header + size), "event padding")?;
        }
        self.place = BlobPosition { flags, payload_start, payload_end, next: r.position() };
        Ok(self)
    }
}

impl BlobHeader {
    /// Reads a compressed header with short variable-length integers, as almost all headers have. Returns the flags, the
    /// length and the payload. After `None`, the header can be read again by another method: fields that are relative to the
    /// previous header are unchanged then.
    #[inline(always)]
    #[expect(
        clippy::inline_always,
        reason = "the hot loop keeps the fields in registers only if it sees all of this"
    )]
    pub(crate) fn read_quickly<'b, const V6: bool>(
        &mut self,
        rest: &'b [u8],
    ) -> Option<(u8, usize, &'b [u8])> {
        let bytes = rest.first_chunk::<WINDOW>()?;
        // No header of this kind is as long as the window: the remainder, which is free, shows this to the compiler.
        let byte = |at: usize| bytes.get(at % WINDOW).copied().unwrap_or(0);
        // At most two bytes.
        let short = |at: &mut usize| {
            let low = byte(*at);
            if low < 0x80 {
                *at += 1;
                return Some(u32::from(low));
            }
            let high = byte(*at + 1);
            *at += 2;
            (high < 0x80).then(|| u32::from(low & 0x7f) | u32::from(high) << 7)
        };
        // At most three bytes.
        let medium = |at: &mut usize| {
            let low = byte(*at);
            if low < 0x80 {
                *at += 1;
                return Some(u64::from(low));
            }
            let middle = byte(*at + 1);
            if middle < 0x80 {
                *at += 2;
                return Some(u64::from(low & 0x7f) | u64::from(middle) << 7);
            }
            let high = byte(*at + 2);
            *at += 3;
            let value = u64::from(low & 0x7f) | u64::from(middle & 0x7f) << 7 | u64::from(high) << 14;
            (high < 0x80).then_some(value)
        };
        let guid = |at: &mut usize| {
            let id = bytes.get(*at % (WINDOW / 2)..)?.first_chunk()?;
            *at += 16;
            Some(u128::from_le_bytes(*id))
        };

        let flags = byte(0);
        let mut at = 1;
        if flags & flag::METADATA_ID != 0 {
            self.metadata_id = short(&mut at)?;
        }
        let mut sequence = self.sequence;
        if flags & flag::CAPTURE_THREAD != 0 {
            sequence = sequence.wrapping_add(short(&mut at)?).wrapping_add(1);
            self.capture_thread_id = medium(&mut at)?;
            self.processor = short(&mut at)?;
        } else if self.metadata_id != 0 {
            sequence = sequence.wrapping_add(1);
        }
        if flags & flag::THREAD_ID != 0 {
            self.thread_id = medium(&mut at)?;
        }
        if flags & flag::STACK_ID != 0 {
            self.stack_id = short(&mut at)?;
        }
        let ticks = medium(&mut at)?;
        if V6 {
            if flags & flag::LABEL_LIST_ID != 0 {
                self.label_list_id = short(&mut at)?;
            }
        } else if flags & (flag::ACTIVITY_ID | flag::RELATED_ACTIVITY_ID) != 0 {
            if flags & flag::ACTIVITY_ID != 0 {
                self.activity_id = guid(&mut at)?;
            }
            if flags & flag::RELATED_ACTIVITY_ID != 0 {
                self.related_activity_id = guid(&mut at)?;
            }
        }
        let mut size = self.payload_size;
        if flags & flag::PAYLOAD_SIZE != 0 {
            size = usize::try_from(short(&mut at)?).unwrap_or(usize::MAX);
        }
        let payload = rest.get(at..)?.get(..size)?;
        self.sorted = flags & flag::SORTED != 0;
        self.sequence = sequence;
        self.timestamp = self.timestamp.wrapping_add(ticks);
        self.payload_size = size;
        Some((flags, at, payload))
    }

    /// Reads any compressed header and returns the flags.
    fn compressed<const V6: bool>(&mut self, r: &mut Bytes<'_>) -> Result<u8, Fault> {
        let flags = r.u8("event flags")?;
        let set = |bit| flags & bit != 0;
        if set(flag::METADATA_ID) {
            self.metadata_id = r.varu32("metadata id")?;
        }
        if set(flag::CAPTURE_THREAD) {
            let delta = r.varu32("sequence number")?;
            self.sequence = self.sequence.wrapping_add(delta).wrapping_add(1);
            self.capture_thread_id = r.varu64("capture thread id")?;
            self.processor = r.varu32("processor number")?;
        } else if self.metadata_id != 0 {
            self.sequence = self.sequence.wrapping_add(1);
        }
        if set(flag::THREAD_ID) {
            self.thread_id = r.varu64("thread id")?;
        }
        if set(flag::STACK_ID) {
            self.stack_id = r.varu32("stack id")?;
        }
        self.timestamp = self.timestamp.wrapping_add(r.varu64("time stamp")?);
        if V6 {
            if set(flag::LABEL_LIST_ID) {
                self.label_list_id = r.varu32("label list id")?;
            }
        } else {
            if set(flag::ACTIVITY_ID) {
                self.activity_id = r.u128("activity id")?;
            }
            if set(flag::RELATED_ACTIVITY_ID) {
                self.related_activity_id = r.u128("related activity id")?;
            }
        }
        self.sorted = set(flag::SORTED);
        if set(flag::PAYLOAD_SIZE) {
            self.payload_size = usize::try_from(r.varu32("payload size")?).unwrap_or(usize::MAX);
        }
        Ok(flags)
    }

    /// Writes the compressed header of an event that follows an event with the header `last`.
    pub(crate) fn write_compressed<const V6: bool>(&self, last: &Self, w: &mut Writer) {
        let implied = last.sequence.wrapping_add(u32::from(self.metadata_id != 0));
        let counted = (self.sequence, self.capture_thread_id, self.processor)
            != (implied, last.capture_thread_id, last.processor);
        let flags = [
            (flag::METADATA_ID, self.metadata_id != last.metadata_id),
            (flag::CAPTURE_THREAD, counted),
            (flag::THREAD_ID, self.thread_id != last.thread_id),
            (flag::STACK_ID, self.stack_id != last.stack_id),
            (flag::LABEL_LIST_ID, V6 && self.label_list_id != last.label_list_id),
            (flag::ACTIVITY_ID, !V6 && self.activity_id != last.activity_id),
            (flag::RELATED_ACTIVITY_ID, !V6 && self.related_activity_id != last.related_activity_id),
            (flag::SORTED, self.sorted),
            (flag::PAYLOAD_SIZE, self.payload_size != last.payload_size),
        ];
        let flags = flags.into_iter().filter(|(_, set)| *set).fold(0, |all, (bit, _)| all | bit);
        let set = |bit| flags & bit != 0;
        w.u8(flags);
        if set(flag::METADATA_ID) {
            w.varu32(self.metadata_id);
        }
        if set(flag::CAPTURE_THREAD) {
            w.varu32(self.sequence.wrapping_sub(last.sequence).wrapping_sub(1));
            w.varu64(self.capture_thread_id).varu32(self.processor);
        }
        if set(flag::THREAD_ID) {
            w.varu64(self.thread_id);
        }
        if set(flag::STACK_ID) {
            w.varu32(self.stack_id);
        }
        w.varu64(self.timestamp.wrapping_sub(last.timestamp));
        if V6 && set(flag::LABEL_LIST_ID) {
            w.varu32(self.label_list_id);
        }
        if !V6 && set(flag::ACTIVITY_ID) {
            w.bytes(&self.activity_id.to_le_bytes());
        }
        if !V6 && set(flag::RELATED_ACTIVITY_ID) {
            w.bytes(&self.related_activity_id.to_le_bytes());
        }
        if set(flag::PAYLOAD_SIZE) {
            w.varu32(u32::try_from(self.payload_size).unwrap_or(u32::MAX));
        }
    }

    /// Reads an uncompressed header and returns the stated size of the blob.
    fn uncompressed<const V6: bool>(&mut self, r: &mut Bytes<'_>) -> Result<usize, Fault> {
        let size = r.u32("event size")?;
        let id = r.u32("metadata id")?;
        let sequence = r.u32("sequence number")?;
        let thread_id = r.u64("thread id")?;
        let capture_thread_id = r.u64("capture thread id")?;
        let processor = r.u32("processor number")?;
        let stack_id = r.u32("stack id")?;
        let timestamp = r.u64("time stamp")?;
        let (mut activity_id, mut related_activity_id, mut label_list_id) = (0, 0, 0);
        if V6 {
            label_list_id = r.u32("label list id")?;
        } else {
            activity_id = r.u128("activity id")?;
            related_activity_id = r.u128("related activity id")?;
        }
        *self = Self {
            metadata_id: id & !UNSORTED,
            sorted: id & UNSORTED == 0,
            sequence,
            thread_id,
            capture_thread_id,
            processor,
            stack_id,
            timestamp,
            activity_id,
            related_activity_id,
            label_list_id,
            payload_size: usize::try_from(r.u32("payload size")?).unwrap_or(usize::MAX),
        };
        // The size does not count itself.
        Ok(usize::try_from(size).unwrap_or(usize::MAX).saturating_add(4))
    }
}
