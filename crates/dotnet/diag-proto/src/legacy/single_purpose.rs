//! The protocol before the first proposal: event sessions only. A request is two numbers and its fields, without a
//! length; an answer is the session's id, or 0. The stream follows the id if the session streams.
//!
//! ```text
//! u32 request type  u32 pid of the client        then
//! 1024 start, 1026 collect:  u32 buffer MB  str output path  u32 n  n × provider as in CollectTracing
//! 1025 stop:                 u64 session id
//! answer to each:            u64 session id; 0 = error, and the connection is closed
//! ```
//!
//! *Start* writes to a file that the runtime creates, *collect* streams and has a null path. The specification does not
//! describe what follows the two numbers; this is what the clients and runtimes of that time exchanged. A request does
//! not state its length, so a server must parse it to find its end.

use runtap_wire::{DecodeError, DecodeErrorKind, Reader, Writer};

use crate::{
    EncodeError, Provider, SessionId,
    error::unexpected,
    message::{providers, required, string},
};

/// The longest request that is accepted, in bytes.
pub const MAX_REQUEST: usize = 64 << 10;

const START: u32 = 1024;
const STOP: u32 = 1025;
const COLLECT: u32 = 1026;

/// A request from a client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// The **client's** process id.
    pub pid: u32,
    /// The requested operation.
    pub operation: Operation,
}

/// The operation that a client requests.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Operation {
    /// Start a session that writes to a file of the target.
    Start {
        /// The path of the file. Not empty.
        output: String,
        /// What to record.
        config: Config,
    },
    /// Stop a session.
    Stop(SessionId),
    /// Start a session and stream its events.
    Collect(Config),
}

/// The configuration of a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Config {
    /// Size of the runtime's buffer in MB, at least 1.
    pub buffer_mb: u32,
    /// The providers, each once. Event filters cannot be sent.
    pub providers: Vec<Provider>,
}

impl Request {
    /// Returns the complete request.
    ///
    /// # Errors
    /// If a field must not be sent.
    pub fn to_bytes(&self) -> Result<Vec<u8>, EncodeError> {
        let mut w = Writer::new();
        match &self.operation {
            Operation::Start { output, config } => {
                w.u32(START).u32(self.pid);
                config.encode(&mut w, Some(required("output path", output)?))?;
            }
            Operation::Stop(id) => {
                w.u32(STOP).u32(self.pid).u64(id.0);
            }
            Operation::Collect(config) => {
                w.u32(COLLECT).u32(self.pid);
                config.encode(&mut w, None)?;
            }
        }
        if w.len() > MAX_REQUEST {
            return Err(EncodeError::MessageTooLong { size: w.len() });
        }
        Ok(w.into_bytes())
    }

    /// Reads a request from its first byte on. Bytes after the request are not consumed.
    ///
    /// # Errors
    /// The invalid field and its offset; [`DecodeError::is_incomplete`] if more bytes are needed.
    pub fn decode(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let offset = r.offset();
        let kind = r.u32("request type")?;
        let pid = r.u32("client pid")?;
        let operation = match kind {
            START | COLLECT => {
                let (output, config) = Config::decode(r)?;
                match output {
                    Some(output) if kind == START => Operation::Start { output, config },
                    None if kind == START => {
                        let missing = DecodeErrorKind::Invalid("is null or empty");
                        return Err(DecodeError::new(offset + 12, "output path", missing));
                    }
                    // A path has no meaning for a stream.
                    _ => Operation::Collect(config),
                }
            }
            STOP => Operation::Stop(SessionId(r.u64("session id")?)),
            other => return Err(unexpected(offset, "request type", other, "1024, 1025 or 1026")),
        };
        Ok(Self { pid, operation })
    }
}

impl Config {
    fn encode(&self, w: &mut Writer, output: Option<&str>) -> Result<(), EncodeError> {
        if self.buffer_mb == 0 {
            return Err(EncodeError::ZeroBuffer);
        }
        providers::validate(self.providers.iter())?;
        w.u32(self.buffer_mb).utf16_counted(output);
        providers::encode(w, &self.providers, false);
        Ok(())
    }

    fn decode(r: &mut Reader<'_>) -> Result<(Option<String>, Self), DecodeError> {
        let offset = r.offset();
        let buffer_mb = r.u32("circular buffer size")?;
        if buffer_mb == 0 {
            let kind = DecodeErrorKind::TooSmall { value: 0, least: 1 };
            return Err(DecodeError::new(offset, "circular buffer size", kind));
        }
        let output = string(r, "output path")?.filter(|path| !path.is_empty());
        Ok((output, Self { buffer_mb, providers: providers::decode(r, false)? }))
    }
}

/// The client's side of one connection.
#[derive(Debug)]
pub struct Client {
    transmit: Option<Vec<u8>>,
    answer: Vec<u8>,
    event: Option<Answer>,
    done: bool,
}

