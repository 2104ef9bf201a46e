//! ProcessEnvironment (0x0402): the environment variables. The request has no payload. The reply states how many
//! bytes follow (`u32`, then an unused `u16`); the variables are the continuation: a `u32` count, then one string
//! `NAME=value` each. The continuation may be longer than a message.

use std::fmt;

use runtap_wire::{DecodeError, DecodeErrorKind, Deframer, Reader, Writer};

use super::string;
use crate::EncodeError;

/// The longest continuation that is accepted, in bytes: several times the limit of operating systems.
pub const MAX_ENVIRONMENT: u32 = 32 << 20;

/// One entry of the environment, usually `NAME=value`.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Variable(Box<str>);

impl Variable {
    /// Creates a variable from a complete entry.
    pub fn from_entry(entry: impl Into<Box<str>>) -> Self {
        Self(entry.into())
    }

    /// Creates the entry `name=value`.
    pub fn new(name: &str, value: &str) -> Self {
        Self::from_entry(format!("{name}={value}"))
    }

    /// Returns the complete entry.
    pub fn as_entry(&self) -> &str {
        &self.0
    }

    /// Returns the text before the first `=`, or the complete entry without `=`. An `=` at the very start belongs to
    /// the name: Windows has such entries.
    pub fn name(&self) -> &str {
        self.split().map_or(&self.0, |(name, _)| name)
    }

    /// Returns the text after the name's `=`. `None` for an entry without `=`.
    pub fn value(&self) -> Option<&str> {
        self.split().map(|(_, value)| value)
    }

    fn split(&self) -> Option<(&str, &str)> {
        let (at, _) = self.0.char_indices().skip(1).find(|(_, c)| *c == '=')?;
        let (name, rest) = self.0.split_at_checked(at)?;
        Some((name, rest.strip_prefix('=')?))
    }
}

impl fmt::Debug for Variable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, f)
    }
}

/// Returns the payload of the reply and the continuation.
pub(super) fn encode_reply(variables: &[Variable]) -> Result<(Vec<u8>, Vec<u8>), EncodeError> {
    let mut block = Writer::new();
    block.u32(u32::try_from(variables.len()).unwrap_or(u32::MAX));
    for variable in variables {
        if variable.0.contains('\0') {
            return Err(EncodeError::EmbeddedNul { field: "environment entry" });
        }
        block.utf16_counted(Some(&variable.0));
    }
    let size =
        u32::try_from(block.len()).map_err(|_too_long| EncodeError::MessageTooLong { size: block.len() })?;
    let mut head = Writer::new();
    head.u32(size).u16(0);
    Ok((head.into_bytes(), block.into_bytes()))
}

/// Reads the continuation incrementally. Buffers only the received bytes that were not read yet, whatever sizes the
/// peer claims.
#[derive(Debug)]
pub struct EnvironmentDecoder {
    queue: Deframer,
    /// The size of the continuation in bytes, as stated in the reply.
    total: u64,
    /// The number of entries still to be read. `None` until the count was received.
    entries_left: Option<u32>,
}

impl EnvironmentDecoder {
    /// Creates a decoder for the continuation after a reply with this payload. Offsets in the errors of this function count
    /// from the first byte of the reply, and in later errors from the first byte of the continuation.
    pub fn from_reply(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let total = u64::from(continuation_size(r)?);
        Ok(Self { queue: Deframer::new(), total, entries_left: None })
    }

    /// Consumes the bytes that belong to the continuation and returns how many.
    pub fn handle_bytes(&mut self, bytes: &[u8]) -> usize {
        let held = self.queue.offset() + self.queue.pending().len() as u64;
        let wanted = usize::try_from(self.total.saturating_sub(held)).unwrap_or(usize::MAX);
        let bytes = bytes.get(..wanted).unwrap_or(bytes);
        self.queue.feed(bytes);
        bytes.len()
    }

    /// Returns whether every entry was read.
    pub fn is_done(&self) -> bool {
        self.entries_left == Some(0)
    }

    /// Returns the next entry. `None` if it is incomplete, or if there are no more.
    ///
    /// # Errors
    /// If a count or a length exceeds the size that the reply stated.
    pub fn poll_variable(&mut self) -> Result<Option<Variable>, DecodeError> {
        let Some(left) = self.entries_left()? else { return Ok(None) };
        let Some(left) = left.checked_sub(1) else { return Ok(None) };
        let pending = self.queue.pending();
        let mut r = Reader::at(pending, self.queue.offset());
        let what = "environment entry";
        let Ok(units) = r.clone().u32(what) else { return self.need_more(what, 4) };
        let size = 4 + 2 * u64::from(units);
        if (pending.len() as u64) < size {
            return self.need_more(what, size);
        }
        let entry = string(&mut r, what)?.unwrap_or_default();
        let consumed = pending.len() - r.remaining();
        self.queue.consume(consumed);
        self.entries_left = Some(left);
        Ok(Some(Variable::from_entry(entry)))
    }

    fn entries_left(&mut self) -> Result<Option<u32>, DecodeError> {
        if self.entries_left.is_none()
            && let Ok(count) = Reader::new(self.queue.pending()).u32("environment count")
        {
            // The shortest entry is a null string of four bytes.
            let limit = (self.total - 4) / 4;
            if u64::from(count) > limit {
                let kind = DecodeErrorKind::TooLarge { value: u64::from(count), limit };
                return Err(DecodeError::new(0, "environment count", kind));
            }
            self.queue.consume(4);
            self.entries_left = Some(count);
        }
        Ok(self.entries_left)
    }

