//! The host's side of one connection: the handshake, then one request at a time.
//!
//! ```text
//! Connection::data() ─▶ handshake(…) ─▶ request(…) ─▶ request(…) …
//! Connection::control() ─▶ request(WaitForServerControl) ─▶ Reply::Control, maybe much later
//! ```
//!
//! Each call gives the bytes to write, in one go; [`Connection::handle_bytes`] gives the reply. What breaks a rule is not
//! written: [`RequestError::rule`] says which one. Who wants to break rules, as a test of servers does, writes
//! [`Message::to_frame`] itself.

mod conduct;

use runtap_wire::DecodeError;
use thiserror::Error;

use self::conduct::Conduct;
use crate::server::quote;
use crate::{
    EncodeError, Frame, FrameReader, Handshake, Limits, Message, MessageId, Rule, ServerControl, Version,
};

/// What the server has answered.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Reply {
    /// The handshake was accepted.
    Accepted {
        /// The chosen version.
        version: Version,
        /// All that the server has said: [`Handshake::is_ide`], [`Handshake::server_control_pipe`].
        handshake: Handshake,
    },
    /// It was not: real hosts exit with 12.
    Rejected(Handshake),
    /// The request was received.
    Acknowledged,
    /// The server wants something.
    Control(ServerControl),
}

/// A request that can't be sent.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum RequestError {
    /// The reply to the request before is not there yet.
    #[error("the reply to {0} has not come yet")]
    InFlight(MessageId),
    /// There was no handshake.
    #[error("the handshake has to come before {0}")]
    NoHandshake(MessageId),
    /// There was one already.
    #[error("a connection has one handshake only")]
    SecondHandshake,
    /// The server has rejected the handshake, or broken the protocol.
    #[error("the connection is of no use any more")]
    Closed,
    /// The chosen version does not have it.
    #[error("{message} is of version {since}, {version} was chosen")]
    NotNegotiated {
        /// The message.
        message: MessageId,
        /// The first version with it.
        since: Version,
        /// The chosen version.
        version: Version,
    },
    /// A message that hosts do not send on this pipe.
    #[error("{0} is not sent by hosts on this pipe")]
    WrongPipe(MessageId),
    /// It is not what the handshake and the messages before it have announced, or lacks what it must have.
    #[error("{message} breaks {rule}, {}{}{detail}", rule.summary(), if detail.is_empty() { "" } else { ": " })]
    Broken {
        /// The rule.
        rule: Rule,
        /// The message.
        message: MessageId,
        /// How; empty where the rule says it all.
        detail: String,
    },
    /// It has no encoding.
    #[error(transparent)]
    Encode(#[from] EncodeError),
}

impl RequestError {
    /// The rule that the request would have broken.
    pub fn rule(&self) -> Option<Rule> {
        conduct::rule(self)
    }
}

/// What the server did wrong. The connection is of no use then.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ReplyError {
    /// A frame or a body that does not follow the format.
    #[error(transparent)]
    Decode(#[from] DecodeError),
    /// A reply of the wrong kind.
    #[error("the reply to {request} is {reply}")]
    WrongReply {
        /// The request.
        request: MessageId,
        /// What came.
        reply: MessageId,
    },
    /// A reply, or a part of one, to nothing.
    #[error("{bytes} bytes came that are the reply to nothing")]
    Unasked {
        /// How many bytes.
        bytes: usize,
    },
    /// The server chose a version that the host did not offer: the version, in quotes.
    #[error("the server has chosen the version {0}, which was not offered")]
    Version(String),
    /// The server has closed the connection instead of answering.
    #[error("the server has closed the connection and owes the reply to {0}")]
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
    /// The request without a reply.
    in_flight: Option<MessageId>,
    conduct: Conduct,
}

impl Connection {
    /// A connection to the pipe that was given on the command line.
    pub fn data() -> Self {
        let reader = FrameReader::new(Limits::default());
        Self { reader, stage: Stage::New, in_flight: None, conduct: Conduct::default() }
    }

    /// A connection to the control pipe: it has no handshake.
    pub fn control() -> Self {
        Self { stage: Stage::Control, ..Self::data() }
    }

