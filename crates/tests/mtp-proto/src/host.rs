//! The host's side of one connection: the handshake, then one request at a time.
//!
//! ```text
//! Connection::data() ─▶ handshake(…) ─▶ request(…) ─▶ request(…) …
//! Connection::control() ─▶ request(WaitForServerControl) ─▶ Reply::Control, possibly much later
//! ```
//!
//! Each call returns the bytes to write, which must be written in one operation; [`Connection::handle_bytes`] returns
//! the reply. A request that breaks a rule is not encoded: [`RequestError::rule`] returns the rule. To break rules on
//! purpose, for example in tests of servers, write [`Message::to_frame`] directly.

mod request_checker;

use runtap_wire::DecodeError;
use thiserror::Error;

use self::request_checker::RequestChecker;
use crate::server::quote;
use crate::{
    EncodeError, Frame, FrameReader, Handshake, Limits, Message, MessageId, Rule, ServerControl, Version,
};

/// A reply of the server.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Reply {
    /// The handshake was accepted.
    Accepted {
        /// The chosen version.
        version: Version,
        /// The server's handshake; see [`Handshake::is_ide`] and [`Handshake::server_control_pipe`].
        handshake: Handshake,
    },
    /// The handshake was rejected. Real hosts then exit with code 12.
    Rejected(Handshake),
    /// The request was received.
    Acknowledged,
    /// The server sent a command on the control pipe.
    Control(ServerControl),
}

/// An error that occurs when a request cannot be sent.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum RequestError {
    /// The previous request has not been answered yet.
    #[error("the reply to {0} is still pending")]
    InFlight(MessageId),
    /// The connection has had no handshake.
    #[error("{0} was sent before the handshake")]
    NoHandshake(MessageId),
    /// The connection already had a handshake.
    #[error("a connection can have only one handshake")]
    SecondHandshake,
    /// The server rejected the handshake or broke the protocol.
    #[error("the connection is closed")]
    Closed,
    /// The chosen version does not include the message.
    #[error("{message} requires protocol version {since}, but {version} was chosen")]
    NotNegotiated {
        /// The message.
        message: MessageId,
        /// The first version that includes the message.
        since: Version,
        /// The chosen version.
        version: Version,
    },
    /// Hosts do not send this message on this pipe.
    #[error("{0} is not sent by hosts on this pipe")]
    WrongPipe(MessageId),
    /// The message contradicts the handshake or an earlier message, or lacks a required field.
    #[error("{message} breaks {rule}, {}{}{detail}", rule.summary(), if detail.is_empty() { "" } else { ": " })]
    Broken {
        /// The rule.
        rule: Rule,
        /// The message.
        message: MessageId,
        /// Details of the violation; empty if the rule explains it completely.
        detail: String,
    },
    /// The message cannot be encoded.
    #[error(transparent)]
    Encode(#[from] EncodeError),
}

impl RequestError {
    /// Returns the rule that the request would have broken.
    pub fn rule(&self) -> Option<Rule> {
        request_checker::rule(self)
    }
}

/// An error of the server. The connection cannot be used afterwards.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ReplyError {
    /// A frame or a body is malformed.
    #[error(transparent)]
    Decode(#[from] DecodeError),
    /// The reply does not match the request.
    #[error("the reply to {request} is {reply}")]
    WrongReply {
        /// The request.
        request: MessageId,
        /// The reply that was received.
        reply: MessageId,
    },
    /// The server sent bytes although no request was pending.
    #[error("{bytes} bytes arrived without a pending request")]
    Unsolicited {
        /// The number of bytes.
        bytes: usize,
    },
    /// The server chose a version that the host did not offer. Holds the version, in quotes.
    #[error("the server chose version {0}, which was not offered")]
    Version(String),
    /// The server closed the connection instead of replying.
    #[error("the server closed the connection without replying to {0}")]
    Closed(MessageId),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    New,
    Ready(Version),
    Control,
    Closed,
}

/// One connection of a host.
#[derive(Debug)]
pub struct Connection {
    reader: FrameReader,
    stage: Stage,
    /// The pending request.
    in_flight: Option<MessageId>,
    checker: RequestChecker,
}

impl Connection {
    /// Creates the state of a connection to the pipe that was specified on the command line.
    pub fn data() -> Self {
        let reader = FrameReader::new(Limits::default());
        Self { reader, stage: Stage::New, in_flight: None, checker: RequestChecker::default() }
    }

    /// Creates the state of a connection to the control pipe, which has no handshake.
    pub fn control() -> Self {
        Self { stage: Stage::Control, ..Self::data() }
    }

    /// Returns the chosen version, or `None` before the handshake was accepted.
    pub fn version(&self) -> Option<Version> {
        match self.stage {
            Stage::Ready(version) => Some(version),
            Stage::New | Stage::Control | Stage::Closed => None,
        }
    }

    /// Returns the pending request, if any.
    pub fn in_flight(&self) -> Option<MessageId> {
        self.in_flight
    }

    /// Encodes the handshake.
    ///
    /// # Errors
    /// Fails like [`request`](Self::request).
    pub fn handshake(&mut self, handshake: Handshake) -> Result<Vec<u8>, RequestError> {
        self.request(&Message::Handshake(handshake))
    }