    /// Returns `None` if the missing bytes may still arrive, or an error if they exceed the stated size.
    fn need_more(&self, what: &'static str, size: u64) -> Result<Option<Variable>, DecodeError> {
        let room = self.total.saturating_sub(self.queue.offset());
        if size <= room {
            return Ok(None);
        }
        let kind = DecodeErrorKind::UnexpectedEnd { needed: size, available: room };
        Err(DecodeError::new(self.queue.offset(), what, kind))
    }
}

/// Reads how many bytes follow a reply with this payload.
pub(crate) fn continuation_size(r: &mut Reader<'_>) -> Result<u32, DecodeError> {
    let what = "environment size";
    let offset = r.offset();
    let total = r.u32(what)?;
    r.u16("reserved")?;
    let kind = match total {
        0..4 => DecodeErrorKind::TooSmall { value: u64::from(total), least: 4 },
        4..=MAX_ENVIRONMENT => return Ok(total),
        _ => DecodeErrorKind::TooLarge { value: u64::from(total), limit: u64::from(MAX_ENVIRONMENT) },
    };
    Err(DecodeError::new(offset, what, kind))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Reply, Request};

    fn read_all(head: &[u8], block: &[u8], step: usize) -> Result<(Vec<Variable>, bool), DecodeError> {
        let mut decoder = EnvironmentDecoder::from_reply(&mut Reader::new(head))?;
        let mut variables = Vec::new();
        for part in block.chunks(step) {
            decoder.handle_bytes(part);
            while let Some(variable) = decoder.poll_variable()? {
                variables.push(variable);
            }
        }
        Ok((variables, decoder.is_done()))
    }

    #[test]
    fn golden_bytes() {
        let request = Request::ProcessEnvironment;
        assert_eq!(request.to_bytes().unwrap(), b"DOTNET_IPC_V1\0\x14\0\x04\x02\0\0");
        let reply = Reply::Environment(vec![Variable::new("A", "b"), Variable::from_entry("C")]);
        let mut expected = b"DOTNET_IPC_V1\0\x1a\0\xff\0\0\0\x18\0\0\0\0\0".to_vec();
        expected.extend(b"\x02\0\0\0\x04\0\0\0A\0=\0b\0\0\0\x02\0\0\0C\0\0\0");
        assert_eq!(reply.to_bytes(&request).unwrap(), expected);
    }

    #[test]
    fn entries_are_split_at_the_first_equals_sign() {
        let parts = |entry: &str| {
            let v = Variable::from_entry(entry);
            (v.name().to_owned(), v.value().map(ToOwned::to_owned))
        };
        assert_eq!(parts("A=b=c"), ("A".into(), Some("b=c".into())));
        assert_eq!(parts("A="), ("A".into(), Some(String::new())));
        assert_eq!(parts("A"), ("A".into(), None));
        assert_eq!(parts(""), (String::new(), None));
        assert_eq!(parts("=C:=C:\\x"), ("=C:".into(), Some("C:\\x".into())));
        assert_eq!(parts("é=ü"), ("é".into(), Some("ü".into())));
    }

    #[test]
    fn an_empty_environment_is_a_count_of_zero() {
        let (variables, done) = read_all(&[4, 0, 0, 0, 0, 0], &[0; 4], 1).unwrap();
        assert!(variables.is_empty() && done);
    }

    #[test]
    fn more_than_64_kb_in_any_pieces() {
        let variables: Vec<_> =
            (0..200).map(|n| Variable::new(&format!("N{n}"), &"x".repeat(1000))).collect();
        let (head, block) = encode_reply(&variables).unwrap();
        assert!(block.len() > 400_000);
        for step in [1, 7, 4096, block.len()] {
            assert_eq!(read_all(&head, &block, step).unwrap(), (variables.clone(), true), "{step}");
        }
        assert!(!read_all(&head, &block[..block.len() - 1], 4096).unwrap().1);
    }

    #[test]
    fn claims_beyond_the_announced_size_are_rejected_at_once() {
        let error = read_all(&[8, 0, 0, 0, 0, 0], &[2, 0, 0, 0], 4).unwrap_err();
        assert_eq!(error.to_string(), "environment count at offset 0: is 2, more than the allowed 1");
        let error = read_all(&[12, 0, 0, 0, 0, 0], &[1, 0, 0, 0, 3, 0, 0, 0], 8).unwrap_err();
        assert_eq!(error.to_string(), "environment entry at offset 4: needs 10 bytes, 8 are left");
        let error = read_all(&[3, 0, 0, 0, 0, 0], &[], 1).unwrap_err();
        assert_eq!(error.to_string(), "environment size at offset 0: is 3, less than 4");
        assert!(read_all(&[0xff, 0xff, 0xff, 0xff, 0, 0], &[], 1).is_err());
    }

    #[test]
    fn bytes_after_the_announced_size_are_not_consumed() {
        let mut decoder = EnvironmentDecoder::from_reply(&mut Reader::new(&[4, 0, 0, 0, 0, 0])).unwrap();
        assert_eq!(decoder.handle_bytes(&[0; 10]), 4);
        assert_eq!(decoder.handle_bytes(&[0; 10]), 0);
    }
}