/// The outcome of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Answer {
    /// The session that was started or stopped. After a collect request the stream follows.
    Session(SessionId),
    /// The runtime rejected the request; the protocol has no reason.
    Refused,
    /// The connection was closed before the answer was complete.
    Closed {
        /// The number of bytes of the answer that were received.
        received: usize,
    },
}

impl Client {
    /// Creates a connection that sends `request`.
    ///
    /// # Errors
    /// If the request must not be sent.
    pub fn new(request: &Request) -> Result<Self, EncodeError> {
        Ok(Self { transmit: Some(request.to_bytes()?), answer: Vec::new(), event: None, done: false })
    }

    /// Consumes bytes from the runtime and returns how many belonged to the answer. The rest is the stream.
    pub fn handle_bytes(&mut self, bytes: &[u8]) -> usize {
        if self.done {
            return 0;
        }
        let taken = bytes.len().min(8 - self.answer.len());
        self.answer.extend_from_slice(bytes.get(..taken).unwrap_or_default());
        if let Ok(id) = Reader::new(&self.answer).u64("session id") {
            self.finish(if id == 0 { Answer::Refused } else { Answer::Session(SessionId(id)) });
        }
        taken
    }

    /// Handles the end of the runtime's data.
    pub fn handle_eof(&mut self) {
        if !self.done {
            self.finish(Answer::Closed { received: self.answer.len() });
        }
    }

    /// Returns the bytes to write.
    pub fn poll_transmit(&mut self) -> Option<Vec<u8>> {
        self.transmit.take()
    }

    /// Returns the outcome, once.
    pub fn poll_event(&mut self) -> Option<Answer> {
        self.event.take()
    }

    fn finish(&mut self, answer: Answer) {
        self.event = Some(answer);
        self.done = true;
    }
}

/// The runtime's side of one connection.
#[derive(Debug, Default)]
pub struct Server {
    received: Vec<u8>,
    /// The least number of bytes that a complete request needs.
    wanted: usize,
    heard: bool,
    may_answer: bool,
    transmit: Option<[u8; 8]>,
    event: Option<Event>,
}

/// The outcome of reading the request. Each connection yields exactly one event.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Event {
    /// A request to answer with [`Server::accept`] or [`Server::refuse`].
    Request(Request),
    /// An invalid request; the rejection is ready to be written. Close the connection after that.
    Refused(DecodeError),
}

impl Server {
    /// Creates a connection on which nothing was received.
    pub fn new() -> Self {
        Self::default()
    }

    /// Handles bytes from the client. Bytes after the request are ignored.
    pub fn handle_bytes(&mut self, bytes: &[u8]) {
        if self.heard {
            return;
        }
        let room = MAX_REQUEST - self.received.len();
        self.received.extend_from_slice(bytes.get(..room).unwrap_or(bytes));
        // Do not parse again for every byte of a request that arrives in small pieces.
        if self.received.len() < self.wanted {
            return;
        }
        match Request::decode(&mut Reader::new(&self.received)) {
            Ok(request) => {
                (self.heard, self.may_answer) = (true, true);
                self.event = Some(Event::Request(request));
            }
            Err(DecodeError { offset, field, kind: DecodeErrorKind::UnexpectedEnd { needed, .. } }) => {
                let wanted = offset.saturating_add(needed);
                let limit = MAX_REQUEST as u64;
                if wanted > limit {
                    let kind = DecodeErrorKind::TooLarge { value: wanted, limit };
                    return self.reject(DecodeError::new(offset, field, kind));
                }
                self.wanted = usize::try_from(wanted).unwrap_or(MAX_REQUEST);
            }
            Err(error) => self.reject(error),
        }
    }

    /// Handles the end of the client's data.
    pub fn handle_eof(&mut self) {
        if !self.heard {
            let kind = DecodeErrorKind::Invalid("ends in the middle");
            self.reject(DecodeError::new(self.received.len() as u64, "request", kind));
        }
    }

    /// Answers with the session's id. If the client requested a stream, the caller writes it after this answer.
    ///
    /// # Errors
    /// [`EncodeError::NothingToAnswer`] if no request is pending. An id of 0 rejects the request.
    pub fn accept(&mut self, id: SessionId) -> Result<(), EncodeError> {
        if !std::mem::take(&mut self.may_answer) {
            return Err(EncodeError::NothingToAnswer);
        }
        self.transmit = Some(id.0.to_le_bytes());
        Ok(())
    }

    /// Rejects the request. Close the connection after the answer was written.
    ///
    /// # Errors
    /// As for [`accept`](Self::accept).
    pub fn refuse(&mut self) -> Result<(), EncodeError> {
        self.accept(SessionId(0))
    }

    /// Returns the bytes to write.
    pub fn poll_transmit(&mut self) -> Option<[u8; 8]> {
        self.transmit.take()
    }

    /// Returns the outcome, once.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.event.take()
    }

    fn reject(&mut self, error: DecodeError) {
        self.heard = true;
        self.transmit = Some([0; 8]);
        self.event = Some(Event::Refused(error));
    }
}

#[cfg(test)]
#[path = "single_purpose_tests.rs"]
mod tests;
