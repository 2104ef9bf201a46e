//! Frames: an `i32` length of all that follows, an `i32` id, a body.
//!
//! Owns: finding frames in a stream of chunks, and putting a length before a body. Refuses to: know what is in a body.

use runtap_wire::{DecodeError, DecodeErrorKind, Deframer, Reader, Writer};

use crate::{EncodeError, MessageId};

/// Bytes of the length word and the id.
const HEAD: usize = 8;

/// How much is accepted from the other side.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// The largest length word that is accepted, in bytes. `dotnet test` has no limit; the HTTP transport of MTP 2.4 has
    /// 256 MiB.
    pub frame: u32,
    /// How many elements all lists of one frame may have together. MTP 2.5.2 has the same limit for each list.
    pub elements: u32,
}

impl Default for Limits {
    /// 64 MiB, 1,000,000 elements.
    fn default() -> Self {
        Self { frame: 64 << 20, elements: 1_000_000 }
    }
}

/// A whole frame, borrowed from where it was received.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Frame<'a> {
    /// Offset of the length word in the stream.
    pub offset: u64,
    /// Which message the body is.
    pub id: MessageId,
    /// The message.
    pub body: &'a [u8],
}

impl<'a> Frame<'a> {
    /// The frame at the beginning of `bytes`, which is at offset 0 of its stream, and how many bytes it has with its length
    /// word.
    ///
    /// # Errors
    /// A length word that is negative, below 4 or above [`Limits::frame`]. A frame that is not complete is an error
    /// that [is incomplete](DecodeError::is_incomplete).
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

    /// A reader of the body, whose offsets are those of the stream.
    pub fn reader(&self) -> Reader<'a> {
        Reader::at(self.body, self.offset.saturating_add(HEAD as u64))
    }

    /// The bytes of the frame, with its length word.
    ///
    /// # Errors
    /// A body of 2 GiB and more.
    pub fn to_bytes(&self) -> Result<Vec<u8>, EncodeError> {
        let mut writer = start(self.id);
        writer.bytes(self.body);
        finish(writer)
    }
}

/// A writer that has the head of a frame, whose length [`finish`] fills in.
pub(crate) fn start(id: MessageId) -> Writer {
    start_in(Vec::new(), id)
}

/// As [`start`], in memory whose content is not needed.
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

/// Memory that a reader keeps between frames.
const KEPT: usize = 256 << 10;

/// Finds the frames in a stream. Memory is bounded by what was fed: nothing is reserved for a length that is only claimed.
#[derive(Debug, Clone, Default)]
pub struct FrameReader {
    queue: Deframer,
    limits: Limits,
    /// Bytes of the frame that was given last: it is borrowed from the queue, and leaves it only with the next call.
    given: usize,
    broken: Option<DecodeError>,
}

impl FrameReader {
    /// A reader of a stream of which nothing has come yet.
    pub fn new(limits: Limits) -> Self {
        Self { limits, ..Self::default() }
    }

    /// What this reader accepts.
    pub fn limits(&self) -> Limits {
        self.limits
    }

    /// Appends bytes that arrived.
    pub fn feed(&mut self, bytes: &[u8]) {
        self.release();
        if self.broken.is_none() {
            self.queue.feed(bytes);
        }
    }

    /// The next frame, or nothing if it is not complete.
    ///
    /// # Errors
    /// A length word that is negative, below 4 or above [`Limits::frame`]. Where the next frame would begin is unknown
    /// then: the error is given again for ever, and what is fed is dropped.
    pub fn next_frame(&mut self) -> Result<Option<Frame<'_>>, DecodeError> {
        self.release();
        if let Some(error) = &self.broken {
            return Err(error.clone());
        }
        match Frame::parse_at(self.queue.pending(), self.queue.offset(), self.limits) {
            Ok((frame, size)) => {
                self.given = size;
                Ok(Some(frame))
            }
            Err(error) if error.is_incomplete() => Ok(None),
            Err(error) => {
                self.broken = Some(error.clone());
                Err(error)
            }
        }
    }

    /// How many bytes were fed that are in no frame yet: more than none at the end of the stream is a frame that was cut.
    pub fn leftover(&self) -> usize {
        self.queue.pending().len().saturating_sub(self.given)
    }

    /// Offset and size, with its length word, of the frame that is not complete; `None` before its length word has come.
    pub fn unfinished(&self) -> Option<(u64, usize)> {
        let head: &[u8; 4] = self.queue.pending().get(self.given..)?.first_chunk()?;
        let length = u32::from_le_bytes(*head);
        let size = usize::try_from(length).ok()?.checked_add(4)?;
        (length <= self.limits.frame).then_some((self.offset(), size))
    }

    /// Offset of the first of those bytes in the stream.
    pub fn offset(&self) -> u64 {
        self.queue.offset().saturating_add(self.given as u64)
    }

    fn release(&mut self) {
        if self.given > 0 {
            self.queue.consume(std::mem::take(&mut self.given));
            self.queue.shrink_to(KEPT);
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
        assert_eq!(reader.next_frame(), Err(error.clone()), "there is no way back");
        error.to_string()
    }

    #[test]
    fn lengths_that_no_frame_has() {
        assert_eq!(error(&[0, 0, 0, 0]), "frame length at offset 8: is 0, less than 4");
        assert_eq!(error(&[3, 0, 0, 0]), "frame length at offset 8: is 3, less than 4");
        assert_eq!(error(&[0xff; 4]), "frame length at offset 8: is negative");
        assert_eq!(error(&[101, 0, 0, 0]), "frame length at offset 8: is 101, more than the allowed 100");
    }

    #[test]
    fn a_claimed_length_reserves_nothing() {
        let mut reader = FrameReader::new(Limits { frame: u32::MAX, ..Limits::default() });
        reader.feed(&[0xff, 0xff, 0xff, 0x7f, 9, 0, 0, 0]);
        assert_eq!(reader.next_frame(), Ok(None));
        assert_eq!(reader.leftover(), 8);
        assert!(reader.queue.capacity() < 1024, "{}", reader.queue.capacity());
    }

    #[test]
    fn leftover_does_not_count_the_frame_that_is_out() {
        let mut reader = FrameReader::default();
        reader.feed(&[5, 0, 0, 0, 0, 0, 0, 0, 7, 9]);
        assert_eq!(reader.next_frame().unwrap().unwrap().body, [7]);
        assert_eq!((reader.leftover(), reader.offset()), (1, 9));
        assert_eq!(reader.next_frame(), Ok(None));
        assert_eq!((reader.leftover(), reader.offset()), (1, 9));
    }

    #[test]
    fn an_unfinished_frame_has_a_size_and_a_finished_one_leaves_no_memory() {
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
        assert!(reader.queue.capacity() <= KEPT, "{}", reader.queue.capacity());
    }
}
