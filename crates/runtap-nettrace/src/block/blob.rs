//! `EventBlock` and `MetadataBlock` of Nettrace 4, event blocks of Nettrace 6: the block header and the headers of the
//! blobs in it, compressed or not. Source: nettrace format, "blocks", "event headers" and "V6, events". Does not look
//! into payloads.
//!
//! This is the hot loop of every reader: the flag byte decides by plain branches, which predict well because few
//! different flag bytes occur in a stream.

use std::ops::Range;

use runtap_wire::{DecodeError, DecodeErrorKind, Reader, Uuid};

use super::bytes::{Bytes, Fault};

/// Least size of a block header in bytes; later versions may append fields.
pub(crate) const HEADER_SIZE: u16 = 20;
/// Block flag: event headers are compressed.
pub(crate) const COMPRESSED: u16 = 1;

/// Bits of the first byte of a compressed header: which fields follow. What does not follow stays as it was.
pub(crate) mod flag {
    pub(crate) const METADATA_ID: u8 = 1;
    pub(crate) const CAPTURE_THREAD: u8 = 2;
    pub(crate) const THREAD_ID: u8 = 4;
    pub(crate) const STACK_ID: u8 = 8;
    pub(crate) const ACTIVITY_ID: u8 = 16;
    /// The same bit in Nettrace 6.
    pub(crate) const LABEL_LIST_ID: u8 = 16;
    pub(crate) const RELATED_ACTIVITY_ID: u8 = 32;
    pub(crate) const SORTED: u8 = 64;
    pub(crate) const PAYLOAD_SIZE: u8 = 128;
}

/// Bit of the metadata id of an uncompressed header: the event is *not* a point where all earlier ones are older.
pub(crate) const UNSORTED: u32 = 1 << 31;
/// Size in bytes of an uncompressed header in Nettrace 4.
pub(crate) const UNCOMPRESSED_SIZE: usize = 80;
/// The same in Nettrace 6.
pub(crate) const UNCOMPRESSED_SIZE_V6: usize = 52;

/// The fields of one blob's header.
#[derive(Debug, Clone, Default)]
pub(crate) struct Head {
    pub(crate) metadata_id: u32,
    pub(crate) sequence: u32,
    /// In Nettrace 6 the index of the thread, as in `thread_id`.
    pub(crate) capture_thread_id: u64,
    pub(crate) thread_id: u64,
    pub(crate) processor: u32,
    pub(crate) stack_id: u32,
    pub(crate) timestamp: u64,
    pub(crate) activity_id: Option<Uuid>,
    pub(crate) related_activity_id: Option<Uuid>,
    /// Nettrace 6 only.
    pub(crate) label_list_id: u32,
    pub(crate) sorted: bool,
    payload_size: u32,
}

/// A cursor over the blobs of one block. All state of compressed headers begins at zero in every block.
#[derive(Debug, Clone, Default)]
pub(crate) struct Blobs {
    pub(crate) head: Head,
    compressed: bool,
    /// First byte of the next blob, counted from the start of the block.
    position: usize,
    payload_start: usize,
    payload_end: usize,
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
        // Time range and fields of later versions.
        r.bytes(usize::from(size) - 4, "block header")?;
        Ok(Self { compressed: flags & COMPRESSED != 0, position: usize::from(size), ..Self::default() })
    }

    /// First byte that was not read, counted from the start of the block.
    pub(crate) fn position(&self) -> usize {
        self.position
    }

    /// Goes to the next blob and gives the flags that say what changed; `None` at the end of the block. A blob that
    /// does not fit into `block` is a fault and ends the block; the position stays in front of it.
    #[inline(always)]
    #[expect(
        clippy::inline_always,
        reason = "the hot loop keeps what it changes in registers only if it sees all of it"
    )]
    pub(crate) fn advance<const V6: bool>(&mut self, block: &[u8]) -> Result<Option<u8>, Fault> {
        let mut r = Bytes::new(block, self.position);
        if r.is_at_end() {
            return Ok(None);
        }
        let (flags, padded) = if self.compressed {
            (self.head.compressed::<V6>(&mut r)?, 0)
        } else {
            (u8::MAX, self.head.uncompressed::<V6>(&mut r)?)
        };
        let size = usize::try_from(self.head.payload_size).unwrap_or(usize::MAX);
        let start = r.position();
        r.bytes(size, "event payload")?;
        self.payload_start = start;
        self.payload_end = r.position();
        if padded != 0 {
            // The runtime pads these to 4 bytes and counts that; other writers do not.
            let header = if V6 { UNCOMPRESSED_SIZE_V6 } else { UNCOMPRESSED_SIZE };
            r.bytes(padded.saturating_sub(header + size), "event padding")?;
        }
        self.position = r.position();
        Ok(Some(flags))
    }

    /// Where the payload of the blob lies, counted from the start of the block.
    #[inline]
    pub(crate) fn payload(&self) -> Range<usize> {
        self.payload_start..self.payload_end
    }
}

