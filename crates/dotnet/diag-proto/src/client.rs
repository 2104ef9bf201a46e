//! The client's side of one connection: one request out, one reply in, then perhaps a continuation.
//!
//! ```text
//! new(request) ─▶ poll_transmit: the request ─▶ handle_bytes … ─▶ poll_event: Reply │ Failed
//!                                 │                  │
//!                                 │                  └ a session: bytes after the reply belong to the stream and are
//!                                 │                    not consumed; the caller reads them itself
//!                                 └ user_events: poll_descriptor, a separate message with the descriptor
//! ```
//!
//! Bytes after a complete reply are counted ([`Client::surplus`]) and otherwise ignored. Opening connections, waiting
//! and retrying are up to the caller.

use runtap_wire::{DecodeError, Reader};

use crate::{
    Command, EncodeError, EnvironmentDecoder, ErrorReply, HEADER_LEN, Reply, Request, Variable,
    error::unexpected,
    message::{Frame, FrameError, decode_ok},
};

/// The result of a command. Each connection ends with exactly one event.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Event {
    /// The command was carried out.
    Reply(Reply),
    /// The command failed, or its result is unknown.
    Failed(Failure),
}

/// Why a command has no result.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Failure {
    /// The connection was closed before the answer was complete. If 0 bytes were received, the request may have crashed
    /// the runtime, or the process may just have exited.
    Closed {
        /// The number of bytes of the answer that were received.
        received: u64,
    },
    /// The received bytes are not a valid answer.
    Protocol(DecodeError),
    /// The runtime rejected the command.
    Rejected(ErrorReply),
}

#[derive(Debug)]
enum ClientState {
    /// The reply is incomplete.
    Reply(Frame),
    /// The reply was OK; the environment variables are being received.
    Environment(EnvironmentDecoder, Vec<Variable>),
    /// The reply was OK; the session's stream follows.
    Stream,
    /// Nothing more is expected.
    Done,
}

/// One command on one connection.
///
/// See the [crate's page](crate) for the order of calls.
#[derive(Debug)]
pub struct Client {
    request: Request,
    transmit: Option<Vec<u8>>,
    descriptor: bool,
    state: ClientState,
    event: Option<Event>,
    received: u64,
    surplus: u64,
}

impl Client {
    /// Creates a connection that sends `request`.
    ///
    /// # Errors
    /// If the request must not be sent: for example [`EncodeError::DescriptorMissing`] for a session into user_events.
    pub fn new(request: Request) -> Result<Self, EncodeError> {
        match request {
            Request::CollectUserEvents { .. } => Err(EncodeError::DescriptorMissing),
            request => Self::with_descriptor(request),
        }
    }

    /// Creates a connection that sends `request`, for callers that have a descriptor of `user_events_data` and send it
    /// when [`poll_descriptor`](Self::poll_descriptor) returns a byte.
    ///
    /// # Errors
    /// If the request must not be sent.
    pub fn with_descriptor(request: Request) -> Result<Self, EncodeError> {
        let transmit = Some(request.to_bytes()?);
        let descriptor = matches!(request, Request::CollectUserEvents { .. });
        Ok(Self {
            request,
            transmit,
            descriptor,
            state: ClientState::Reply(Frame::default()),
            event: None,
            received: 0,
            surplus: 0,
        })
    }

    /// Returns the request.
    pub fn request(&self) -> &Request {
        &self.request
    }

    /// Returns whether the session's stream follows: the caller reads it, and this client consumes nothing more. (A
    /// session into user_events sends no stream, and lasts as long as its connection.)
    pub fn is_stream(&self) -> bool {
        matches!(self.state, ClientState::Stream)
    }

    /// Returns whether the command is complete and the connection can be closed. **Do not wait for the peer to close it**:
    /// some runtimes keep it open after an error.
    pub fn is_done(&self) -> bool {
        matches!(self.state, ClientState::Done)
    }

    /// Returns the number of bytes of the answer that were received.
    pub fn received(&self) -> u64 {
        self.received
    }

    /// Returns the number of bytes after a complete answer. Healthy runtimes send none.
    pub fn surplus(&self) -> u64 {
        self.surplus
    }

    /// Consumes bytes from the peer and returns how many: all of them, except bytes of a session's stream.
    pub fn handle_bytes(&mut self, bytes: &[u8]) -> usize {
        let mut taken = 0;
        while !self.is_stream() && taken < bytes.len() {
            taken += self.advance(bytes.get(taken..).unwrap_or_default());
        }
        taken
    }

