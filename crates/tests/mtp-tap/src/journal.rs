//! What is written down: the lines of one recording, for all connections of an application.
//!
//! Each line is with the system before its bytes are passed on. Once one could not be written nothing follows: a recording
//! has no holes.

use std::io::Write;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use runtap_mtp_proto::render::Rendering;
use runtap_mtp_proto::server::Pipe;
use runtap_mtp_proto::{Frame as Wire, Limits};
use runtap_transcript::{Close, Entry, Error, Exit, Frame, Header, More, Open, Writer, seconds};
use serde_json::Value;

use crate::direction::{Direction, PROTOCOL, listed};

/// Larger frames are written without their fields, which follow from their bytes.
const LISTED: usize = 1 << 20;

/// What was written.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Totals {
    /// Connections that were made.
    pub connections: u64,
    /// Whole frames of both directions.
    pub frames: u64,
    /// Bytes of both directions.
    pub bytes: u64,
    /// Whether something could not be written: the recording ends there.
    pub is_cut: bool,
}

struct State {
    writer: Writer<Box<dyn Write + Send>>,
    totals: Totals,
    failure: Option<Error>,
}

/// A recording that is being written by many connections.
pub struct Journal {
    state: Mutex<State>,
    started: Instant,
}

impl std::fmt::Debug for Journal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Journal").field("totals", &self.totals()).finish_non_exhaustive()
    }
}

/// A connection in the recording.
#[derive(Debug, Clone)]
pub(crate) struct Name {
    pub(crate) conn: String,
    pub(crate) pipe: Pipe,
}

impl Journal {
    /// Begins a recording: writes its first line.
    ///
    /// # Errors
    /// It can't be written.
    pub fn begin(out: Box<dyn Write + Send>, mut header: Header) -> Result<Self, Error> {
        header.more.insert("protocol".to_owned(), PROTOCOL.into());
        header.more.insert("version".to_owned(), 1.into());
        let mut writer = Writer::new(out);
        let started = Instant::now();
        writer.write(&Entry::Header(header))?;
        let state = State { writer, totals: Totals::default(), failure: None };
        Ok(Self { state: Mutex::new(state), started })
    }

    /// What was written so far.
    pub fn totals(&self) -> Totals {
        self.state().totals
    }

    /// Why the recording was not written to its end. Given once.
    pub fn take_failure(&self) -> Option<Error> {
        self.state().failure.take()
    }

    /// Writes the last line: the application's exit code, negative for a signal.
    pub fn end(&self, code: Option<i64>) {
        self.write(&mut self.state(), |t| Entry::Exit(Exit { t, code, more: More::new() }));
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The time is taken with the lock held: the lines are in the order of their times.
    fn write(&self, state: &mut State, entry: impl FnOnce(f64) -> Entry) {
        if state.totals.is_cut {
            return;
        }
        if let Err(error) = state.writer.write(&entry(seconds(self.started.elapsed()))) {
            state.totals.is_cut = true;
            state.failure = Some(error);
        }
    }

    /// A connection was made.
    pub(crate) fn open(&self, pipe: Pipe) -> Name {
        let mut state = self.state();
        state.totals.connections += 1;
        let conn = format!("c{}", state.totals.connections);
        let name = Name { conn: conn.clone(), pipe };
        let pipe = if pipe == Pipe::Control { "control" } else { "data" };
        let more = more([("pipe", pipe.into())]);
        self.write(&mut state, |t| Entry::Open(Open { t, conn, more }));
        name
    }

    /// A whole frame. `more` is what is to be said of it besides.
    pub(crate) fn frame(&self, name: &Name, direction: Direction, bytes: &[u8], more: More) {
        let wire = Wire::parse(bytes, Limits::default()).ok().map(|(wire, _)| wire);
        let fields = wire.filter(|_| bytes.len() <= LISTED).and_then(|wire| {
            let rendering = Rendering::new(&wire, Limits::default());
            listed(&rendering)
        });
        let mut state = self.state();
        state.totals.frames += 1;
        self.line(&mut state, name, direction, bytes, more, |frame| {
            frame.id = wire.map(|wire| wire.id.0.into());
            frame.name = wire.and_then(|wire| wire.id.name()).map(str::to_owned);
            frame.fields = fields;
        });
    }

    /// Bytes that are no frame: `what` they are instead.
    pub(crate) fn bytes(&self, name: &Name, direction: Direction, bytes: &[u8], what: &'static str) {
        self.line(&mut self.state(), name, direction, bytes, more([("what", what.into())]), |_| {});
    }

    fn line(
        &self,
        state: &mut State,
        name: &Name,
        direction: Direction,
        bytes: &[u8],
        more: More,
        describe: impl FnOnce(&mut Frame),
    ) {
        state.totals.bytes += bytes.len() as u64;
        self.write(state, |t| {
            let (conn, dir) = (name.conn.clone(), direction.name().to_owned());
            let mut frame = Frame { t, conn, dir, hex: Some(bytes.to_vec()), more, ..Frame::default() };
            describe(&mut frame);
            Entry::Frame(frame)
        });
    }

    /// A connection is over. `side` is who has ended it.
    pub(crate) fn close(&self, name: &Name, side: Option<Direction>, leftover: usize, error: Option<String>) {
        let (conn, side) = (name.conn.clone(), side.map(|side| side.name().to_owned()));
        let more = more([("leftover", leftover.into())]);
        self.write(&mut self.state(), |t| Entry::Close(Close { t, conn, side, error, more }));
    }
}

/// Keys of a line.
pub(crate) fn more<const N: usize>(keys: [(&str, Value); N]) -> More {
    keys.into_iter().map(|(key, value)| (key.to_owned(), value)).collect()
}
