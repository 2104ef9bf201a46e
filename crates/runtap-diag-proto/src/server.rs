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
//! Answers what a runtime answers, and refuses what real runtimes die of. Bytes after the request are ignored: one
//! connection serves one command.

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
    transmit: Option<Vec<u8>>,
    event: Option<Event>,
}

impl Default for Server {
    fn default() -> Self {
        Self { state: State::Request(Frame::default()), transmit: None, event: None }
    }
}

impl Server {
    /// A connection on which nothing came yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Whether the request was answered. What is left to do: write what [`poll_transmit`](Self::poll_transmit)
    /// has, the stream of a session, then close.
    pub fn is_done(&self) -> bool {
        matches!(self.state, State::Done)
    }

    /// Takes bytes from the client. What comes after the request is ignored.
    pub fn handle_bytes(&mut self, bytes: &[u8]) {
        let State::Request(frame) = &mut self.state else { return };
        match frame.feed(bytes) {
            Err(FrameError::Size(error)) => self.reject(RequestError::BadEncoding(error)),
            Err(FrameError::Magic(error)) => self.reject(RequestError::UnknownMagic(error)),
            Ok(_) => {
                let Some((command, payload)) = frame.message() else { return };
                match Request::decode(command, payload) {
                    Ok(request) => {
                        self.event = Some(Event::Request(request.clone()));
                        self.state = State::Answer(request);
                    }
                    Err(error) => self.reject(error),
                }
            }
        }
    }

    /// The client will send nothing more. In the middle of a request that is answered with an error, as runtimes
    /// do.
    pub fn handle_eof(&mut self) {
        if let State::Request(frame) = &self.state {
            let received = frame.len();
            self.reject(RequestError::Incomplete { received });
        }
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

    fn reject(&mut self, error: RequestError) {
        // An error reply without text always fits.
        self.transmit = ErrorReply::from(error.hresult()).to_bytes().ok();
        self.event = Some(Event::Refused(error));
        self.state = State::Done;
    }
}
