//! Replay of the application's side of a recording to any server: sends its requests in order, on the same number of
//! connections, each after the reply to the previous one.
//!
//! Only the `ExecutionId` is replaced, if the server has passed one in its variable. All other ids, process ids and paths are the
//! recorded ones; existing files outside the working directory are not named (`artifacts`). Commands on the control pipe are
//! ignored; Ctrl-C and signals end the replay.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, ErrorKind, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use runtap_mtp_proto::server::{Mode, Pipe};
use runtap_mtp_proto::{
    DecodeError, Frame as Wire, Handshake, HandshakeKey, Limits, Message, MessageId, SessionEvent,
};
use runtap_transcript::{Direction, Entry, Header, Located, Protocol as _};
use thiserror::Error;

use runtap_transport::LocalStream;

use super::artifacts::ArtifactFilter;
use super::protocol::{TestPipe, missing_open, mode_of, pipe_of};
use super::tap::socket_path;

/// The time-out for connecting to a server, which may start an application before its socket exists.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(30);
/// The time-out for a reply.
const REPLY_TIMEOUT: Duration = Duration::from_mins(2);
/// The exit code of a host whose handshake was rejected.
const INCOMPATIBLE_EXIT_CODE: i32 = 12;

/// An error that ends a replay.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ReplayError {
    /// The server does not listen.
    #[error("can't connect to {}: {source}", path.display())]
    Connect {
        /// The socket.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The server has closed the connection, or does not reply.
    #[error("line {line}: {what} could not be sent to the server, or got no reply: {source}")]
    Lost {
        /// The line of the recording.
        line: u64,
        /// The request that was sent.
        what: String,
        /// The system's error.
        source: io::Error,
    },
    /// The reply is not a frame, or not of the expected type.
    #[error("line {line}: the reply to {what} {problem}")]
    Reply {
        /// The line of the recording.
        line: u64,
        /// The request.
        what: String,
        /// The problem.
        problem: String,
    },
    /// The recording has no messages of an application.
    #[error("the recording has no message of an application")]
    Nothing,
    /// The recording exceeds the maximum size.
    #[error("line {line}: the recording has more than {MAX_HELD} bytes, too many to be replayed")]
    TooLarge {
        /// The line that exceeds the limit.
        line: u64,
    },
}

/// The maximum size of a recording, whose lines are held in memory.
const MAX_HELD: u64 = 1 << 30;

/// The result of a replay.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Played {
    /// The number of connections.
    pub connections: u64,
    /// The number of requests sent.
    pub requests: u64,
    /// The number of control connections left out because the server has no control pipe.
    pub left_out: u64,
    /// The number of existing files that were not named because they are outside the working directory.
    pub foreign_files: u64,
    /// The exit code of the replay: the recorded one, 128 plus the number of a signal, or 12 if the server rejected the
    /// handshake; `None` if none is recorded.
    pub code: Option<i32>,
}

#[derive(Debug)]
struct Step {
    line: u64,
    t: f64,
    conn: String,
    action: StepAction,
}

#[derive(Debug)]
enum StepAction {
    Open(Pipe),
    Send(Vec<u8>),
    Close,
}

/// A recording to replay.
#[derive(Debug, Default)]
pub struct Replay {
    header: Header,
    steps: Vec<Step>,
    /// The approximate size of the steps in bytes.
    held: u64,
    /// The names of connections that have an opening step.
    opened: BTreeSet<String>,
    code: Option<i32>,
    execution_id: Option<String>,
    allows_all_files: bool,
}

/// A connection to the server.
struct ServerConnection {
    stream: LocalStream,
    pipe: Pipe,
    received: Vec<u8>,
    /// An incomplete message to send.
    waiting: Vec<u8>,
    /// The request that waits for a reply, with its line.
    pending: Option<(u64, MessageId)>,
    is_rejected: bool,
}

