//! `EventBlock` and `MetadataBlock`: the block header and the headers of the blobs in it, compressed or not.
//! Source: nettrace format, "blocks" and "event headers". Does not look into payloads.
//!
//! This is the hot loop of every reader: fields are taken off a slice with one length check each, and the flag
//! byte decides by plain branches, which predict well because few different flag bytes occur in a stream.

use runtap_wire::{DecodeError, DecodeErrorKind, Reader, Uuid};

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
    pub(crate) const RELATED_ACTIVITY_ID: u8 = 32;
    pub(crate) const SORTED: u8 = 64;
    pub(crate) const PAYLOAD_SIZE: u8 = 128;
}

/// Bit of the metadata id of an uncompressed header: the event is *not* a point where all earlier ones are older.
const UNSORTED: u32 = 1 << 31;
/// Size in bytes of an uncompressed header.
const UNCOMPRESSED_SIZE: usize = 80;

/// The fields of one blob's header.
#[derive(Debug, Clone, Default)]
pub(crate) struct Head {
    pub(crate) metadata_id: u32,
    pub(crate) sequence: u32,
    pub(crate) capture_thread_id: u64,
    pub(crate) thread_id: u64,
    pub(crate) processor: u32,
    pub(crate) stack_id: u32,
    pub(crate) timestamp: u64,
    pub(crate) activity_id: Option<Uuid>,
    pub(crate) related_activity_id: Option<Uuid>,
    pub(crate) sorted: bool,
    payload_size: u32,
}

/// A cursor over the blobs of one block. All state of compressed headers begins at zero in every block.
#[derive(Debug, Default)]
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

    /// Goes to the next blob; `false` at the end of the block. A blob that does not fit into `block` is a fault
    /// and ends the block; the position stays in front of it.
    #[inline]
    pub(crate) fn advance(&mut self, block: &[u8]) -> Result<bool, Fault> {
        let mut rest = Bytes { rest: block.get(self.position..).unwrap_or_default() };
        if rest.rest.is_empty() {
            return Ok(false);
        }
        let header =
            if self.compressed { self.head.compressed(&mut rest) } else { self.head.uncompressed(&mut rest) };
        let next = header.and_then(|padded| {
            let size = usize::try_from(self.head.payload_size).unwrap_or(usize::MAX);
            self.payload_start = block.len() - rest.rest.len();
            rest.skip(size, "event payload")?;
            self.payload_end = block.len() - rest.rest.len();
            if let Some(size) = padded {
                // The runtime pads these to 4 bytes and counts that; other writers do not.
                rest.skip(size.saturating_sub(UNCOMPRESSED_SIZE + self.payload().len()), "event padding")?;
            }
            Ok(block.len() - rest.rest.len())
        });
        match next {
            Ok(next) => {
                self.position = next;
                Ok(true)
            }
            Err(fault) => Err(fault),
        }
    }

    /// Where the payload of the blob lies, counted from the start of the block.
    #[inline]
    pub(crate) fn payload(&self) -> std::ops::Range<usize> {
        self.payload_start..self.payload_end
    }
}

impl Head {
    #[inline]
    fn compressed(&mut self, r: &mut Bytes<'_>) -> Result<Option<usize>, Fault> {
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
        if flags & flag::ACTIVITY_ID != 0 {
            self.activity_id = r.guid("activity id")?;
        }
        if flags & flag::RELATED_ACTIVITY_ID != 0 {
            self.related_activity_id = r.guid("related activity id")?;
        }
        self.sorted = flags & flag::SORTED != 0;
        if flags & flag::PAYLOAD_SIZE != 0 {
            self.payload_size = r.varu32("payload size")?;
        }
        Ok(None)
    }

    /// The size of the blob as it states it itself.
    #[cold]
    fn uncompressed(&mut self, r: &mut Bytes<'_>) -> Result<Option<usize>, Fault> {
        let size = u32::from_le_bytes(r.array("event size")?);
        let id = u32::from_le_bytes(r.array("metadata id")?);
        *self = Self {
            metadata_id: id & !UNSORTED,
            sorted: id & UNSORTED == 0,
            sequence: u32::from_le_bytes(r.array("sequence number")?),
            thread_id: u64::from_le_bytes(r.array("thread id")?),
            capture_thread_id: u64::from_le_bytes(r.array("capture thread id")?),
            processor: u32::from_le_bytes(r.array("processor number")?),
            stack_id: u32::from_le_bytes(r.array("stack id")?),
            timestamp: u64::from_le_bytes(r.array("time stamp")?),
            activity_id: r.guid("activity id")?,
            related_activity_id: r.guid("related activity id")?,
            payload_size: u32::from_le_bytes(r.array("payload size")?),
        };
        // The size does not count itself.
        Ok(Some(usize::try_from(size).unwrap_or(usize::MAX).saturating_add(4)))
    }
}