    /// The chosen version, once there is one.
    pub fn version(&self) -> Option<Version> {
        match self.stage {
            Stage::Ready(version) => Some(version),
            Stage::New | Stage::Control | Stage::Closed => None,
        }
    }

    /// The request without a reply.
    pub fn in_flight(&self) -> Option<MessageId> {
        self.in_flight
    }

    /// The bytes of the handshake.
    ///
    /// # Errors
    /// As [`request`](Self::request).
    pub fn handshake(&mut self, handshake: Handshake) -> Result<Vec<u8>, RequestError> {
        self.request(&Message::Handshake(handshake))
    }

    /// The bytes of a request. Unknown messages can be sent, and so can command-line options without a handshake, as hosts
    /// before MTP 2.3 do.
    ///
    /// # Errors
    /// Another request has no reply yet, a handshake that is missing or a second one, a message that the chosen version or
    /// this pipe does not have, a connection that is of no use any more; a message that does not fit to the handshake, the
    /// mode, the kind of host or the sessions, or lacks what it must have. Nothing has changed then.
    pub fn request(&mut self, message: &Message) -> Result<Vec<u8>, RequestError> {
        let id = message.id();
        self.check(id)?;
        self.conduct.check(message)?;
        let frame = message.to_frame()?;
        self.conduct.said(message);
        self.in_flight = Some(id);
        Ok(frame)
    }

    /// The same for a frame that was written elsewhere: it is to be sent now. Of results and lists of tests, which may be
    /// long, only the ids are looked at.
    ///
    /// # Errors
    /// As [`request`](Self::request), but for those of writing.
    pub fn begin(&mut self, frame: &[u8]) -> Result<(), RequestError> {
        let limits = self.reader.limits();
        let (frame, _) = Frame::parse(frame, limits).map_err(|error| RequestError::Broken {
            rule: Rule::FrameLength,
            message: MessageId::VOID,
            detail: error.to_string(),
        })?;
        self.check(frame.id)?;
        if let Some(message) = self.conduct.check_frame(&frame, limits)? {
            self.conduct.said(&message);
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

    /// Takes bytes of the server, and gives its reply when it is complete.
    ///
    /// # Errors
    /// What is no reply to the request. The connection is of no use then.
    pub fn handle_bytes(&mut self, bytes: &[u8]) -> Result<Option<Reply>, ReplyError> {
        let reply = self.take(bytes);
        if reply.is_err() {
            self.stage = Stage::Closed;
            self.in_flight = None;
        }
        reply
    }

    /// The server has closed the connection.
    ///
    /// # Errors
    /// It owes a reply. On the control pipe that is no error: to close it is to cancel the session.
    pub fn handle_eof(&mut self) -> Result<(), ReplyError> {
        let was = std::mem::replace(&mut self.stage, Stage::Closed);
        match self.in_flight.take() {
            Some(request) if was != Stage::Control || self.reader.leftover() > 0 => {
                Err(ReplyError::Closed(request))
            }
            _ => Ok(()),
        }
    }

    fn take(&mut self, bytes: &[u8]) -> Result<Option<Reply>, ReplyError> {
        self.reader.feed(bytes);
        let Some(request) = self.in_flight else {
            return match self.reader.leftover() {
                0 => Ok(None),
                bytes => Err(ReplyError::Unasked { bytes }),
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
            bytes => Err(ReplyError::Unasked { bytes }),
        }
    }

    fn accept(&mut self, handshake: Handshake) -> Result<Reply, ReplyError> {
        let chosen = handshake.get(crate::HandshakeKey::SUPPORTED_VERSIONS).unwrap_or_default();
        if chosen.is_empty() {
            self.stage = Stage::Closed;
            return Ok(Reply::Rejected(handshake));
        }
        let version = handshake.chosen_version().filter(|version| self.conduct.has_offered(*version));
        let version = version.ok_or_else(|| ReplyError::Version(quote(chosen)))?;
        self.stage = Stage::Ready(version);
        self.conduct.accepted(handshake.is_ide());
        Ok(Reply::Accepted { version, handshake })
    }
}
