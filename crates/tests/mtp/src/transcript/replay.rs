//! The application's part of a recording, played to any server: its requests frame by frame, on as many connections, in
//! their order; each waits for the reply to the one before it.
//!
//! Patched is what must be: the ExecutionId, where the server has given one by its variable. All other ids, process ids and
//! paths are the recorded ones; files of this machine outside the folder where it is played are not named (`artifacts`). What
//! a server says on the control pipe is heard and not obeyed; Ctrl-C and signals end us.

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

use super::artifacts::Guard;
use super::protocol::{TestPipe, implied, mode_of, pipe_of};
use super::tap::socket_path;

/// A server starts an application before its socket is there.
const PATIENCE: Duration = Duration::from_secs(30);
/// A server that has said nothing for so long is not going to.
const SILENCE: Duration = Duration::from_mins(2);
/// What a host exits with when its handshake was rejected.
const INCOMPATIBLE: i32 = 12;

/// What keeps a recording from being played to its end.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ReplayError {
    /// Nobody listens.
    #[error("can't connect to {}: {source}", path.display())]
    Connect {
        /// The socket.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The server has gone, or says nothing.
    #[error("line {line}: the server does not take {what}: {source}")]
    Lost {
        /// The line of the recording.
        line: u64,
        /// What was sent.
        what: String,
        /// What the system said.
        source: io::Error,
    },
    /// The reply is no frame, or not of the kind that the request has.
    #[error("line {line}: the reply to {what} {problem}")]
    Reply {
        /// The line of the recording.
        line: u64,
        /// The request.
        what: String,
        /// What is wrong.
        problem: String,
    },
    /// The recording has no application's part.
    #[error("the recording has no message of an application")]
    Nothing,
    /// It has more than is held.
    #[error("line {line}: the recording has more than {MOST_HELD} bytes, too many to be played")]
    TooLarge {
        /// At which it was too much.
        line: u64,
    },
}

/// All lines of a recording that is played, which are held until then.
const MOST_HELD: u64 = 1 << 30;

/// What was played.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Played {
    /// Connections that were made.
    pub connections: u64,
    /// Requests that were sent.
    pub requests: u64,
    /// Control connections that the server had no pipe for.
    pub left_out: u64,
    /// Files of this machine that were not named, because they are not below the working directory.
    pub foreign_files: u64,
    /// The exit code to end with: the recorded one, 128 more than the number for a signal, 12 where the server has
    /// rejected the handshake; `None` if none is recorded.
    pub code: Option<i32>,
}

#[derive(Debug)]
struct Step {
    line: u64,
    t: f64,
    conn: String,
    what: What,
}

#[derive(Debug)]
enum What {
    Open(Pipe),
    Send(Vec<u8>),
    Close,
}

/// A recording that can be played.
#[derive(Debug, Default)]
pub struct Replay {
    header: Header,
    steps: Vec<Step>,
    /// About how many bytes they take.
    held: u64,
    /// Connections that a step opens.
    opened: BTreeSet<String>,
    code: Option<i32>,
    execution_id: Option<String>,
    allows_all_files: bool,
}

/// A connection to the server.
struct Link {
    stream: LocalStream,
    pipe: Pipe,
    received: Vec<u8>,
    /// The beginning of a message.
    waiting: Vec<u8>,
    /// The request without a reply, and the line of it.
    pending: Option<(u64, MessageId)>,
    is_rejected: bool,
}

impl Replay {
    /// One without lines.
    pub fn new() -> Self {
        Self::default()
    }

    /// Names all files that the recording names. Without it, those of this machine that are not below the working directory are
    /// left out: recordings are not trusted, and a server may copy the files.
    #[must_use]
    pub fn allow_all_files(self, allows: bool) -> Self {
        Self { allows_all_files: allows, ..self }
    }

