//! The client's side of one connection: one request out, one reply in, then perhaps a continuation.
//!
//! ```text
//! new(request) ─▶ poll_transmit: the request ─▶ handle_bytes … ─▶ poll_event: Reply │ Failed
//!                                 │                  │
//!                                 │                  └ a session: bytes after the reply are the stream's and are
//!                                 │                    not taken; the caller reads them without this machine
//!                                 └ user_events: poll_descriptor, a message of its own with the descriptor
//! ```
//!
//! What a peer sends after a complete reply is counted ([`Client::surplus`]) and otherwise ignored: it can change
//! nothing any more. Refuses to open connections, to wait and to retry: those are the caller's.

use runtap_wire::{DecodeError, Reader};

use crate::{
    Command, EncodeError, EnvironmentDecoder, ErrorReply, HEADER_LEN, Reply, Request, Variable,
    error::unexpected,
    message::{Frame, FrameError, decode_ok},
};

/// What came of the command. Each connection ends with exactly one of these.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Event {
    /// It was carried out.
    Reply(Reply),
    /// It was not, or nobody knows.
    Failed(Failure),
}

/// Why a command has no result.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Failure {
    /// The connection ended before the answer was complete. With 0 bytes received the runtime may have died of the
    /// request, or ended at this moment.
    Closed {
        /// Bytes of the answer that came.
        received: u64,
    },
    /// What came is no answer of this protocol.
    Protocol(DecodeError),
    /// The runtime refused.
    Refused(ErrorReply),
}

#[derive(Debug)]
enum State {
    /// The reply is not complete.
    Reply(Frame),
    /// The reply said OK, variables are coming in.
    Environment(EnvironmentDecoder, Vec<Variable>),
    /// The reply said OK, what comes now is the session's stream.
    Stream,
    /// There is nothing to expect any more.
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
    state: State,
    event: Option<Event>,
    received: u64,
    surplus: u64,
}

impl Client {
    /// A connection for this request.
    ///
    /// # Errors
    /// A request that must not be sent: among them [`EncodeError::DescriptorMissing`] for a session into user_events.
    pub fn new(request: Request) -> Result<Self, EncodeError> {
        match request {
            Request::CollectUserEvents { .. } => Err(EncodeError::DescriptorMissing),
            request => Self::with_descriptor(request),
        }
    }

    /// A connection for this request, by a caller who has a descriptor of `user_events_data` and sends it when
    /// [`poll_descriptor`](Self::poll_descriptor) asks for it.
    ///
    /// # Errors
    /// A request that must not be sent.
    pub fn with_descriptor(request: Request) -> Result<Self, EncodeError> {
        let transmit = Some(request.to_bytes()?);
        let descriptor = matches!(request, Request::CollectUserEvents { .. });
        Ok(Self {
            request,
            transmit,
            descriptor,
            state: State::Reply(Frame::default()),
            event: None,
            received: 0,
            surplus: 0,
        })
    }

    /// What was asked.
    pub fn request(&self) -> &Request {
        &self.request
    }

    /// Whether the connection has become a session's: its stream is read from here on, this machine takes nothing. (One
    /// into user_events sends nothing more, and lives as long as its connection.)
    pub fn is_stream(&self) -> bool {
        matches!(self.state, State::Stream)
    }

    /// Whether the command is over and the connection can be closed. **Do not wait for the peer to close it**: some
    /// runtimes keep it open after an error.
    pub fn is_done(&self) -> bool {
        matches!(self.state, State::Done)
    }

    /// Bytes of the answer that came so far.
    pub fn received(&self) -> u64 {
        self.received
    }

    /// Bytes that came after a complete answer. A peer that sends any is not a healthy runtime.
    pub fn surplus(&self) -> u64 {
        self.surplus
    }

