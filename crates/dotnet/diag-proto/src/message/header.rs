//! The 20-byte header of every message, and the collector that reads exactly one message from a connection.
//! Section "Headers" of the specification.

use runtap_wire::{DecodeError, DecodeErrorKind, Reader, Writer};

use super::Command;
use crate::EncodeError;

/// The first bytes of every message.
pub const MAGIC: [u8; 14] = *b"DOTNET_IPC_V1\0";

/// The length of a header in bytes.
pub const HEADER_LEN: usize = 20;

/// The longest message in bytes, including the header: its size is a `u16`. Only continuations can be longer.
pub const MAX_MESSAGE: usize = 65_535;

/// The header of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Header {
    /// The first bytes; [`MAGIC`] in this version of the protocol.
    pub magic: [u8; 14],
    /// The size of the complete message in bytes.
    pub size: u16,
    /// The command or answer.
    pub command: Command,
    /// Written as 0 and ignored by every runtime.
    pub reserved: u16,
}

impl Header {
    /// Reads a header without checking its values.
    pub fn decode(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Ok(Self {
            magic: r.array("magic")?,
            size: r.u16("size")?,
            command: Command(u16::from_be_bytes(r.array("command")?)),
            reserved: r.u16("reserved")?,
        })
    }

    /// Appends the header.
    pub fn encode(&self, w: &mut Writer) {
        w.bytes(&self.magic).u16(self.size).bytes(&self.command.0.to_be_bytes()).u16(self.reserved);
    }

    fn check_size(&self) -> Result<(), DecodeError> {
        if usize::from(self.size) >= HEADER_LEN {
            return Ok(());
        }
        let kind = DecodeErrorKind::TooSmall { value: u64::from(self.size), least: HEADER_LEN as u64 };
        Err(DecodeError::new(MAGIC.len() as u64, "size", kind))
    }

    fn check_magic(&self) -> Result<(), DecodeError> {
        if self.magic == MAGIC {
            return Ok(());
        }
        Err(DecodeError::new(0, "magic", DecodeErrorKind::Invalid("is not \"DOTNET_IPC_V1\"")))
    }
}

/// Returns a complete message. Rejects a message that is too long for its size field.
pub(crate) fn frame(command: Command, payload: &[u8]) -> Result<Vec<u8>, EncodeError> {
    let size = HEADER_LEN.saturating_add(payload.len());
    let Ok(wire_size) = u16::try_from(size) else { return Err(EncodeError::MessageTooLong { size }) };
    let mut w = Writer::new();
    Header { magic: MAGIC, size: wire_size, command, reserved: 0 }.encode(&mut w);
    w.bytes(payload);
    Ok(w.into_bytes())
}

/// A reason why a message cannot be collected. A server answers the two differently.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum FrameError {
    Size(DecodeError),
    Magic(DecodeError),
}

impl FrameError {
    pub(crate) fn into_inner(self) -> DecodeError {
        match self {
            Self::Size(error) | Self::Magic(error) => error,
        }
    }
}

/// Collects exactly one message. Memory use is bounded by the received bytes and by [`MAX_MESSAGE`].
#[derive(Debug, Clone, Default)]
pub(crate) struct Frame {
    bytes: Vec<u8>,
    /// `Some` once the first 20 bytes were received.
    header: Option<Header>,
}

impl Frame {
    /// Consumes the bytes that belong to the message and returns how many. Do not call this after
    /// [`message`](Self::message) returned `Some`, or after an error.
    pub(crate) fn feed(&mut self, bytes: &[u8]) -> Result<usize, FrameError> {
        let mut consumed = self.fill(bytes, HEADER_LEN);
        if self.header.is_none() && self.bytes.len() == HEADER_LEN {
            let Ok(header) = Header::decode(&mut Reader::new(&self.bytes)) else { return Ok(consumed) };
            header.check_size().map_err(FrameError::Size)?;
            header.check_magic().map_err(FrameError::Magic)?;
            self.header = Some(header);
        }
        if let Some(header) = self.header {
            consumed += self.fill(bytes.get(consumed..).unwrap_or_default(), usize::from(header.size));
        }
        Ok(consumed)
    }

    fn fill(&mut self, bytes: &[u8], target: usize) -> usize {
        let n = target.saturating_sub(self.bytes.len()).min(bytes.len());
        self.bytes.extend_from_slice(bytes.get(..n).unwrap_or_default());
        n
    }

    /// Returns the command and the payload. `None` while the message is incomplete.
    pub(crate) fn message(&self) -> Option<(Command, &[u8])> {
        let header = self.header?;
        let payload = self.bytes.get(HEADER_LEN..usize::from(header.size))?;
        Some((header.command, payload))
    }

    /// Returns the header and the bytes of the complete message, or itself while the message is incomplete.
    pub(crate) fn into_parts(self) -> Result<(Header, Vec<u8>), Self> {
        match self.header {
            Some(header) if self.bytes.len() == usize::from(header.size) => Ok((header, self.bytes)),
            _ => Err(self),
        }
    }

    /// Returns the bytes that were received.
    pub(crate) fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }

    /// Returns the number of bytes that were received.
    pub(crate) fn len(&self) -> usize {
        self.bytes.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn golden_generic_ok() {
        assert_eq!(frame(Command::OK, &[]).unwrap(), b"DOTNET_IPC_V1\0\x14\x00\xff\x00\x00\x00");
    }

    #[test]
    fn messages_beyond_the_size_field_are_rejected() {
        assert_eq!(frame(Command::OK, &vec![0; MAX_MESSAGE - HEADER_LEN]).unwrap().len(), MAX_MESSAGE);
        assert_eq!(
            frame(Command::OK, &vec![0; MAX_MESSAGE - HEADER_LEN + 1]).unwrap_err(),
            EncodeError::MessageTooLong { size: MAX_MESSAGE + 1 }
        );
    }

    #[test]
    fn a_frame_consumes_its_own_bytes_only() {
        let mut bytes = frame(Command::OK, &[1, 2, 3]).unwrap();
        bytes.extend([9; 5]);
        let mut whole = Frame::default();
        assert_eq!(whole.feed(&bytes).unwrap(), 23);
        let mut parts = Frame::default();
        for byte in &bytes[..23] {
            assert_eq!(parts.message(), None);
            assert_eq!(parts.feed(std::slice::from_ref(byte)).unwrap(), 1);
        }
        assert_eq!(parts.message(), Some((Command::OK, &[1, 2, 3][..])));
        assert_eq!(parts.message(), whole.message());
    }

    #[test]
    fn wrong_size_and_wrong_magic_are_different_errors() {
        let mut bytes = frame(Command::OK, &[]).unwrap();
        bytes[14] = 19;
        let error = Frame::default().feed(&bytes).unwrap_err();
        assert!(matches!(error, FrameError::Size(_)));
        assert_eq!(error.into_inner().to_string(), "size at offset 14: is 19, less than 20");
        bytes[14] = 20;
        bytes[13] = b'X';
        let error = Frame::default().feed(&bytes).unwrap_err();
        assert!(matches!(error, FrameError::Magic(_)));
        assert_eq!(error.into_inner().to_string(), "magic at offset 0: is not \"DOTNET_IPC_V1\"");
    }
}
