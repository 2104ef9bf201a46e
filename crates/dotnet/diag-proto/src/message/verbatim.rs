//! A received message, header and payload byte for byte, for proxies that forward messages without interpreting them.
//!
//! It may hold bytes that the encoders reject, so only a [`Tap`](crate::tap::Tap) creates and outputs such messages:
//! a [`Client`](crate::client::Client) sends a [`Request`] only.

use std::fmt;

use runtap_wire::{DecodeError, Reader};

use super::{Command, ErrorReply, Frame, HEADER_LEN, Header, Reply, Request, continuation_size, decode_ok};
use crate::{RequestError, error::unexpected};

/// A received message. Its size matches its header and is between [`HEADER_LEN`] and
/// [`MAX_MESSAGE`](crate::MAX_MESSAGE) bytes, and it begins with [`MAGIC`](crate::MAGIC); nothing else was checked.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Verbatim {
    header: Header,
    bytes: Vec<u8>,
}

impl Verbatim {
    /// Returns the message that was collected, or the collector if the message is incomplete.
    pub(crate) fn collected(frame: Frame) -> Result<Self, Frame> {
        let (header, bytes) = frame.into_parts()?;
        Ok(Self { header, bytes })
    }

    /// Returns the header.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// Returns the command or answer.
    pub fn command(&self) -> Command {
        self.header.command
    }

    /// Returns the payload, which follows the header.
    pub fn payload(&self) -> &[u8] {
        self.bytes.get(HEADER_LEN..).unwrap_or_default()
    }

    /// Returns the complete message, for forwarding.
    pub(crate) fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Decodes the message as a request. Runtimes may accept more: see [`Request::decode`].
    ///
    /// # Errors
    /// If a server would reject the request.
    pub fn to_request(&self) -> Result<Request, RequestError> {
        Request::decode(self.command(), self.payload())
    }

    /// Decodes the message as the reply to `request`. The variables of an environment are not part of the message:
    /// the returned list is empty.
    ///
    /// # Errors
    /// If the message is not a valid reply to `request`.
    pub fn to_reply(&self, request: &Request) -> Result<Result<Reply, ErrorReply>, DecodeError> {
        match self.command() {
            // The message holds only the size of the continuation.
            Command::OK if *request == Request::ProcessEnvironment => {
                continuation_size(&mut Reader::at(self.payload(), HEADER_LEN as u64))?;
                Ok(Ok(Reply::Environment(Vec::new())))
            }
            Command::OK => decode_ok(request, self.payload()),
            Command::ERROR => Ok(Err(ErrorReply::decode(self.payload())?)),
            Command(other) => {
                Err(unexpected(16, "reply command", u32::from(other), "0xff00 (OK) or 0xffff (Error)"))
            }
        }
    }
}

/// Omits the payload, which may contain secrets.
impl fmt::Debug for Verbatim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {} bytes", self.command(), self.bytes.len())
    }
}