    /// Takes bytes from the peer and says how many it took: all of them, except what belongs to a session's stream.
    pub fn handle_bytes(&mut self, bytes: &[u8]) -> usize {
        let mut taken = 0;
        while !self.is_stream() && taken < bytes.len() {
            taken += self.advance(bytes.get(taken..).unwrap_or_default());
        }
        taken
    }

    /// The peer will send nothing more.
    pub fn handle_eof(&mut self) {
        match self.state {
            State::Stream => self.state = State::Done,
            State::Done => {}
            State::Reply(_) | State::Environment(..) => {
                self.finish(Event::Failed(Failure::Closed { received: self.received }));
            }
        }
    }

    /// What is to be written, in one write. Gives the request, once.
    pub fn poll_transmit(&mut self) -> Option<Vec<u8>> {
        self.transmit.take()
    }

    /// What is to be written after the request, at once and in a message of its own that carries the descriptor: until
    /// it has come the runtime answers nobody. The byte itself means nothing.
    pub fn poll_descriptor(&mut self) -> Option<[u8; 1]> {
        let due = self.transmit.is_none() && std::mem::take(&mut self.descriptor);
        due.then_some([0])
    }

    /// What came of the command, once.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.event.take()
    }

    /// Takes a piece of non-empty `bytes`; always at least one byte of them.
    fn advance(&mut self, bytes: &[u8]) -> usize {
        let taken = match &mut self.state {
            State::Reply(frame) => match frame.feed(bytes) {
                Ok(taken) => {
                    if let Some((command, payload)) = frame.message() {
                        let outcome = Self::judge(&self.request, command, payload);
                        self.enter(outcome);
                    }
                    taken
                }
                Err(error) => {
                    self.finish(Event::Failed(Failure::Protocol(FrameError::into_inner(error))));
                    bytes.len()
                }
            },
            State::Environment(decoder, variables) => {
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
            State::Stream | State::Done => {
                self.surplus += bytes.len() as u64;
                return bytes.len();
            }
        };
        self.received += taken as u64;
        taken
    }

    /// What a complete reply message means.
    fn judge(request: &Request, command: Command, payload: &[u8]) -> Result<Judgement, DecodeError> {
        match command {
            Command::OK if *request == Request::ProcessEnvironment => {
                let mut r = Reader::at(payload, HEADER_LEN as u64);
                Ok(Judgement::Continues(EnvironmentDecoder::from_reply(&mut r)?))
            }
            Command::OK => Ok(match decode_ok(request, payload)? {
                Ok(reply) => Judgement::Over(Event::Reply(reply)),
                Err(error) => Judgement::Over(Event::Failed(Failure::Refused(error))),
            }),
            Command::ERROR => {
                Ok(Judgement::Over(Event::Failed(Failure::Refused(ErrorReply::decode(payload)?))))
            }
            Command(other) => {
                Err(unexpected(16, "reply command", u32::from(other), "0xff00 (OK) or 0xffff (Error)"))
            }
        }
    }

    fn enter(&mut self, outcome: Result<Judgement, DecodeError>) {
        match outcome {
            Ok(Judgement::Continues(decoder)) => self.state = State::Environment(decoder, Vec::new()),
            Ok(Judgement::Over(event)) => {
                let stream = matches!(event, Event::Reply(Reply::SessionStarted(_)));
                self.finish(event);
                if stream {
                    self.state = State::Stream;
                }
            }
            Err(error) => self.finish(Event::Failed(Failure::Protocol(error))),
        }
    }

    fn finish(&mut self, event: Event) {
        self.event = Some(event);
        self.state = State::Done;
    }
}

enum Judgement {
    /// An environment follows.
    Continues(EnvironmentDecoder),
    /// That was all, but for a stream.
    Over(Event),
}

/// Whether all of them were read.
fn read_variables(
    decoder: &mut EnvironmentDecoder,
    variables: &mut Vec<Variable>,
) -> Result<bool, DecodeError> {
    while let Some(variable) = decoder.poll_variable()? {
        variables.push(variable);
    }
    Ok(decoder.is_done())
}
