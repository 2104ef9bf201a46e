//! What goes over the connections, to whoever keeps it.
//!
//! Owns: [`Recorder`] and [`Tape`], which HQ hands every byte that an agent sends or is sent, before anything is made of it,
//! and what happens when they fail: that connection is recorded no more, it is told once, and the trace goes on. Refuses to:
//! know a file format (`runtap-jvm` has one), and to keep bytes in memory.
//!
//! Connections that do not become an agent's are not recorded: what is wrong with them is an
//! [`Event`](super::Event::Violation). Nor are connections that send nothing after hello, which costs a client nothing: a tape begins with
//! the first bytes after hello.

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
    /// Its control connection.
    Control,
    /// Its data connections are 0, 1, 2 … in the order in which they said hello.
    Data(u32),
}

impl fmt::Display for Connection {
    /// `ctl`, `data0` …
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Control => f.write_str("ctl"),
            Self::Data(number) => write!(f, "data{number}"),
        }
    }
}

/// Keeps what agents and HQ say to each other. Called on the threads of the connections.
pub trait Recorder: fmt::Debug + Send + Sync {
    /// Begins the tape of an agent's connection that has sent something after hello. Hello is written to the tape first.
    ///
    /// # Errors
    /// It can't be recorded, which is told; the trace goes on.
    fn open(&self, agent: AgentId, connection: Connection) -> io::Result<Box<dyn Tape>>;

    /// A named part of the recording begins or ends, for all agents.
    ///
    /// # Errors
    /// It can't be kept.
    fn mark(&self, at: Duration, name: &str, begins: bool) -> io::Result<()>;
}

/// One connection that is recorded, both directions of it.
pub trait Tape: Send {
    /// `side` has sent these bytes. `at` is the time since HQ began to listen: not less than any before of this direction.
    /// What HQ sends is written here before it is sent, so that it is never later than its answer.
    ///
    /// # Errors
    /// They could not be written whole. Nothing more will come.
    fn write(&mut self, side: Side, at: Duration, bytes: &[u8]) -> io::Result<()>;

    /// The agent's direction has ended: the other side has closed the connection, or it was lost.
    ///
    /// # Errors
    /// It could not be written.
    fn end(&mut self, at: Duration) -> io::Result<()>;
}

/// The tape of a connection, until it fails.
pub(super) struct Taped(Mutex<State>);

enum State {
    /// Nobody asked for it, or it has failed and that was told.
    Off,
    /// The connection has sent nothing after hello.
    Waiting(Waiting),
    On(Box<dyn Tape>),
    Failed(io::Error),
}

/// A tape that has not begun.
struct Waiting {
    recorder: Arc<dyn Recorder>,
    agent: AgentId,
    connection: Connection,
    /// The first bytes of the tape: hello, and the few messages that HQ has sent.
    held: Vec<(Side, Duration, Vec<u8>)>,
    /// When the connection ended. Another connection of the agent may still send events.
    ended: Option<Duration>,
}

impl Waiting {
    fn start(&self) -> io::Result<State> {
        let mut tape = self.recorder.open(self.agent, self.connection)?;
        for (side, at, bytes) in &self.held {
            tape.write(*side, *at, bytes)?;
        }
        let Some(at) = self.ended else { return Ok(State::On(tape)) };
        tape.end(at).map(|()| State::Off)
    }
}

impl State {
    fn with(&mut self, act: impl FnOnce(&mut dyn Tape) -> io::Result<()>) {
        if let Self::On(tape) = self
            && let Err(error) = act(&mut **tape)
        {
            *self = Self::Failed(error);
        }
    }
}

impl Taped {
    pub(super) fn off() -> Self {
        Self(Mutex::new(State::Off))
    }

    /// Prepares the recording, which [`Self::start`] begins.
    pub(super) fn begin(&self, recorder: Option<&Arc<dyn Recorder>>, agent: AgentId, connection: Connection) {
        let Some(recorder) = recorder.map(Arc::clone) else { return };
        *locked(&self.0) =
            State::Waiting(Waiting { recorder, agent, connection, held: Vec::new(), ended: None });
    }

    /// Begins the recording: this connection, or another one of the agent, has sent something after hello.
    pub(super) fn start(&self) {
        let mut state = locked(&self.0);
        if let State::Waiting(waiting) = &*state {
            *state = waiting.start().unwrap_or_else(State::Failed);
        }
    }

    pub(super) fn write(&self, side: Side, at: Duration, bytes: &[u8]) {
        if bytes.is_empty() {
            return;
        }
        let mut state = locked(&self.0);
        if let State::Waiting(waiting) = &mut *state {
            return waiting.held.push((side, at, bytes.to_vec()));
        }
        state.with(|tape| tape.write(side, at, bytes));
    }

    pub(super) fn end(&self, at: Duration) {
        let mut state = locked(&self.0);
        state.with(|tape| tape.end(at));
        match &mut *state {
            State::Waiting(waiting) => waiting.ended = Some(at),
            State::On(_) => *state = State::Off,
            State::Off | State::Failed(_) => {}
        }
    }

    /// Why it is recorded no more, once.
    pub(super) fn failure(&self) -> Option<io::Error> {
        let mut state = locked(&self.0);
        match std::mem::replace(&mut *state, State::Off) {
            State::Failed(error) => Some(error),
            kept => {
                *state = kept;
                None
            }
        }
    }
}