impl Replay {
    /// Creates an empty replay.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets whether to name all files of the recording. By default, existing files outside the working directory are left out,
    /// because recordings are not trusted and a server may copy the files.
    #[must_use]
    pub fn allow_all_files(self, allows: bool) -> Self {
        Self { allows_all_files: allows, ..self }
    }

    /// Adds the next line of the recording.
    ///
    /// # Errors
    /// Fails if the recording exceeds the maximum size.
    pub fn take(&mut self, Located { line, bytes, entry }: Located) -> Result<(), ReplayError> {
        // A frame has half as many bytes as its line, but every step takes memory.
        self.held = self.held.saturating_add((size_of::<Step>() + bytes) as u64);
        if self.held > MAX_HELD {
            return Err(ReplayError::TooLarge { line });
        }
        let step = |t, conn, action| Step { line, t, conn, action };
        match entry {
            Entry::Header(header) => self.header = header,
            Entry::Open(open) => {
                let pipe = pipe_of(&open);
                self.opened.insert(open.conn.clone());
                self.steps.push(step(open.t, open.conn, StepAction::Open(pipe)));
            }
            Entry::Frame(frame) if frame.dir == TestPipe::name(Direction::FromClient) => {
                let bytes = frame.hex.unwrap_or_default();
                if self.opened.insert(frame.conn.clone()) {
                    let pipe = pipe_of(&missing_open(&frame.conn, id_of(&bytes)));
                    self.steps.push(step(frame.t, frame.conn.clone(), StepAction::Open(pipe)));
                }
                if let (None, Some(Message::Handshake(handshake))) = (&self.execution_id, decoded(&bytes)) {
                    self.execution_id = handshake.execution_id().map(str::to_owned);
                }
                self.steps.push(step(frame.t, frame.conn, StepAction::Send(bytes)));
            }
            Entry::Close(close) => self.steps.push(step(close.t, close.conn, StepAction::Close)),
            Entry::Exit(exit) => {
                // Convert negative signal numbers to exit codes as shells do.
                self.code = exit.code.and_then(|code| i32::try_from(code).ok());
                self.code = self
                    .code
                    .map(|code| if code < 0 { code.saturating_neg().saturating_add(128) } else { code });
            }
            _ => {}
        }
        Ok(())
    }

    /// Returns the mode in which the application was started.
    pub fn mode(&self) -> Mode {
        mode_of(self.header.cmd.iter().flatten().map(String::as_str))
    }

    /// Returns the mode that these arguments request.
    pub fn asked<'a>(arguments: impl IntoIterator<Item = &'a str>) -> Mode {
        mode_of(arguments)
    }

    /// Plays the recording to the server. `execution_id` is the id that the server has passed. `is_fast` leaves out recorded
    /// pauses.
    ///
    /// # Errors
    /// Fails if the server does not listen, closes a connection, or sends unexpected replies.
    pub fn play(
        mut self,
        server: &Path,
        execution_id: Option<&str>,
        is_fast: bool,
    ) -> Result<Played, ReplayError> {
        if !self.steps.iter().any(|step| matches!(step.action, StepAction::Send(_))) && self.code.is_none() {
            return Err(ReplayError::Nothing);
        }
        let mut player = Player {
            server,
            control: None,
            links: BTreeMap::new(),
            ids: self.execution_id.take().zip(execution_id.map(str::to_owned)),
            filter: ArtifactFilter::new(self.allows_all_files),
            played: Played::default(),
        };
        let started = Instant::now();
        let mut is_rejected = false;
        for step in self.steps {
            if !is_fast {
                let due = Duration::try_from_secs_f64(step.t).unwrap_or_default();
                thread::sleep(due.saturating_sub(started.elapsed()));
            }
            is_rejected |= player.step(step)?;
        }
        player.finish()?;
        is_rejected |= player.links.values().any(|link| link.is_rejected);
        let code = if is_rejected { Some(INCOMPATIBLE_EXIT_CODE) } else { self.code };
        Ok(Played { code, foreign_files: player.filter.left_out, ..player.played })
    }
}