    /// Handles the end of the peer's data.
    pub fn handle_eof(&mut self) {
        match self.state {
            ClientState::Stream => self.state = ClientState::Done,
            ClientState::Done => {}
            ClientState::Reply(_) | ClientState::Environment(..) => {
                self.finish(Event::Failed(Failure::Closed { received: self.received }));
            }
        }
    }

    /// Returns the bytes to write, in one write: the request, once.
    pub fn poll_transmit(&mut self) -> Option<Vec<u8>> {
        self.transmit.take()
    }

    /// Returns the byte to write right after the request, in a separate message that carries the descriptor. The value of
    /// the byte is ignored. Until the descriptor arrives, the runtime serves no other client.
    pub fn poll_descriptor(&mut self) -> Option<[u8; 1]> {
        let due = self.transmit.is_none() && std::mem::take(&mut self.descriptor);
        due.then_some([0])
    }

    /// Returns the result of the command, once.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.event.take()
    }

    /// Consumes at least one byte of the non-empty `bytes`, and returns how many.
    fn advance(&mut self, bytes: &[u8]) -> usize {
        let taken = match &mut self.state {
            ClientState::Reply(frame) => match frame.feed(bytes) {
                Ok(taken) => {
                    if let Some((command, payload)) = frame.message() {
                        let outcome = Self::interpret(&self.request, command, payload);
                        self.enter(outcome);
                    }
                    taken
                }
                Err(error) => {
                    self.finish(Event::Failed(Failure::Protocol(FrameError::into_inner(error))));
                    bytes.len()
                }
            },
            ClientState::Environment(decoder, variables) => {
                let taken = decoder.handle_bytes(bytes);
                match read_variables(decoder, variables) {
                    Ok(false) => {}
                    Ok(true) => {
                        let variables = std::mem::take(variables);
                        self.finish(Event::Reply(Reply::Environment(variables)));
                    }
                    Err(error) => self.finish(Event::Failed(Failure::Protocol(error))),
                }
                taken
            }
            ClientState::Stream | ClientState::Done => {
                self.surplus += bytes.len() as u64;
                return bytes.len();
            }
        };
        self.received += taken as u64;
        taken
    }

    /// Interprets a complete reply message.
    fn interpret(request: &Request, command: Command, payload: &[u8]) -> Result<ReplyOutcome, DecodeError> {
        match command {
            Command::OK if *request == Request::ProcessEnvironment => {
                let mut r = Reader::at(payload, HEADER_LEN as u64);
                Ok(ReplyOutcome::EnvironmentFollows(EnvironmentDecoder::from_reply(&mut r)?))
            }
            Command::OK => Ok(match decode_ok(request, payload)? {
                Ok(reply) => ReplyOutcome::Complete(Event::Reply(reply)),
                Err(error) => ReplyOutcome::Complete(Event::Failed(Failure::Rejected(error))),
            }),
            Command::ERROR => {
                Ok(ReplyOutcome::Complete(Event::Failed(Failure::Rejected(ErrorReply::decode(payload)?))))
            }
            Command(other) => {
                Err(unexpected(16, "reply command", u32::from(other), "0xff00 (OK) or 0xffff (Error)"))
            }
        }
    }

    fn enter(&mut self, outcome: Result<ReplyOutcome, DecodeError>) {
        match outcome {
            Ok(ReplyOutcome::EnvironmentFollows(decoder)) => {
                self.state = ClientState::Environment(decoder, Vec::new());
            }
            Ok(ReplyOutcome::Complete(event)) => {
                let stream = matches!(event, Event::Reply(Reply::SessionStarted(_)));
                self.finish(event);
                if stream {
                    self.state = ClientState::Stream;
                }
            }
            Err(error) => self.finish(Event::Failed(Failure::Protocol(error))),
        }
    }

    fn finish(&mut self, event: Event) {
        self.event = Some(event);
        self.state = ClientState::Done;
    }
}

enum ReplyOutcome {
    /// The environment follows.
    EnvironmentFollows(EnvironmentDecoder),
    /// The command is complete, except for a stream.
    Complete(Event),
}

/// Reads the available variables and returns whether all of them were read.
fn read_variables(
    decoder: &mut EnvironmentDecoder,
    variables: &mut Vec<Variable>,
) -> Result<bool, DecodeError> {
    while let Some(variable) = decoder.poll_variable()? {
        variables.push(variable);
    }
    Ok(decoder.is_done())
}
