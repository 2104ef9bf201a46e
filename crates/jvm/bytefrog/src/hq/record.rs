//! Recording of the bytes on the connections.
//!
//! HQ passes every byte that an agent sends or receives to a [`Recorder`] and its [`Tape`]s, before interpreting
//! it. If a tape fails, the recording of that connection stops, the failure is reported once, and the trace
//! continues. This module knows no file format (`runtap-jvm` has one) and does not buffer recordings in memory.
//!
//! Connections that do not belong to an agent are not recorded: their problems are reported as an
//! [`Event`](super::Event::Violation). Connections that send nothing after hello are not recorded either: such a
//! connection costs a client nothing, so a tape starts with the first bytes after hello.

use std::fmt;
use std::io;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use runtap_bytefrog_proto::Side;

use super::AgentId;
use super::shared::locked;

/// A connection of an agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Connection {
    /// The control connection.
    Control,
    /// A data connection: 0, 1, 2 … in the order in which they said hello.
    Data(u32),
}

impl fmt::Display for Connection {
    /// Formats the connection as `ctl`, `data0` …
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Control => f.write_str("ctl"),
            Self::Data(number) => write!(f, "data{number}"),
        }
    }
}

/// A recorder of what agents and HQ send each other. It is called on the threads of the connections.
pub trait Recorder: fmt::Debug + Send + Sync {
    /// Starts the tape of an agent's connection that has sent something after hello. Hello is written to the tape
    /// first.
    ///
    /// # Errors
    /// Fails if the connection cannot be recorded. The failure is reported, and the trace continues.
    fn open(&self, agent: AgentId, connection: Connection) -> io::Result<Box<dyn Tape>>;

    /// Starts or ends a named part of the recording, for all agents.
    ///
    /// # Errors
    /// Fails if the mark cannot be written.
    fn mark(&self, at: Duration, name: &str, begins: bool) -> io::Result<()>;
}

/// The recording of one connection, in both directions.
pub trait Tape: Send {
    /// Writes bytes that `side` has sent. `at` is the time since HQ started to listen; it does not decrease within
    /// a direction. What HQ sends is written here before it is sent, so that it is never later than its answer.
    ///
    /// # Errors
    /// Fails if the bytes could not be written completely. The tape is not used afterwards.
    fn write(&mut self, side: Side, at: Duration, bytes: &[u8]) -> io::Result<()>;

    /// Notes that the agent's direction has ended: the peer closed the connection, or the connection was lost.
    ///
    /// # Errors
    /// Fails if the end could not be written.
    fn end(&mut self, at: Duration) -> io::Result<()>;
}

/// The recording of a connection, which stops when it fails.
pub(super) struct RecordedConnection(Mutex<TapeState>);

enum TapeState {
    /// Recording is disabled, or it failed and the failure was reported.
    Off,
    /// The connection has sent nothing since hello.
    Waiting(Waiting),
    On(Box<dyn Tape>),
    Failed(io::Error),
}

/// A tape that has not been started.
struct Waiting {
    recorder: Arc<dyn Recorder>,
    agent: AgentId,
    connection: Connection,
    /// The first bytes of the tape: hello, and the few messages that HQ sent.
    held: Vec<(Side, Duration, Vec<u8>)>,
    /// The time at which the connection was closed. Another connection of the agent may still send events.
    ended: Option<Duration>,
}

impl Waiting {
    fn start(&self) -> io::Result<TapeState> {
        let mut tape = self.recorder.open(self.agent, self.connection)?;
        for (side, at, bytes) in &self.held {
            tape.write(*side, *at, bytes)?;
        }
        let Some(at) = self.ended else { return Ok(TapeState::On(tape)) };
        tape.end(at).map(|()| TapeState::Off)
    }
}

impl TapeState {
    fn with(&mut self, act: impl FnOnce(&mut dyn Tape) -> io::Result<()>) {
        if let Self::On(tape) = self
            && let Err(error) = act(&mut **tape)
        {
            *self = Self::Failed(error);
        }
    }
}

impl RecordedConnection {
    pub(super) fn off() -> Self {
        Self(Mutex::new(TapeState::Off))
    }

    /// Prepares the recording; [`Self::start`] starts it.
    pub(super) fn prepare(
        &self,
        recorder: Option<&Arc<dyn Recorder>>,
        agent: AgentId,
        connection: Connection,
    ) {
        let Some(recorder) = recorder.map(Arc::clone) else { return };
        *locked(&self.0) =
            TapeState::Waiting(Waiting { recorder, agent, connection, held: Vec::new(), ended: None });
    }

    /// Starts the recording, because this or another connection of the agent sent something after hello.
    pub(super) fn start(&self) {
        let mut state = locked(&self.0);
        if let TapeState::Waiting(waiting) = &*state {
            *state = waiting.start().unwrap_or_else(TapeState::Failed);
        }
    }

    pub(super) fn write(&self, side: Side, at: Duration, bytes: &[u8]) {
        if bytes.is_empty() {
            return;
        }
        let mut state = locked(&self.0);
        if let TapeState::Waiting(waiting) = &mut *state {
            return waiting.held.push((side, at, bytes.to_vec()));
        }
        state.with(|tape| tape.write(side, at, bytes));
    }

    pub(super) fn end(&self, at: Duration) {
        let mut state = locked(&self.0);
        state.with(|tape| tape.end(at));
        match &mut *state {
            TapeState::Waiting(waiting) => waiting.ended = Some(at),
            TapeState::On(_) => *state = TapeState::Off,
            TapeState::Off | TapeState::Failed(_) => {}
        }
    }

    /// Returns the error that stopped the recording, once.
    pub(super) fn failure(&self) -> Option<io::Error> {
        let mut state = locked(&self.0);
        match std::mem::replace(&mut *state, TapeState::Off) {
            TapeState::Failed(error) => Some(error),
            kept => {
                *state = kept;
                None
            }
        }
    }
}