struct Player<'a> {
    server: &'a Path,
    /// The control pipe that the server has named.
    control: Option<PathBuf>,
    links: BTreeMap<String, ServerConnection>,
    /// The recorded `ExecutionId` and its replacement.
    ids: Option<(String, String)>,
    filter: ArtifactFilter,
    played: Played,
}

impl Player<'_> {
    /// Plays a step. Returns whether the server has rejected a connection that this step closes.
    fn step(&mut self, Step { line, conn, action, .. }: Step) -> Result<bool, ReplayError> {
        match action {
            StepAction::Open(Pipe::Data) => {
                let stream = connect(self.server)?;
                self.add_connection(conn, stream, Pipe::Data);
            }
            StepAction::Open(Pipe::Control) => match self.control.clone() {
                Some(path) => {
                    let stream = connect(&path)?;
                    self.add_connection(conn, stream, Pipe::Control);
                }
                None => self.played.left_out += 1,
            },
            StepAction::Send(bytes) => {
                let ids = self.ids.as_ref();
                let Some(link) = self.links.get_mut(&conn) else { return Ok(false) };
                if let Some(reply) = link.settle()? {
                    self.control = control_of(&reply).or_else(|| self.control.take());
                }
                if link.is_rejected {
                    return Ok(false);
                }
                link.waiting.extend(with_execution_id(bytes, ids));
                let ready = self.filter.take(&mut link.waiting);
                link.send(line, &ready)?;
                self.played.requests += 1;
                // The next step may connect to the pipe that the reply names.
                if link.pipe == Pipe::Data
                    && let Some(reply) = link.settle()?
                {
                    self.control = control_of(&reply).or_else(|| self.control.take());
                }
            }
            StepAction::Close => {
                if let Some(mut link) = self.links.remove(&conn) {
                    link.settle()?;
                    link.send_rest(line)?;
                    return Ok(link.is_rejected);
                }
            }
        }
        Ok(false)
    }

    fn add_connection(&mut self, conn: String, stream: LocalStream, pipe: Pipe) {
        self.played.connections += 1;
        let (received, waiting) = (Vec::new(), Vec::new());
        let link = ServerConnection { stream, pipe, received, waiting, pending: None, is_rejected: false };
        self.links.insert(conn, link);
    }

    /// Waits for replies on the connections that were open when the recording ended.
    fn finish(&mut self) -> Result<(), ReplayError> {
        self.links.values_mut().try_for_each(|link| link.settle().map(drop))
    }
}

impl ServerConnection {
    fn send(&mut self, line: u64, bytes: &[u8]) -> Result<(), ReplayError> {
        let id = id_of(bytes);
        let lost = |source| ReplayError::Lost { line, what: describe_id(id), source };
        self.stream.write_all(bytes).map_err(lost)?;
        self.pending = id.map(|id| (line, id));
        Ok(())
    }

    /// Sends the incomplete message at the end of a connection.
    fn send_rest(&mut self, line: u64) -> Result<(), ReplayError> {
        let rest = std::mem::take(&mut self.waiting);
        if self.is_rejected { Ok(()) } else { self.send(line, &rest) }
    }

