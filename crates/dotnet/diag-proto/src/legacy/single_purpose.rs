//! The protocol before the first proposal: event sessions and nothing else. A request is two numbers and its fields,
//! without a length; an answer is the session's id, or 0, and for a session that streams, the stream.
//!
//! ```text
//! u32 request type  u32 pid of the client        then
//! 1024 start, 1026 collect:  u32 buffer MB  str output path  u32 n  n × provider as in CollectTracing
//! 1025 stop:                 u64 session id
//! answer to each:            u64 session id; 0 = error, and the connection is closed
//! ```
//!
//! *Start* writes to a file that the runtime makes, *collect* streams; the path is null there. What follows the two
//! numbers is not in the specification; it is what the clients and runtimes of that time exchanged. Since nothing says
//! how long a request is, a server has to understand it to know its end.

use runtap_wire::{DecodeError, DecodeErrorKind, Reader, Writer};

use crate::{
    EncodeError, Provider, SessionId,
    error::unexpected,
    message::{providers, required, string},
};

/// The longest request that is taken, in bytes.
pub const MAX_REQUEST: usize = 64 << 10;

const START: u32 = 1024;
const STOP: u32 = 1025;
const COLLECT: u32 = 1026;

/// What a client asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// The **client's** process id.
    pub pid: u32,
    /// What for.
    pub what: What,
}

/// What is asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum What {
    /// Record into a file of the target.
    Start {
        /// The file. Not empty.
        output: String,
        /// What is recorded.
        config: Config,
    },
    /// End a session.
    Stop(SessionId),
    /// Record, and send the stream.
    Collect(Config),
}

/// A session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Config {
    /// Size of the runtime's buffer in MB, at least 1.
    pub buffer_mb: u32,
    /// The sources, each once. Event filters can't be sent.
    pub providers: Vec<Provider>,
}

impl Request {
    /// The whole request.
    ///
    /// # Errors
    /// The field that is not fit to be sent.
    pub fn to_bytes(&self) -> Result<Vec<u8>, EncodeError> {
        let mut w = Writer::new();
        match &self.what {
            What::Start { output, config } => {
                w.u32(START).u32(self.pid);
                config.encode(&mut w, Some(required("output path", output)?))?;
            }
            What::Stop(id) => {
                w.u32(STOP).u32(self.pid).u64(id.0);
            }
            What::Collect(config) => {
                w.u32(COLLECT).u32(self.pid);
                config.encode(&mut w, None)?;
            }
        }
        if w.len() > MAX_REQUEST {
            return Err(EncodeError::MessageTooLong { size: w.len() });
        }
        Ok(w.into_bytes())
    }

    /// Reads a request from its first byte on. What follows it is left to the reader.
    ///
    /// # Errors
    /// Where and what; [`DecodeError::is_incomplete`] if more bytes could help.
    pub fn decode(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let offset = r.offset();
        let kind = r.u32("request type")?;
        let pid = r.u32("client pid")?;
        let what = match kind {
            START | COLLECT => {
                let (output, config) = Config::decode(r)?;
                match output {
                    Some(output) if kind == START => What::Start { output, config },
                    None if kind == START => {
                        let missing = DecodeErrorKind::Invalid("is null or empty");
                        return Err(DecodeError::new(offset + 12, "output path", missing));
                    }
                    // A path has no meaning for a stream.
                    _ => What::Collect(config),
                }
            }
            STOP => What::Stop(SessionId(r.u64("session id")?)),
            other => return Err(unexpected(offset, "request type", other, "1024, 1025 or 1026")),
        };
        Ok(Self { pid, what })
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

/// What came of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Answer {
    /// The session that runs, or has ended. After a collect the stream follows.
    Session(SessionId),
    /// The runtime could not do it. It does not say why.
    Refused,
    /// The connection ended before the answer was complete.
    Closed {
        /// Bytes of it that came.
        received: usize,
    },
}

impl Client {
    /// A connection for this request.
    ///
    /// # Errors
    /// A request that is not fit to be sent.
    pub fn new(request: &Request) -> Result<Self, EncodeError> {
        Ok(Self { transmit: Some(request.to_bytes()?), answer: Vec::new(), event: None, done: false })
    }

    /// Takes bytes from the runtime and says how many belonged to the answer. What is left is the stream.
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

    /// The runtime will send nothing more.
    pub fn handle_eof(&mut self) {
        if !self.done {
            self.finish(Answer::Closed { received: self.answer.len() });
        }
    }

    /// What is to be written.
    pub fn poll_transmit(&mut self) -> Option<Vec<u8>> {
        self.transmit.take()
    }

    /// What came, once.
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
    /// Bytes without which the request can't be complete.
    wanted: usize,
    heard: bool,
    may_answer: bool,
    transmit: Option<[u8; 8]>,
    event: Option<Event>,
}

/// What came in. Each connection brings exactly one of these.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Event {
    /// A request that wants an answer: [`Server::accept`] or [`Server::refuse`].
    Request(Request),
    /// None; it is refused already. Close when that is written.
    Refused(DecodeError),
}

impl Server {
    /// A connection on which nothing came yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes bytes from the client. What comes after the request is ignored.
    pub fn handle_bytes(&mut self, bytes: &[u8]) {
        if self.heard {
            return;
        }
        let room = MAX_REQUEST - self.received.len();
        self.received.extend_from_slice(bytes.get(..room).unwrap_or(bytes));
        // A request that comes byte by byte is not read as often.
        if self.received.len() < self.wanted {
            return;
        }
        match Request::decode(&mut Reader::new(&self.received)) {
            Ok(request) => {
                (self.heard, self.may_answer) = (true, true);
                self.event = Some(Event::Request(request));
            }
            Err(DecodeError { offset, what, kind: DecodeErrorKind::UnexpectedEnd { needed, .. } }) => {
                let wanted = offset.saturating_add(needed);
                let limit = MAX_REQUEST as u64;
                if wanted > limit {
                    let kind = DecodeErrorKind::TooLarge { value: wanted, limit };
                    return self.reject(DecodeError::new(offset, what, kind));
                }
                self.wanted = usize::try_from(wanted).unwrap_or(MAX_REQUEST);
            }
            Err(error) => self.reject(error),
        }
    }

    /// The client will send nothing more.
    pub fn handle_eof(&mut self) {
        if !self.heard {
            let kind = DecodeErrorKind::Invalid("ends in the middle");
            self.reject(DecodeError::new(self.received.len() as u64, "request", kind));
        }
    }

    /// Answers with the session. Its stream, if the client wants one, is written after this by the caller.
    ///
    /// # Errors
    /// [`EncodeError::NothingToAnswer`]: there is no request, or it was answered. An id of 0 is a refusal.
    pub fn accept(&mut self, id: SessionId) -> Result<(), EncodeError> {
        if !std::mem::take(&mut self.may_answer) {
            return Err(EncodeError::NothingToAnswer);
        }
        self.transmit = Some(id.0.to_le_bytes());
        Ok(())
    }

    /// Answers that it can't be done. Close when that is written.
    ///
    /// # Errors
    /// As [`accept`](Self::accept).
    pub fn refuse(&mut self) -> Result<(), EncodeError> {
        self.accept(SessionId(0))
    }

    /// What is to be written.
    pub fn poll_transmit(&mut self) -> Option<[u8; 8]> {
        self.transmit.take()
    }

    /// What came, once.
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
