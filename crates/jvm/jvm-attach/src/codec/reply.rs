//! Replies of a JVM: a code on a line of its own, and a text that ends with the connection. The peer controls every
//! byte, so both are limited in size.

use thiserror::Error;

/// The maximum size of a text, in bytes. The longest replies are those to `jcmd` (thread dumps, class histograms).
pub const MAX_TEXT: usize = 64 << 20;
/// The maximum length of a code, in bytes: `-2147483648`.
const MAX_CODE: usize = 11;

/// A reply.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reply {
    /// The code: 0 on success, if the command reports success by a code at all; 101 if the JVM does not support
    /// this version of the protocol.
    pub code: i32,
    /// The text, mostly UTF-8.
    pub text: Vec<u8>,
}

/// An error for an invalid reply.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ReplyError {
    /// The connection was closed before a code was received. A JVM does this for requests of other users, and for
    /// arguments that are too long.
    #[error("the JVM closed the connection without a reply (after {received} bytes)")]
    Closed {
        /// The number of received bytes.
        received: usize,
    },
    /// The first line is not a number.
    #[error("the reply does not start with a code (at byte {offset})")]
    NoCode {
        /// The offset of the first invalid byte.
        offset: usize,
    },
    /// The text exceeds the limit.
    #[error("the reply is longer than {limit} bytes")]
    TooLong {
        /// The limit, in bytes.
        limit: usize,
    },
}

/// An incremental reader of a reply.
#[derive(Debug)]
pub struct ReplyReader {
    limit: usize,
    /// The received part of the first line.
    line: Vec<u8>,
    code: Option<i32>,
    text: Vec<u8>,
    failed: Option<ReplyError>,
}

impl Default for ReplyReader {
    fn default() -> Self {
        Self::with_limit(MAX_TEXT)
    }
}

impl ReplyReader {
    /// Creates a reader with this limit on the size of the text, in bytes.
    pub fn with_limit(limit: usize) -> Self {
        Self { limit, line: Vec::new(), code: None, text: Vec::new(), failed: None }
    }

    /// Handles received bytes.
    ///
    /// # Errors
    /// Fails if the reply is invalid; all further calls return the same error.
    pub fn handle_bytes(&mut self, bytes: &[u8]) -> Result<(), ReplyError> {
        if let Some(error) = &self.failed {
            return Err(error.clone());
        }
        self.read(bytes).inspect_err(|error| self.failed = Some(error.clone()))
    }

    fn read(&mut self, bytes: &[u8]) -> Result<(), ReplyError> {
        let mut rest = bytes;
        while self.code.is_none() {
            let Some((byte, after)) = rest.split_first() else { return Ok(()) };
            rest = after;
            let offset = self.line.len();
            match byte {
                b'\n' => {
                    let code = str::from_utf8(&self.line).ok().and_then(|line| line.parse().ok());
                    self.code = Some(code.ok_or(ReplyError::NoCode { offset })?);
                }
                b'0'..=b'9' | b'-' if offset < MAX_CODE && (*byte != b'-' || offset == 0) => {
                    self.line.push(*byte);
                }
                _ => return Err(ReplyError::NoCode { offset }),
            }
        }
        if self.limit - self.text.len() < rest.len() {
            return Err(ReplyError::TooLong { limit: self.limit });
        }
        self.text.extend(rest);
        Ok(())
    }

    /// Handles the end of the connection, and returns the reply.
    ///
    /// # Errors
    /// Fails if the reply is invalid or missing.
    pub fn handle_eof(self) -> Result<Reply, ReplyError> {
        match (self.failed, self.code) {
            (Some(error), _) => Err(error),
            (None, Some(code)) => Ok(Reply { code, text: self.text }),
            (None, None) => Err(ReplyError::Closed { received: self.line.len() }),
        }
    }
}

impl Reply {
    /// Returns the first 2,000 characters of the text, for display.
    pub fn message(&self) -> String {
        const MAX_CHARS: usize = 2000;
        String::from_utf8_lossy(&self.text).trim().chars().take(MAX_CHARS).collect()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn read(chunks: &[&[u8]], limit: usize) -> Result<Reply, ReplyError> {
        let mut reader = ReplyReader::with_limit(limit);
        for chunk in chunks {
            reader.handle_bytes(chunk)?;
        }
        reader.handle_eof()
    }

    #[test]
    fn golden_answers() {
        let reply = |bytes: &[u8]| read(&[bytes], MAX_TEXT);
        let of = |code, text: &str| Ok(Reply { code, text: text.into() });
        assert_eq!(reply(b"0\nreturn code: 0\n"), of(0, "return code: 0\n"));
        assert_eq!(reply(b"-1\nOperation x not recognized!"), of(-1, "Operation x not recognized!"));
        assert_eq!(reply(b"101\n"), of(101, ""));
        assert_eq!(reply(b""), Err(ReplyError::Closed { received: 0 }));
        assert_eq!(reply(b"0"), Err(ReplyError::Closed { received: 1 }));
        assert_eq!(reply(b"\n"), Err(ReplyError::NoCode { offset: 0 }));
        assert_eq!(reply(b"-\n"), Err(ReplyError::NoCode { offset: 1 }));
        assert_eq!(reply(b"1-\n"), Err(ReplyError::NoCode { offset: 1 }));
        assert_eq!(reply(b"HTTP/1.1"), Err(ReplyError::NoCode { offset: 0 }));
        assert_eq!(reply(b"99999999999\n"), Err(ReplyError::NoCode { offset: 11 }));
        assert_eq!(reply(b"999999999999"), Err(ReplyError::NoCode { offset: 11 }));
    }

    #[test]
    fn no_more_is_kept_than_the_limit() {
        assert_eq!(read(&[b"0\nabc"], 3), Ok(Reply { code: 0, text: b"abc".into() }));
        assert_eq!(read(&[b"0\nab", b"cd"], 3), Err(ReplyError::TooLong { limit: 3 }));
        let mut reader = ReplyReader::with_limit(0);
        assert!(reader.handle_bytes(b"0\nx").is_err());
        assert!(reader.handle_bytes(b"").is_err(), "the error is permanent");
        assert!(reader.handle_eof().is_err());
    }

    proptest! {
        #[test]
        fn chunks_do_not_matter(code: i32, text: Vec<u8>, size in 1..9_usize) {
            let bytes = [code.to_string().as_bytes(), b"\n", &text].concat();
            let whole = read(&[&bytes], MAX_TEXT);
            prop_assert_eq!(&whole, &Ok(Reply { code, text }));
            prop_assert_eq!(read(&bytes.chunks(size).collect::<Vec<_>>(), MAX_TEXT), whole);
        }

        #[test]
        fn a_truncated_reply_is_not_another_reply(code: i32, text: Vec<u8>, end: usize) {
            let bytes = [code.to_string().as_bytes(), b"\n", &text].concat();
            let end = end % (bytes.len() + 1);
            match read(&[&bytes[..end]], MAX_TEXT) {
                Ok(reply) => prop_assert!(reply.code == code && text.starts_with(&reply.text)),
                Err(error) => prop_assert_eq!(error, ReplyError::Closed { received: end }),
            }
        }

        #[test]
        fn any_bytes_are_read_the_same_in_any_chunks(bytes: Vec<u8>, size in 1..9_usize, limit in 0..50_usize) {
            let whole = read(&[&bytes], limit);
            prop_assert_eq!(read(&bytes.chunks(size).collect::<Vec<_>>(), limit), whole);
        }
    }
}
