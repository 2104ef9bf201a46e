//! Frames: an `i32` length of everything that follows, an `i32` id, and a body.
//!
//! This module finds frames in a stream of chunks, and writes the length of a body. It does not interpret bodies.

use runtap_wire::{DecodeError, DecodeErrorKind, Deframer, Reader, Writer};

use crate::{EncodeError, MessageId};

/// The size of the length word and the id, in bytes.
const HEADER_SIZE: usize = 8;

/// Limits on what is accepted from the peer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// The largest accepted length word, in bytes. `dotnet test` has no limit; the HTTP transport of MTP 2.4 has a
    /// limit of 256 MiB.
    pub frame: u32,
    /// The maximum number of elements in all lists of one frame together. MTP 2.5.2 applies this limit to each list.
    pub elements: u32,
}

impl Default for Limits {
    /// Returns limits of 64 MiB and 1,000,000 elements.
    fn default() -> Self {
        Self { frame: 64 << 20, elements: 1_000_000 }
    }
}

/// A complete frame, borrowed from the receive buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Frame<'a> {
    /// The offset of the length word in the stream.
    pub offset: u64,
    /// The id of the message.
    pub id: MessageId,
    /// The encoded message.
    pub body: &'a [u8],
}

impl<'a> Frame<'a> {
    /// Parses the frame at the start of `bytes`, which is at offset 0 of its stream. Returns the frame and its size in
    /// bytes, including the length word.
    ///
    /// # Errors
    /// Returns an error if the length word is negative, below 4 or above [`Limits::frame`]. For a frame that has not
    /// arrived completely, the error [is incomplete](DecodeError::is_incomplete).
    pub fn parse(bytes: &'a [u8], limits: Limits) -> Result<(Self, usize), DecodeError> {
        Self::parse_at(bytes, 0, limits)
    }

    fn parse_at(bytes: &'a [u8], offset: u64, limits: Limits) -> Result<(Self, usize), DecodeError> {
        let mut reader = Reader::at(bytes, offset);
        let start = reader.clone();
        let length = reader.i32("frame length")?;
        let Ok(length) = u32::try_from(length) else {
            return Err(start.error("frame length", DecodeErrorKind::Invalid("is negative")));
        };
        let wrong = |kind| Err(start.error("frame length", kind));
        if length < 4 {
            return wrong(DecodeErrorKind::TooSmall { value: u64::from(length), least: 4 });
        }
        if length > limits.frame {
            return wrong(DecodeErrorKind::TooLarge { value: length.into(), limit: limits.frame.into() });
        }
        let length = usize::try_from(length).unwrap_or(usize::MAX);
        let mut rest = reader.sub(length, "frame")?;
        let id = MessageId(rest.i32("message id")?);
        Ok((Self { offset, id, body: rest.rest() }, 4 + length))
    }

    /// Returns a reader of the body. The reader's offsets are relative to the start of the stream.
    pub fn reader(&self) -> Reader<'a> {
        Reader::at(self.body, self.offset.saturating_add(HEADER_SIZE as u64))
    }

    /// Encodes the frame, including its length word.
    ///
    /// # Errors
    /// Returns an error if the frame is 2 GiB or larger.
    pub fn to_bytes(&self) -> Result<Vec<u8>, EncodeError> {
        let mut writer = start(self.id);
        writer.bytes(self.body);
        finish(writer)
    }
}

/// Returns a writer that contains the header of a frame; [`finish`] fills in the length.
pub(crate) fn start(id: MessageId) -> Writer {
    start_in(Vec::new(), id)
}

/// Like [`start`], but reuses the allocation of `memory`, whose content is discarded.
pub(crate) fn start_in(memory: Vec<u8>, id: MessageId) -> Writer {
    let mut writer = Writer::reusing(memory);
    writer.u32(0).i32(id.0);
    writer
}

pub(crate) fn finish(mut writer: Writer) -> Result<Vec<u8>, EncodeError> {
    let bytes = writer.len().saturating_sub(4);
    let Ok(length) = i32::try_from(bytes) else {
        return Err(EncodeError::TooLong { bytes: bytes as u64 });
    };
    writer.patch_u32(0, length.unsigned_abs());
    Ok(writer.into_bytes())
}

/// The buffer capacity that a reader keeps between frames, in bytes.
const MAX_KEPT_CAPACITY: usize = 256 << 10;

/// Splits a stream into frames. Memory is bounded by the bytes that were fed: nothing is reserved for a length that is
/// only claimed.
#[derive(Debug, Clone, Default)]
pub struct FrameReader {
    queue: Deframer,
    limits: Limits,
    /// The size of the last returned frame, in bytes: the frame is borrowed from the queue, and removed from it by the
    /// next call.
    returned: usize,
    broken: Option<DecodeError>,
}

impl FrameReader {
    /// Creates a reader for the start of a stream.
    pub fn new(limits: Limits) -> Self {
        Self { limits, ..Self::default() }
    }

    /// Returns the limits of this reader.
    pub fn limits(&self) -> Limits {
        self.limits
    }