    /// Waits for a pending reply and returns it if it is a handshake. The control pipe has no replies.
    fn settle(&mut self) -> Result<Option<Handshake>, ReplayError> {
        let Some((line, id)) = self.pending.filter(|_| self.pipe == Pipe::Data) else { return Ok(None) };
        self.pending = None;
        let problem = |problem: String| ReplayError::Reply { line, what: id.to_string(), problem };
        let lost = |source| ReplayError::Lost { line, what: id.to_string(), source };
        let mut buffer = [0; 4096];
        self.stream.set_read_timeout(Some(REPLY_TIMEOUT)).map_err(lost)?;
        loop {
            let reply = match Wire::parse(&self.received, Limits::default()) {
                Ok((wire, size)) => {
                    let expected = if id == MessageId::HANDSHAKE { id } else { MessageId::VOID };
                    if wire.id != expected {
                        return Err(problem(format!("is {}", wire.id)));
                    }
                    let unreadable = |error: DecodeError| problem(format!("can't be read: {error}"));
                    Some((Message::decode(&wire, Limits::default()).map_err(unreadable)?, size))
                }
                Err(error) if error.is_incomplete() => None,
                Err(error) => return Err(problem(format!("can't be read: {error}"))),
            };
            if let Some((message, size)) = reply {
                self.received.drain(..size);
                let Message::Handshake(handshake) = message else { return Ok(None) };
                self.is_rejected = handshake.chosen_version().is_none();
                return Ok(Some(handshake));
            }
            match self.stream.read(&mut buffer) {
                Ok(0) => return Err(lost(io::Error::from(ErrorKind::UnexpectedEof))),
                Ok(count) => self.received.extend_from_slice(buffer.get(..count).unwrap_or_default()),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    return Err(lost(io::Error::from(ErrorKind::TimedOut)));
                }
                Err(error) => return Err(lost(error)),
            }
        }
    }
}

fn id_of(bytes: &[u8]) -> Option<MessageId> {
    Wire::parse(bytes, Limits::default()).ok().map(|(wire, _)| wire.id)
}

fn describe_id(id: Option<MessageId>) -> String {
    id.map_or_else(|| "bytes that are not a message".to_owned(), |id| id.to_string())
}

fn connect(path: &Path) -> Result<LocalStream, ReplayError> {
    let since = Instant::now();
    loop {
        match LocalStream::connect(path) {
            Ok(stream) => return Ok(stream),
            Err(error) if error.kind() == ErrorKind::NotFound && since.elapsed() < CONNECT_TIMEOUT => {
                thread::sleep(Duration::from_millis(5));
            }
            Err(source) => return Err(ReplayError::Connect { path: path.to_owned(), source }),
        }
    }
}

fn control_of(reply: &Handshake) -> Option<PathBuf> {
    reply.server_control_pipe().map(|name| socket_path(name.as_ref()))
}

fn decoded(bytes: &[u8]) -> Option<Message> {
    let (wire, size) = Wire::parse(bytes, Limits::default()).ok()?;
    // Bytes after the frame would be lost when writing it again.
    let is_alone = size == bytes.len();
    Message::decode(&wire, Limits::default()).ok().filter(|_| is_alone)
}

/// Returns the frame with the given `ExecutionId` in place of the recorded one. A message with no or another id, or one that
/// cannot be encoded exactly, is unchanged.
fn with_execution_id(bytes: Vec<u8>, ids: Option<&(String, String)>) -> Vec<u8> {
    let Some((recorded, replacement)) = ids.filter(|(recorded, replacement)| recorded != replacement) else {
        return bytes;
    };
    let Some(mut message) = decoded(&bytes) else { return bytes };
    let is_faithful = message.to_frame().is_ok_and(|same| same == bytes);
    let id = match &mut message {
        Message::Handshake(handshake) => {
            if handshake.execution_id() == Some(recorded) {
                handshake.set(HandshakeKey::EXECUTION_ID, replacement.as_str());
            }
            None
        }
        Message::DiscoveredTests(message) => Some(&mut message.execution_id),
        Message::TestResults(message) => Some(&mut message.execution_id),
        Message::FileArtifacts(message) => Some(&mut message.execution_id),
        Message::SessionEvent(SessionEvent { execution_id, .. }) => Some(execution_id),
        Message::TestsInProgress(message) => Some(&mut message.execution_id),
        Message::AzureDevOpsLog(message) => Some(&mut message.execution_id),
        Message::Display(message) => Some(&mut message.execution_id),
        _ => None,
    };
    if let Some(id) = id.filter(|id| id.as_ref() == Some(recorded)) {
        *id = Some(replacement.clone());
    }
    match message.to_frame() {
        Ok(frame) if is_faithful => frame,
        _ => bytes,
    }
}
