//! A stream in any chunks to its messages.
//!
//! Owns: [`Decoder`]. Whole messages are read where they were received; only one that is cut by the end of a chunk is copied.

use runtap_wire::DecodeError;

use crate::decode::{Limits, decode, frequent};
use crate::{Dialect, Message, Stream};

/// Reads one direction of one connection. After an error it reads no more: there is no way to find the next message.
///
/// Memory is bounded by the longest message that has begun to come, of which nothing is reserved ahead.
#[derive(Debug, Clone)]
pub struct Decoder {
    stream: Stream,
    limits: Limits,
    /// The beginning of a message whose end has not come.
    cut: Vec<u8>,
    /// Stream offset of the next message.
    offset: u64,
    broken: Option<DecodeError>,
}

impl Decoder {
    /// A decoder of a stream of which nothing has come yet.
    pub fn new(stream: Stream) -> Self {
        Self::with_limits(stream, Limits::default())
    }

    /// The same with limits of one's own.
    pub fn with_limits(stream: Stream, limits: Limits) -> Self {
        Self { stream, limits, cut: Vec::new(), offset: 0, broken: None }
    }

    /// What is read, and in which dialect.
    pub fn stream(&self) -> Stream {
        self.stream
    }

    /// Reads in this dialect from the next message on: when a data connection has said which run it belongs to. A hello of
    /// version 1 to 4 or F1 does that by itself.
    pub fn set_dialect(&mut self, dialect: Dialect) {
        self.stream.dialect = Some(dialect);
    }

    /// Stream offset of the next message.
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// Bytes of a message whose end has not come.
    pub fn leftover(&self) -> usize {
        self.cut.len()
    }

    /// Gives every message that `bytes` complete to `take`, with its offset in the stream. `take` may change the dialect:
    /// that is what it returns (`None`: as before).
    ///
    /// # Errors
    /// What is no message; everything before it was given. Every further call has the same error.
    #[inline]
    pub fn feed(
        &mut self,
        bytes: &[u8],
        mut take: impl FnMut(u64, Message<'_>) -> Option<Dialect>,
    ) -> Result<(), DecodeError> {
        if let Some(error) = &self.broken {
            return Err(error.clone());
        }
        let rest = if self.cut.is_empty() { bytes } else { self.mend(bytes, &mut take)? };
        let mut at = 0;
        loop {
            let ahead = rest.get(at..).unwrap_or_default();
            if let Some((message, size)) = frequent(ahead, self.stream) {
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
                        self.greet(&message);
                    }
                }
                Err(error) if error.is_incomplete() => {
                    self.cut.extend_from_slice(ahead);
                    return Ok(());
                }
                Err(error) => return Err(self.break_with(error)),
            }
        }
    }

    /// Completes the message that was cut, with as few bytes as it takes, and gives it. Returns what is left.
    #[cold]
    fn mend<'a>(
        &mut self,
        bytes: &'a [u8],
        take: &mut impl FnMut(u64, Message<'_>) -> Option<Dialect>,
    ) -> Result<&'a [u8], DecodeError> {
        let mut rest = bytes;
        let mut cut = std::mem::take(&mut self.cut);
        // Doubles what is added: a long message in small chunks is not read again for each of its bytes.
        let mut step = 32;
        loop {
            let had = cut.len();
            let (head, tail) = rest.split_at_checked(step).unwrap_or((rest, &[]));
            cut.extend_from_slice(head);
            match decode(&cut, self.offset, self.stream, self.limits) {
                Ok((message, size)) => {
                    let dialect = take(self.offset, message);
                    self.offset += size as u64;
                    if let Some(dialect) = dialect {
                        self.stream.dialect = Some(dialect);
                    } else if self.stream.dialect.is_none() {
                        self.greet(&message);
                    }
                    // What was cut alone was no message, so this is not beyond what was added.
                    return Ok(rest.get(size.saturating_sub(had)..).unwrap_or_default());
                }
                Err(error) if error.is_incomplete() => {
                    rest = tail;
                    step = step.saturating_mul(2);
                    if rest.is_empty() {
                        self.cut = cut;
                        return Ok(&[]);
                    }
                }
                Err(error) => {
                    self.cut = cut;
                    return Err(self.break_with(error));
                }
            }
        }
    }

    fn greet(&mut self, message: &Message<'_>) {
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