/// Why a blob could not be read; becomes a [`DecodeError`] outside of the hot loop.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Fault {
    what: &'static str,
    /// Bytes from the field to the end of the block.
    left: usize,
    kind: FaultKind,
}

#[derive(Debug, Clone, Copy)]
enum FaultKind {
    End { needed: usize },
    Overlong { limit: u8 },
}

impl Fault {
    /// Whether the blob could be whole in a longer block.
    pub(crate) fn is_incomplete(self) -> bool {
        matches!(self.kind, FaultKind::End { .. })
    }

    /// The error, for a block that ends at `end` in the stream.
    pub(crate) fn into_error(self, end: u64) -> DecodeError {
        let kind = match self.kind {
            FaultKind::End { needed } => {
                DecodeErrorKind::UnexpectedEnd { needed: needed as u64, available: self.left as u64 }
            }
            FaultKind::Overlong { limit } => DecodeErrorKind::OverlongVarint { limit },
        };
        DecodeError::new(end.saturating_sub(self.left as u64), self.what, kind)
    }
}

/// A leaner [`Reader`]: it keeps no offset.
struct Bytes<'a> {
    rest: &'a [u8],
}

impl Bytes<'_> {
    #[inline]
    fn u8(&mut self, what: &'static str) -> Result<u8, Fault> {
        let [byte] = self.array(what)?;
        Ok(byte)
    }

    #[inline]
    fn array<const N: usize>(&mut self, what: &'static str) -> Result<[u8; N], Fault> {
        match self.rest.split_first_chunk() {
            Some((head, tail)) => {
                self.rest = tail;
                Ok(*head)
            }
            None => Err(self.end(what, N)),
        }
    }

    /// A GUID; .NET's "none" is the one of all zeros.
    fn guid(&mut self, what: &'static str) -> Result<Option<Uuid>, Fault> {
        let id = Uuid::from_bytes_le(self.array(what)?);
        Ok(if id.is_nil() { None } else { Some(id) })
    }

    #[inline]
    fn skip(&mut self, n: usize, what: &'static str) -> Result<(), Fault> {
        match self.rest.get(n..) {
            Some(rest) => {
                self.rest = rest;
                Ok(())
            }
            None => Err(self.end(what, n)),
        }
    }

    /// At most 5 bytes; as in Microsoft's reader, what does not fit into 32 bits is dropped.
    #[inline]
    fn varu32(&mut self, what: &'static str) -> Result<u32, Fault> {
        if let [byte @ 0..0x80, tail @ ..] = self.rest {
            self.rest = tail;
            return Ok(u32::from(*byte));
        }
        let value = self.long_varint::<5>(what)?;
        Ok(u32::try_from(value & u64::from(u32::MAX)).unwrap_or(u32::MAX))
    }

    /// At most 10 bytes; what does not fit into 64 bits is dropped.
    #[inline]
    fn varu64(&mut self, what: &'static str) -> Result<u64, Fault> {
        match self.rest {
            [byte @ 0..0x80, tail @ ..] => {
                self.rest = tail;
                Ok(u64::from(*byte))
            }
            [low, high @ 0..0x80, tail @ ..] => {
                self.rest = tail;
                Ok(u64::from(low & 0x7f) | u64::from(*high) << 7)
            }
            [low, middle, high @ 0..0x80, tail @ ..] => {
                self.rest = tail;
                Ok(u64::from(low & 0x7f) | u64::from(middle & 0x7f) << 7 | u64::from(*high) << 14)
            }
            _ => self.long_varint::<10>(what),
        }
    }

    fn long_varint<const MAX: u8>(&mut self, what: &'static str) -> Result<u64, Fault> {
        let mut value = 0u64;
        let mut rest = self.rest;
        for i in 0..MAX {
            let Some((byte, tail)) = rest.split_first() else {
                return Err(self.end(what, usize::from(i) + 1));
            };
            rest = tail;
            value |= u64::from(byte & 0x7f) << (7 * i);
            if byte & 0x80 == 0 {
                self.rest = rest;
                return Ok(value);
            }
        }
        Err(Fault { what, left: self.rest.len(), kind: FaultKind::Overlong { limit: MAX } })
    }

    #[cold]
    fn end(&self, what: &'static str, needed: usize) -> Fault {
        Fault { what, left: self.rest.len(), kind: FaultKind::End { needed } }
    }
}