impl Head {
    /// Gives the flags.
    #[inline(always)]
    #[expect(
        clippy::inline_always,
        reason = "the hot loop keeps what it changes in registers only if it sees all of it"
    )]
    fn compressed<const V6: bool>(&mut self, r: &mut Bytes<'_>) -> Result<u8, Fault> {
        let flags = r.u8("event flags")?;
        if flags & flag::METADATA_ID != 0 {
            self.metadata_id = r.varu32("metadata id")?;
        }
        if flags & flag::CAPTURE_THREAD != 0 {
            let delta = r.varu32("sequence number")?;
            self.sequence = self.sequence.wrapping_add(delta).wrapping_add(1);
            self.capture_thread_id = r.varu64("capture thread id")?;
            self.processor = r.varu32("processor number")?;
        } else if self.metadata_id != 0 {
            self.sequence = self.sequence.wrapping_add(1);
        }
        if flags & flag::THREAD_ID != 0 {
            self.thread_id = r.varu64("thread id")?;
        }
        if flags & flag::STACK_ID != 0 {
            self.stack_id = r.varu32("stack id")?;
        }
        self.timestamp = self.timestamp.wrapping_add(r.varu64("time stamp")?);
        if V6 {
            if flags & flag::LABEL_LIST_ID != 0 {
                self.label_list_id = r.varu32("label list id")?;
            }
        } else if flags & (flag::ACTIVITY_ID | flag::RELATED_ACTIVITY_ID) != 0 {
            self.activities(flags, r)?;
        }
        self.sorted = flags & flag::SORTED != 0;
        if flags & flag::PAYLOAD_SIZE != 0 {
            self.payload_size = r.varu32("payload size")?;
        }
        Ok(flags)
    }

    #[inline(never)]
    fn activities(&mut self, flags: u8, r: &mut Bytes<'_>) -> Result<(), Fault> {
        if flags & flag::ACTIVITY_ID != 0 {
            self.activity_id = r.guid("activity id")?;
        }
        if flags & flag::RELATED_ACTIVITY_ID != 0 {
            self.related_activity_id = r.guid("related activity id")?;
        }
        Ok(())
    }

    /// Gives the size of the blob as it states it itself.
    #[cold]
    fn uncompressed<const V6: bool>(&mut self, r: &mut Bytes<'_>) -> Result<usize, Fault> {
        let size = r.u32("event size")?;
        let id = r.u32("metadata id")?;
        let sequence = r.u32("sequence number")?;
        let thread_id = r.u64("thread id")?;
        let capture_thread_id = r.u64("capture thread id")?;
        let processor = r.u32("processor number")?;
        let stack_id = r.u32("stack id")?;
        let timestamp = r.u64("time stamp")?;
        let (mut activity_id, mut related_activity_id, mut label_list_id) = (None, None, 0);
        if V6 {
            label_list_id = r.u32("label list id")?;
        } else {
            activity_id = r.guid("activity id")?;
            related_activity_id = r.guid("related activity id")?;
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
            payload_size: r.u32("payload size")?,
        };
        // The size does not count itself.
        Ok(usize::try_from(size).unwrap_or(usize::MAX).saturating_add(4))
    }
}
