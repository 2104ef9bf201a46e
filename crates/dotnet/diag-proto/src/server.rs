//! The server's side of one connection: one request in, one reply out, then perhaps a continuation.
//!
//! ```text
//! new() ─▶ handle_bytes … ─▶ poll_event: Request ─▶ reply(…) ─▶ poll_transmit: the answer ─▶ close
//!                                 │                                │
//!                                 │                                └ a session: the stream follows on this
//!                                 │                                  connection, written by the caller
//!                                 └ Rejected: poll_transmit returns the error reply
//! ```
//!
//! A server that can receive descriptors ([`Server::with_user_events`]) has one more step: the event for a session into
//! user_events comes only after the descriptor has arrived ([`Server::handle_descriptor`]).
//!
//! Answers as a runtime does, and rejects the requests that crash real runtimes. Bytes after the request are ignored:
//! one connection serves one command.

use runtap_wire::{DecodeError, DecodeErrorKind};

use crate::{
    EncodeError, ErrorReply, Reply, Request, RequestError,
    message::{Frame, FrameError},
};

/// The outcome of reading the request. Each connection yields exactly one event.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Event {
    /// A request to answer with [`Server::reply`] or [`Server::refuse`].
    Request(Request),
    /// A request that was rejected; [`Server::poll_transmit`] returns the error reply.
    Rejected(RequestError),
}

#[derive(Debug)]
enum ServerState {
    /// The request is incomplete.
    Request(Frame),
    /// The request, with this number of bytes, is complete except for its descriptor.
    Descriptor(Request, usize),
    /// The application has the request and has not answered it.
    Answer(Request),
    /// The request was answered.
    Done,
}

/// One connection from a client.
///
/// See the [crate's page](crate) for the order of calls.
#[derive(Debug)]
pub struct Server {
    state: ServerState,
    user_events: bool,
    transmit: Option<Vec<u8>>,
    event: Option<Event>,
}

impl Default for Server {
    fn default() -> Self {
        Self {
            state: ServerState::Request(Frame::default()),
            user_events: false,
            transmit: None,
            event: None,
        }
    }
}

impl Server {
    /// Creates a connection on which nothing was received. Sessions into user_events are rejected with NOTSUPPORTED.
    pub fn new() -> Self {
        Self::default()
    }

    /// Like [`new`](Self::new), for callers that can receive a descriptor and then call
    /// [`handle_descriptor`](Self::handle_descriptor).
    pub fn with_user_events() -> Self {
        Self { user_events: true, ..Self::default() }
    }

    /// Returns whether the request waits for its descriptor. Read the next message with space for one descriptor.
    pub fn needs_descriptor(&self) -> bool {
        matches!(self.state, ServerState::Descriptor(..))
    }

    /// Returns whether the request was answered. Then write what [`poll_transmit`](Self::poll_transmit) returns and the
    /// stream of a session, and close the connection.
    pub fn is_done(&self) -> bool {
        matches!(self.state, ServerState::Done)
    }

    /// Handles bytes from the client. Bytes after the request are ignored, unless a descriptor is expected: then bytes
    /// without one are an error.
    pub fn handle_bytes(&mut self, bytes: &[u8]) {
        let mut rest = bytes;
        if let ServerState::Request(frame) = &mut self.state {
            match frame.feed(bytes) {
                Err(FrameError::Size(error)) => return self.reject(RequestError::BadEncoding(error)),
                Err(FrameError::Magic(error)) => return self.reject(RequestError::UnknownMagic(error)),
                Ok(taken) => rest = bytes.get(taken..).unwrap_or_default(),
            }
            let Some((command, payload)) = frame.message() else { return };
            let size = frame.len();
            match Request::decode(command, payload) {
                Ok(Request::CollectUserEvents { .. }) if !self.user_events => {
                    self.reject(RequestError::NotSupported(command));
                }
                Ok(request @ Request::CollectUserEvents { .. }) => {
                    self.state = ServerState::Descriptor(request, size);
                }
                Ok(request) => self.pass(request),
                Err(error) => self.reject(error),
            }
        }
        if let ServerState::Descriptor(_, size) = &self.state
            && !rest.is_empty()
        {
            let kind = DecodeErrorKind::Invalid("was not received with its byte");
            let error = DecodeError::new(*size as u64, "user_events descriptor", kind);
            self.reject(RequestError::BadEncoding(error));
        }
    }

    /// Handles the arrival of the descriptor that [`needs_descriptor`](Self::needs_descriptor) announced. The byte that
    /// carried it is not passed to this server. Ignored at any other time.
    pub fn handle_descriptor(&mut self) {
        if let ServerState::Descriptor(request, _) = &self.state {
            let request = request.clone();
            self.pass(request);
        }
    }

    /// Handles the end of the client's data. An incomplete request is answered with an error, as runtimes do.
    pub fn handle_eof(&mut self) {
        let received = match &self.state {
            ServerState::Request(frame) => frame.len(),
            ServerState::Descriptor(_, size) => *size,
            ServerState::Answer(_) | ServerState::Done => return,
        };
        self.reject(RequestError::Incomplete { received });
    }

    /// Answers the request.
    ///
    /// # Errors
    /// If the reply does not belong to the request or cannot be encoded, or if the request was answered before. Nothing is
    /// sent then.
    pub fn reply(&mut self, reply: &Reply) -> Result<(), EncodeError> {
        let ServerState::Answer(request) = &self.state else { return Err(EncodeError::NothingToAnswer) };
        self.transmit = Some(reply.to_bytes(request)?);
        self.state = ServerState::Done;
        Ok(())
    }

    /// Answers the request with an error.
    ///
    /// # Errors
    /// If the text is too long, or if the request was answered before. Nothing is sent then.
    pub fn refuse(&mut self, error: &ErrorReply) -> Result<(), EncodeError> {
        let ServerState::Answer(_) = &self.state else { return Err(EncodeError::NothingToAnswer) };
        self.transmit = Some(error.to_bytes()?);
        self.state = ServerState::Done;
        Ok(())
    }

    /// Returns the bytes to write: the answer, once.
    pub fn poll_transmit(&mut self) -> Option<Vec<u8>> {
        self.transmit.take()
    }

    /// Returns the outcome of reading the request, once.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.event.take()
    }

    fn pass(&mut self, request: Request) {
        self.event = Some(Event::Request(request.clone()));
        self.state = ServerState::Answer(request);
    }

    fn reject(&mut self, error: RequestError) {
        // An error reply without text always fits.
        self.transmit = ErrorReply::from(error.hresult()).to_bytes().ok();
        self.event = Some(Event::Rejected(error));
        self.state = ServerState::Done;
    }
}
