//! A message as it came, header and payload byte for byte: for whoever stands between the two sides and passes on what
//! he need not understand.
//!
//! It holds what the encoders refuse to build, so nobody but a [`Tap`](crate::tap::Tap) makes one, and nobody else gives
//! its bytes out again: a [`Client`](crate::client::Client) takes a [`Request`] only.

use std::fmt;

use runtap_wire::{DecodeError, Reader};

use super::{Command, ErrorReply, Frame, HEADER_LEN, Header, Reply, Request, continuation_size, decode_ok};
use crate::{RequestError, error::unexpected};

/// A message that was received. Its header says as many bytes as there are, at least [`HEADER_LEN`] and at most
/// [`MAX_MESSAGE`](crate::MAX_MESSAGE), and begins with [`MAGIC`](crate::MAGIC); nothing else is known of it.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Verbatim {
    header: Header,
    bytes: Vec<u8>,
}

impl Verbatim {
    /// The message that was collected, or the collector if it is not whole.
    pub(crate) fn collected(frame: Frame) -> Result<Self, Frame> {
        let (header, bytes) = frame.into_parts()?;
        Ok(Self { header, bytes })
    }

    /// Its header.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// What is asked or answered.
    pub fn command(&self) -> Command {
        self.header.command
    }

    /// What follows the header.
    pub fn payload(&self) -> &[u8] {
        self.bytes.get(HEADER_LEN..).unwrap_or_default()
    }

    /// All of it, to be passed on.
    pub(crate) fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// What it asks for, if it is a request. A runtime may see more in it: see [`Request::decode`].
    ///
    /// # Errors
    /// What a server of ours would refuse.
    pub fn to_request(&self) -> Result<Request, RequestError> {
        Request::decode(self.command(), self.payload())
    }

    /// What it answers, if it is the reply to `request`. The variables of an environment come after the message: their
    /// list is empty here.
    ///
    /// # Errors
    /// No reply to it.
    pub fn to_reply(&self, request: &Request) -> Result<Result<Reply, ErrorReply>, DecodeError> {
        match self.command() {
            // Only the announcement of what follows is in it.
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

/// Without the payload: there may be secrets in it.
impl fmt::Debug for Verbatim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {} bytes", self.command(), self.bytes.len())
    }
}
