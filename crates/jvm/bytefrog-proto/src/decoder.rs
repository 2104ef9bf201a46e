//! A decoder for a stream that arrives in chunks of any size.
//!
//! Complete messages are decoded in place; only a message that a chunk truncates is copied.

use runtap_wire::DecodeError;

use crate::decode::{Limits, decode, decode_frequent};
use crate::{Dialect, Message, Stream};

/// A decoder of one direction of one connection. It stops at the first error, because the next message cannot be
/// found.
///
/// The memory used is bounded by the longest message that has arrived in part; nothing is reserved in advance.
#[derive(Debug, Clone)]
pub struct Decoder {
    stream: Stream,
    limits: Limits,
    /// The received part of an incomplete message.
    partial: Vec<u8>,
    /// The stream offset of the next message.
    offset: u64,
    broken: Option<DecodeError>,
}

impl Decoder {
    /// Creates a decoder at the beginning of a stream.
    pub fn new(stream: Stream) -> Self {
        Self::with_limits(stream, Limits::default())
    }

    /// Creates a decoder with custom limits.
    pub fn with_limits(stream: Stream, limits: Limits) -> Self {
        Self { stream, limits, partial: Vec::new(), offset: 0, broken: None }
    }

    /// Returns the stream that is decoded, with its current dialect.
    pub fn stream(&self) -> Stream {
        self.stream
    }

    /// Sets the dialect from the next message on: required for a data connection, once its run is known. A hello
    /// sets the dialect automatically.
    pub fn set_dialect(&mut self, dialect: Dialect) {
        self.stream.dialect = Some(dialect);
    }

    /// Returns the stream offset of the next message.
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// Returns the number of bytes received of an incomplete message.
    pub fn leftover(&self) -> usize {
        self.partial.len()
    }

    /// Passes every message that `bytes` completes to `take`, with its offset in the stream. `take` returns the new
    /// dialect, or `None` to keep the current one.
    ///
    /// # Errors
    /// Fails if a message is invalid, after all messages before it were passed. All further calls return the same
    /// error.
    #[inline]
    pub fn feed(
        &mut self,
        bytes: &[u8],
        mut take: impl FnMut(u64, Message<'_>) -> Option<Dialect>,
    ) -> Result<(), DecodeError> {
        if let Some(error) = &self.broken {
            return Err(error.clone());
        }
        let rest = if self.partial.is_empty() { bytes } else { self.complete(bytes, &mut take)? };
        let mut at = 0;
        loop {
            let ahead = rest.get(at..).unwrap_or_default();
            if let Some((message, size)) = decode_frequent(ahead, self.stream) {
                if let Some(dialect) = take(self.offset, message) {
                    self.stream.dialect = Some(dialect);
                }
                self.offset += size as u64;
                at += size;
                continue;
            }
            if ahead.is_empty() {
                return Ok(());
            }
            match decode(ahead, self.offset, self.stream, self.limits) {
                Ok((message, size)) => {
                    let dialect = take(self.offset, message);
                    self.offset += size as u64;
                    at += size;
                    if let Some(dialect) = dialect {
                        self.stream.dialect = Some(dialect);
                    } else if self.stream.dialect.is_none() {
                        self.set_dialect_of(&message);
                    }
                }
                Err(error) if error.is_incomplete() => {
                    self.partial.extend_from_slice(ahead);
                    return Ok(());
                }
                Err(error) => return Err(self.break_with(error)),
            }
        }
    }

    /// Completes the truncated message with as few bytes as necessary and passes it on. Returns the remaining bytes.
    #[cold]
    fn complete<'a>(
        &mut self,
        bytes: &'a [u8],
        take: &mut impl FnMut(u64, Message<'_>) -> Option<Dialect>,
    ) -> Result<&'a [u8], DecodeError> {
        let mut rest = bytes;
        let mut partial = std::mem::take(&mut self.partial);
        // The step doubles, so that a long message in small chunks is not decoded again for each byte.
        let mut step = 32;
        loop {
            let had = partial.len();
            let (head, tail) = rest.split_at_checked(step).unwrap_or((rest, &[]));
            partial.extend_from_slice(head);
            match decode(&partial, self.offset, self.stream, self.limits) {
                Ok((message, size)) => {
                    let dialect = take(self.offset, message);
                    self.offset += size as u64;
                    if let Some(dialect) = dialect {
                        self.stream.dialect = Some(dialect);
                    } else if self.stream.dialect.is_none() {
                        self.set_dialect_of(&message);
                    }
                    // The partial message alone was incomplete, so `size` is greater than `had`.
                    return Ok(rest.get(size.saturating_sub(had)..).unwrap_or_default());
                }
                Err(error) if error.is_incomplete() => {
                    rest = tail;
                    step = step.saturating_mul(2);
                    if rest.is_empty() {
                        self.partial = partial;
                        return Ok(&[]);
                    }
                }
                Err(error) => {
                    self.partial = partial;
                    return Err(self.break_with(error));
                }
            }
        }
    }

    fn set_dialect_of(&mut self, message: &Message<'_>) {
        if let Message::Hello { version } | Message::ProjectHello { version, .. } = message {
            self.stream.dialect = Dialect::of_hello(*version);
        }
    }

    #[cold]
    fn break_with(&mut self, error: DecodeError) -> DecodeError {
        self.broken = Some(error.clone());
        error
    }
}