    /// Takes the next line of the recording.
    ///
    /// # Errors
    /// More than is held was taken.
    pub fn take(&mut self, Located { line, bytes, entry }: Located) -> Result<(), ReplayError> {
        // A frame has half as many bytes as its line; a short line is a step all the same.
        self.held = self.held.saturating_add((size_of::<Step>() + bytes) as u64);
        if self.held > MOST_HELD {
            return Err(ReplayError::TooLarge { line });
        }
        let step = |t, conn, what| Step { line, t, conn, what };
        match entry {
            Entry::Header(header) => self.header = header,
            Entry::Open(open) => {
                let pipe = pipe_of(&open);
                self.opened.insert(open.conn.clone());
                self.steps.push(step(open.t, open.conn, What::Open(pipe)));
            }
            Entry::Frame(frame) if frame.dir == TestPipe::name(Direction::FromClient) => {
                let bytes = frame.hex.unwrap_or_default();
                if self.opened.insert(frame.conn.clone()) {
                    let pipe = pipe_of(&implied(&frame.conn, id_of(&bytes)));
                    self.steps.push(step(frame.t, frame.conn.clone(), What::Open(pipe)));
                }
                if let (None, Some(Message::Handshake(handshake))) = (&self.execution_id, decoded(&bytes)) {
                    self.execution_id = handshake.execution_id().map(str::to_owned);
                }
                self.steps.push(step(frame.t, frame.conn, What::Send(bytes)));
            }
            Entry::Close(close) => self.steps.push(step(close.t, close.conn, What::Close)),
            Entry::Exit(exit) => {
                // The shell's way for signals, which are negative here.
                self.code = exit.code.and_then(|code| i32::try_from(code).ok());
                self.code = self
                    .code
                    .map(|code| if code < 0 { code.saturating_neg().saturating_add(128) } else { code });
            }
            _ => {}
        }
        Ok(())
    }

    /// What the application was started for.
    pub fn mode(&self) -> Mode {
        mode_of(self.header.cmd.iter().flatten().map(String::as_str))
    }

    /// What these arguments ask an application for.
    pub fn asked<'a>(arguments: impl IntoIterator<Item = &'a str>) -> Mode {
        mode_of(arguments)
    }

    /// Plays it to the server. `execution_id` is the one that the server has given. With `is_fast` the recorded pauses are
    /// left out.
    ///
    /// # Errors
    /// The server is not there, has gone, or does not answer as servers do.
    pub fn play(
        mut self,
        server: &Path,
        execution_id: Option<&str>,
        is_fast: bool,
    ) -> Result<Played, ReplayError> {
        if !self.steps.iter().any(|step| matches!(step.what, What::Send(_))) && self.code.is_none() {
            return Err(ReplayError::Nothing);
        }
        let mut player = Player {
            server,
            control: None,
            links: BTreeMap::new(),
            ids: self.execution_id.take().zip(execution_id.map(str::to_owned)),
            guard: Guard::new(self.allows_all_files),
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
        let code = if is_rejected { Some(INCOMPATIBLE) } else { self.code };
        Ok(Played { code, foreign_files: player.guard.left_out, ..player.played })
    }
}

struct Player<'a> {
    server: &'a Path,
    /// The control pipe that the server has named.
    control: Option<PathBuf>,
    links: BTreeMap<String, Link>,
    /// The recorded ExecutionId and the one in its place.
    ids: Option<(String, String)>,
    guard: Guard,
    played: Played,
}

