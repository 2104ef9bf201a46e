//! Frames: a length, a serializer id, a body.
//!
//! | bytes | |
//! | --- | --- |
//! | `i32` | length of what follows: 4 and the length of the body |
//! | `i32` | serializer id: which message |
//! | … | body |

use runtap_wire::{Deframer, Reader};
use thiserror::Error;

/// What frames may be as long as, unless told otherwise: far above what hosts send, and little enough to be held.
pub const DEFAULT_MAX_FRAME: usize = 64 << 20;

const HEADER: usize = 8;
/// Of the serializer id, which the length counts.
const ID: usize = 4;

/// A frame whose body was not looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Frame<'a> {
    /// Which message.
    pub id: i32,
    /// Its body.
    pub body: &'a [u8],
    /// Where the body begins, in bytes from the first one of the connection.
    pub offset: u64,
}

/// A length that no frame has, or that is not accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("a frame at byte {offset} announces {length} bytes{}", if *.length < 4 { ", fewer than the 4 of its serializer id" } else { ", more than are accepted" })]
pub struct BadLength {
    /// Where the frame begins.
    pub offset: u64,
    /// What it announces.
    pub length: i32,
}

/// Takes bytes in any pieces and gives frames back. Holds no more than was received.
#[derive(Debug)]
pub struct Frames {
    bytes: Deframer,
    max: usize,
    /// Of the frame that was given out last.
    given: usize,
}

impl Default for Frames {
    fn default() -> Self {
        Self::new(DEFAULT_MAX_FRAME)
    }
}

impl Frames {
    /// Refuses frames of more than `max` bytes behind their length.
    pub fn new(max: usize) -> Self {
        Self { bytes: Deframer::new(), max, given: 0 }
    }

    /// Takes in what has come.
    pub fn feed(&mut self, bytes: &[u8]) {
        self.bytes.consume(std::mem::take(&mut self.given));
        self.bytes.feed(bytes);
    }

    /// The next frame, if it is whole.
    ///
    /// # Errors
    /// A length that is not accepted; so is every further call.
    pub fn next_frame(&mut self) -> Result<Option<Frame<'_>>, BadLength> {
        self.bytes.consume(std::mem::take(&mut self.given));
        let offset = self.bytes.offset();
        let mut header = Reader::at(self.bytes.pending(), offset);
        let Ok(announced) = header.i32("length") else { return Ok(None) };
        let length = match usize::try_from(announced) {
            Ok(length) if (ID..=self.max).contains(&length) => length,
            _ => return Err(BadLength { offset, length: announced }),
        };
        let Ok(id) = header.i32("serializer id") else { return Ok(None) };
        let Some(body) = header.rest().get(..length - ID) else { return Ok(None) };
        self.given = HEADER - ID + length;
        Ok(Some(Frame { id, body, offset: offset + HEADER as u64 }))
    }

    /// Whether there is a whole frame.
    ///
    /// # Errors
    /// As [`next_frame`](Self::next_frame).
    pub fn is_whole(&mut self) -> Result<bool, BadLength> {
        let found = self.next_frame()?.is_some();
        // It was only looked at.
        self.given = 0;
        Ok(found)
    }

    /// Bytes behind the frame that was given out last.
    pub fn pending(&self) -> &[u8] {
        self.bytes.pending().get(self.given..).unwrap_or_default()
    }

    /// Where those begin.
    pub fn offset(&self) -> u64 {
        self.bytes.offset() + self.given as u64
    }
}

/// The frame of a body. `None`: it is longer than a frame can be.
pub fn encode_frame(id: i32, body: &[u8]) -> Option<Vec<u8>> {
    let length = i32::try_from(body.len().checked_add(ID)?).ok()?;
    let mut frame = Vec::with_capacity(HEADER + body.len());
    frame.extend(length.to_le_bytes());
    frame.extend(id.to_le_bytes());
    frame.extend(body);
    Some(frame)
}