    /// Appends received bytes.
    pub fn feed(&mut self, bytes: &[u8]) {
        self.release();
        if self.broken.is_none() {
            self.queue.feed(bytes);
        }
    }

    /// Returns the next frame, or `None` if the frame is not complete yet.
    ///
    /// # Errors
    /// Returns an error if the length word is negative, below 4 or above [`Limits::frame`]. The start of the next frame
    /// is then unknown: all later calls return this error, and further input is dropped.
    pub fn next_frame(&mut self) -> Result<Option<Frame<'_>>, DecodeError> {
        self.release();
        if let Some(error) = &self.broken {
            return Err(error.clone());
        }
        match Frame::parse_at(self.queue.pending(), self.queue.offset(), self.limits) {
            Ok((frame, size)) => {
                self.returned = size;
                Ok(Some(frame))
            }
            Err(error) if error.is_incomplete() => Ok(None),
            Err(error) => {
                self.broken = Some(error.clone());
                Err(error)
            }
        }
    }

    /// Returns the number of bytes that were fed but are not part of a complete frame. If it is not 0 at the end of the
    /// stream, the last frame is truncated.
    pub fn leftover(&self) -> usize {
        self.queue.pending().len().saturating_sub(self.returned)
    }

    /// Returns the offset and the size in bytes, including the length word, of the incomplete frame. `None` if its
    /// length word is not complete, or above the limit.
    pub fn unfinished(&self) -> Option<(u64, usize)> {
        let head: &[u8; 4] = self.queue.pending().get(self.returned..)?.first_chunk()?;
        let length = u32::from_le_bytes(*head);
        let size = usize::try_from(length).ok()?.checked_add(4)?;
        (length <= self.limits.frame).then_some((self.offset(), size))
    }

    /// Returns the offset in the stream of the first byte that is not part of a complete frame.
    pub fn offset(&self) -> u64 {
        self.queue.offset().saturating_add(self.returned as u64)
    }

    fn release(&mut self) {
        if self.returned > 0 {
            self.queue.consume(std::mem::take(&mut self.returned));
            self.queue.shrink_to(MAX_KEPT_CAPACITY);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(bytes: &[u8]) -> String {
        let mut reader = FrameReader::new(Limits { frame: 100, ..Limits::default() });
        reader.feed(&[4, 0, 0, 0, 0, 0, 0, 0]);
        reader.feed(bytes);
        assert_eq!(reader.next_frame().unwrap().unwrap().id, MessageId::VOID);
        let error = reader.next_frame().unwrap_err();
        reader.feed(&[4, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!(reader.next_frame(), Err(error.clone()), "the error is permanent");
        error.to_string()
    }

    #[test]
    fn invalid_lengths_are_rejected() {
        assert_eq!(error(&[0, 0, 0, 0]), "frame length at offset 8: is 0, less than 4");
        assert_eq!(error(&[3, 0, 0, 0]), "frame length at offset 8: is 3, less than 4");
        assert_eq!(error(&[0xff; 4]), "frame length at offset 8: is negative");
        assert_eq!(error(&[101, 0, 0, 0]), "frame length at offset 8: is 101, more than the allowed 100");
    }

    #[test]
    fn a_claimed_length_reserves_no_memory() {
        let mut reader = FrameReader::new(Limits { frame: u32::MAX, ..Limits::default() });
        reader.feed(&[0xff, 0xff, 0xff, 0x7f, 9, 0, 0, 0]);
        assert_eq!(reader.next_frame(), Ok(None));
        assert_eq!(reader.leftover(), 8);
        assert!(reader.queue.capacity() < 1024, "{}", reader.queue.capacity());
    }

    #[test]
    fn leftover_excludes_the_returned_frame() {
        let mut reader = FrameReader::default();
        reader.feed(&[5, 0, 0, 0, 0, 0, 0, 0, 7, 9]);
        assert_eq!(reader.next_frame().unwrap().unwrap().body, [7]);
        assert_eq!((reader.leftover(), reader.offset()), (1, 9));
        assert_eq!(reader.next_frame(), Ok(None));
        assert_eq!((reader.leftover(), reader.offset()), (1, 9));
    }

    #[test]
    fn an_unfinished_frame_has_a_size_and_its_memory_is_released_later() {
        let mut reader = FrameReader::default();
        reader.feed(&[1, 0, 0]);
        assert_eq!(reader.unfinished(), None);
        reader.feed(&[4]);
        assert_eq!(reader.unfinished(), None, "it is larger than the limit");
        let mut reader = FrameReader::default();
        reader.feed(&(1_u32 << 20).to_le_bytes());
        assert_eq!(reader.unfinished(), Some((0, (1 << 20) + 4)));
        reader.feed(&vec![0; 1 << 20]);
        reader.feed(&[9, 0, 0, 0, 0]);
        assert_eq!(reader.next_frame().unwrap().unwrap().body.len(), (1 << 20) - 4);
        assert_eq!(reader.next_frame(), Ok(None));
        assert_eq!(reader.unfinished(), Some(((1 << 20) + 4, 13)));
        assert!(reader.queue.capacity() <= MAX_KEPT_CAPACITY, "{}", reader.queue.capacity());
    }
}
