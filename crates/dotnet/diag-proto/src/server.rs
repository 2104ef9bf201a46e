//! The server's side of one connection: one request in, one reply out, then perhaps a continuation.
//!
//! ```text
//! new() ─▶ handle_bytes … ─▶ poll_event: Request ─▶ reply(…) ─▶ poll_transmit: the answer ─▶ close
//!                                 │                                │
//!                                 │                                └ a session: the connection is the stream's
//!                                 │                                  from here on, the caller writes to it
//!                                 └ Refused: poll_transmit has the error reply already
//! ```
//!
//! A server that can receive descriptors ([`Server::with_user_events`]) gets one more step: a session into user_events
//! becomes an event only when its descriptor has come ([`Server::handle_descriptor`]).
//!
//! Answers what a runtime answers, and refuses what real runtimes die of. Bytes after the request are ignored: one
//! connection serves one command.

use runtap_wire::{DecodeError, DecodeErrorKind};

use crate::{
    EncodeError, ErrorReply, Reply, Request, RequestError,
    message::{Frame, FrameError},
};

/// What came in. Each connection brings exactly one of these.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Event {
    /// A request that wants an answer: [`Server::reply`] or [`Server::refuse`].
    Request(Request),
    /// A request that was refused; the error reply is waiting in [`Server::poll_transmit`].
    Refused(RequestError),
}

#[derive(Debug)]
enum State {
    /// The request is not complete.
    Request(Frame),
    /// The request, of this many bytes, is complete but for its descriptor.
    Descriptor(Request, usize),
    /// The request is with the application.
    Answer(Request),
    /// Answered.
    Done,
}

/// One connection of a client.
///
/// See the [crate's page](crate) for the order of calls.
#[derive(Debug)]
pub struct Server {
    state: State,
    user_events: bool,
    transmit: Option<Vec<u8>>,
    event: Option<Event>,
}

impl Default for Server {
    fn default() -> Self {
        Self { state: State::Request(Frame::default()), user_events: false, transmit: None, event: None }
    }
}

impl Server {
    /// A connection on which nothing came yet. Sessions into user_events are refused with NOTSUPPORTED.
    pub fn new() -> Self {
        Self::default()
    }

    /// As [`new`](Self::new), for a caller who can receive a descriptor and tells so with
    /// [`handle_descriptor`](Self::handle_descriptor).
    pub fn with_user_events() -> Self {
        Self { user_events: true, ..Self::default() }
    }

    /// Whether a request waits for its descriptor. Read the next message with room for one.
    pub fn needs_descriptor(&self) -> bool {
        matches!(self.state, State::Descriptor(..))
    }

    /// Whether the request was answered. What is left to do: write what [`poll_transmit`](Self::poll_transmit)
    /// has, the stream of a session, then close.
    pub fn is_done(&self) -> bool {
        matches!(self.state, State::Done)
    }

    /// Takes bytes from the client. What comes after the request is ignored, except where a descriptor is awaited:
    /// bytes that carry none are an error there.
    pub fn handle_bytes(&mut self, bytes: &[u8]) {
        let mut rest = bytes;
        if let State::Request(frame) = &mut self.state {
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
                    self.state = State::Descriptor(request, size);
                }
                Ok(request) => self.pass(request),
                Err(error) => self.reject(error),
            }
        }
        if let State::Descriptor(_, size) = &self.state
            && !rest.is_empty()
        {
            let kind = DecodeErrorKind::Invalid("did not come with the byte");
            let error = DecodeError::new(*size as u64, "user_events descriptor", kind);
            self.reject(RequestError::BadEncoding(error));
        }
    }

    /// The descriptor has come that [`needs_descriptor`](Self::needs_descriptor) asks for, with a byte, which is not
    /// handed over. Ignored at any other time.
    pub fn handle_descriptor(&mut self) {
        if let State::Descriptor(request, _) = &self.state {
            let request = request.clone();
            self.pass(request);
        }
    }

    /// The client will send nothing more. In the middle of a request that is answered with an error, as runtimes
    /// do.
    pub fn handle_eof(&mut self) {
        let received = match &self.state {
            State::Request(frame) => frame.len(),
            State::Descriptor(_, size) => *size,
            State::Answer(_) | State::Done => return,
        };
        self.reject(RequestError::Incomplete { received });
    }

    /// Answers the request.
    ///
    /// # Errors
    /// A reply that does not belong to the request or cannot be encoded, or a second one: nothing is sent then.
    pub fn reply(&mut self, reply: &Reply) -> Result<(), EncodeError> {
        let State::Answer(request) = &self.state else { return Err(EncodeError::NothingToAnswer) };
        self.transmit = Some(reply.to_bytes(request)?);
        self.state = State::Done;
        Ok(())
    }

    /// Answers the request with an error.
    ///
    /// # Errors
    /// A text that does not fit, or a second answer: nothing is sent then.
    pub fn refuse(&mut self, error: &ErrorReply) -> Result<(), EncodeError> {
        let State::Answer(_) = &self.state else { return Err(EncodeError::NothingToAnswer) };
        self.transmit = Some(error.to_bytes()?);
        self.state = State::Done;
        Ok(())
    }

    /// What is to be written. Gives the answer, once.
    pub fn poll_transmit(&mut self) -> Option<Vec<u8>> {
        self.transmit.take()
    }

    /// What came in, once.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.event.take()
    }

    fn pass(&mut self, request: Request) {
        self.event = Some(Event::Request(request.clone()));
        self.state = State::Answer(request);
    }

    fn reject(&mut self, error: RequestError) {
        // An error reply without text always fits.
        self.transmit = ErrorReply::from(error.hresult()).to_bytes().ok();
        self.event = Some(Event::Refused(error));
        self.state = State::Done;
    }
}