impl Player<'_> {
    /// Plays a step. Gives whether the server has rejected a connection that ends with it.
    fn step(&mut self, Step { line, conn, what, .. }: Step) -> Result<bool, ReplayError> {
        match what {
            What::Open(Pipe::Data) => {
                let stream = connect(self.server)?;
                self.opened(conn, stream, Pipe::Data);
            }
            What::Open(Pipe::Control) => match self.control.clone() {
                Some(path) => {
                    let stream = connect(&path)?;
                    self.opened(conn, stream, Pipe::Control);
                }
                None => self.played.left_out += 1,
            },
            What::Send(bytes) => {
                let ids = self.ids.as_ref();
                let Some(link) = self.links.get_mut(&conn) else { return Ok(false) };
                if let Some(reply) = link.settle()? {
                    self.control = control_of(&reply).or_else(|| self.control.take());
                }
                if link.is_rejected {
                    return Ok(false);
                }
                link.waiting.extend(patched(bytes, ids));
                let ready = self.guard.take(&mut link.waiting);
                link.send(line, &ready)?;
                self.played.requests += 1;
                // What comes next may be a connection to the pipe that the reply names.
                if link.pipe == Pipe::Data
                    && let Some(reply) = link.settle()?
                {
                    self.control = control_of(&reply).or_else(|| self.control.take());
                }
            }
            What::Close => {
                if let Some(mut link) = self.links.remove(&conn) {
                    link.settle()?;
                    link.send_rest(line)?;
                    return Ok(link.is_rejected);
                }
            }
        }
        Ok(false)
    }

    fn opened(&mut self, conn: String, stream: LocalStream, pipe: Pipe) {
        self.played.connections += 1;
        let (received, waiting) = (Vec::new(), Vec::new());
        let link = Link { stream, pipe, received, waiting, pending: None, is_rejected: false };
        self.links.insert(conn, link);
    }

    /// Connections that were not closed when the recording ended.
    fn finish(&mut self) -> Result<(), ReplayError> {
        self.links.values_mut().try_for_each(|link| link.settle().map(drop))
    }
}

impl Link {
    fn send(&mut self, line: u64, bytes: &[u8]) -> Result<(), ReplayError> {
        let id = id_of(bytes);
        let lost = |source| ReplayError::Lost { line, what: shown(id), source };
        self.stream.write_all(bytes).map_err(lost)?;
        self.pending = id.map(|id| (line, id));
        Ok(())
    }

    /// The beginning of a message whose rest never comes.
    fn send_rest(&mut self, line: u64) -> Result<(), ReplayError> {
        let rest = std::mem::take(&mut self.waiting);
        if self.is_rejected { Ok(()) } else { self.send(line, &rest) }
    }

    /// Waits for the reply that is due, if one is. On the control pipe none ever is.
    fn settle(&mut self) -> Result<Option<Handshake>, ReplayError> {
        let Some((line, id)) = self.pending.filter(|_| self.pipe == Pipe::Data) else { return Ok(None) };
        self.pending = None;
        let problem = |problem: String| ReplayError::Reply { line, what: id.to_string(), problem };
        let lost = |source| ReplayError::Lost { line, what: id.to_string(), source };
        let mut buffer = [0; 4096];
        self.stream.set_read_timeout(Some(SILENCE)).map_err(lost)?;
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

fn shown(id: Option<MessageId>) -> String {
    id.map_or_else(|| "bytes that are no message".to_owned(), |id| id.to_string())
}

fn connect(path: &Path) -> Result<LocalStream, ReplayError> {
    let since = Instant::now();
    loop {
        match LocalStream::connect(path) {
            Ok(stream) => return Ok(stream),
            Err(error) if error.kind() == ErrorKind::NotFound && since.elapsed() < PATIENCE => {
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
    // What follows the frame would be lost if it was written again.
    let is_alone = size == bytes.len();
    Message::decode(&wire, Limits::default()).ok().filter(|_| is_alone)
}

/// The frame with the ExecutionId that the server has given in place of the recorded one. A message that has none, another
/// one, or that can't be written as it was read stays as it is.
fn patched(bytes: Vec<u8>, ids: Option<&(String, String)>) -> Vec<u8> {
    let Some((recorded, given)) = ids.filter(|(recorded, given)| recorded != given) else { return bytes };
    let Some(mut message) = decoded(&bytes) else { return bytes };
    let is_faithful = message.to_frame().is_ok_and(|same| same == bytes);
    let id = match &mut message {
        Message::Handshake(handshake) => {
            if handshake.execution_id() == Some(recorded) {
                handshake.set(HandshakeKey::EXECUTION_ID, given.as_str());
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
        *id = Some(given.clone());
    }
    match message.to_frame() {
        Ok(frame) if is_faithful => frame,
        _ => bytes,
    }
}