    /// Encodes a request. Unknown messages can be sent, and command-line options can be sent without a handshake, as
    /// hosts before MTP 2.3 do.
    ///
    /// # Errors
    /// Returns an error if another request is pending, if the handshake is missing or was already sent, if the
    /// connection is closed, if the message does not exist in the chosen version or on this pipe, if it contradicts the
    /// handshake, the mode, the host type or the sessions, or if it lacks a required field. The state is unchanged
    /// after an error.
    pub fn request(&mut self, message: &Message) -> Result<Vec<u8>, RequestError> {
        let id = message.id();
        self.check(id)?;
        self.checker.check(message)?;
        let frame = message.to_frame()?;
        self.checker.record(message);
        self.in_flight = Some(id);
        Ok(frame)
    }

    /// Registers a frame that was encoded elsewhere as the next request; the caller must send it now. Of test results
    /// and discovered tests, which may be long, only the ids are checked.
    ///
    /// # Errors
    /// Fails like [`request`](Self::request), except for errors of encoding.
    pub fn begin_frame(&mut self, frame: &[u8]) -> Result<(), RequestError> {
        let limits = self.reader.limits();
        let (frame, _) = Frame::parse(frame, limits).map_err(|error| RequestError::Broken {
            rule: Rule::FrameLength,
            message: MessageId::VOID,
            detail: error.to_string(),
        })?;
        self.check(frame.id)?;
        if let Some(message) = self.checker.check_frame(&frame, limits)? {
            self.checker.record(&message);
        }
        self.in_flight = Some(frame.id);
        Ok(())
    }

    fn check(&self, id: MessageId) -> Result<(), RequestError> {
        if let Some(request) = self.in_flight {
            return Err(RequestError::InFlight(request));
        }
        match (self.stage, id) {
            (Stage::Closed, _) => return Err(RequestError::Closed),
            (Stage::Control, MessageId::WAIT_FOR_SERVER_CONTROL) => {}
            (Stage::Control, _)
            | (
                _,
                MessageId::VOID
                | MessageId::TEST_HOST_COMPLETED
                | MessageId::TEST_HOST_PROCESS_ID
                | MessageId::WAIT_FOR_SERVER_CONTROL
                | MessageId::SERVER_CONTROL,
            ) => return Err(RequestError::WrongPipe(id)),
            (Stage::New, MessageId::HANDSHAKE | MessageId::COMMAND_LINE_OPTIONS) => {}
            (Stage::New, _) => return Err(RequestError::NoHandshake(id)),
            (Stage::Ready(_), MessageId::HANDSHAKE) => return Err(RequestError::SecondHandshake),
            (Stage::Ready(version), _) => {
                if let Some(since) = id.since().filter(|since| *since > version) {
                    return Err(RequestError::NotNegotiated { message: id, since, version });
                }
            }
        }
        Ok(())
    }

    /// Handles received bytes, and returns the server's reply when it is complete.
    ///
    /// # Errors
    /// Returns an error if the bytes are not a reply to the pending request. The connection cannot be used afterwards.
    pub fn handle_bytes(&mut self, bytes: &[u8]) -> Result<Option<Reply>, ReplyError> {
        let reply = self.read_reply(bytes);
        if reply.is_err() {
            self.stage = Stage::Closed;
            self.in_flight = None;
        }
        reply
    }

    /// Handles the end of the connection.
    ///
    /// # Errors
    /// Returns an error if a request is pending. On the control pipe this is not an error, because closing it cancels
    /// the session.
    pub fn handle_eof(&mut self) -> Result<(), ReplyError> {
        let was = std::mem::replace(&mut self.stage, Stage::Closed);
        match self.in_flight.take() {
            Some(request) if was != Stage::Control || self.reader.leftover() > 0 => {
                Err(ReplyError::Closed(request))
            }
            _ => Ok(()),
        }
    }

    fn read_reply(&mut self, bytes: &[u8]) -> Result<Option<Reply>, ReplyError> {
        self.reader.feed(bytes);
        let Some(request) = self.in_flight else {
            return match self.reader.leftover() {
                0 => Ok(None),
                bytes => Err(ReplyError::Unsolicited { bytes }),
            };
        };
        let limits = self.reader.limits();
        let Some(frame) = self.reader.next_frame()? else { return Ok(None) };
        let reply = frame.id;
        let expected = match request {
            MessageId::HANDSHAKE => MessageId::HANDSHAKE,
            MessageId::WAIT_FOR_SERVER_CONTROL => MessageId::SERVER_CONTROL,
            _ => MessageId::VOID,
        };
        if reply != expected {
            return Err(ReplyError::WrongReply { request, reply });
        }
        let message = Message::decode(&frame, limits)?;
        self.in_flight = None;
        let reply = match message {
            Message::Handshake(handshake) => self.accept(handshake)?,
            Message::ServerControl(control) => Reply::Control(control),
            _ => Reply::Acknowledged,
        };
        match self.reader.leftover() {
            0 => Ok(Some(reply)),
            bytes => Err(ReplyError::Unsolicited { bytes }),
        }
    }

    fn accept(&mut self, handshake: Handshake) -> Result<Reply, ReplyError> {
        let chosen = handshake.get(crate::HandshakeKey::SUPPORTED_VERSIONS).unwrap_or_default();
        if chosen.is_empty() {
            self.stage = Stage::Closed;
            return Ok(Reply::Rejected(handshake));
        }
        let version = handshake.chosen_version().filter(|version| self.checker.has_offered(*version));
        let version = version.ok_or_else(|| ReplyError::Version(quote(chosen)))?;
        self.stage = Stage::Ready(version);
        self.checker.accepted(handshake.is_ide());
        Ok(Reply::Accepted { version, handshake })
    }
}
