//! A transcript that many connections write.
//!
//! A line is with the system before its bytes are passed on. After a line that could not be written none follows, so that a
//! transcript has no gaps.

use std::io::Write;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use crate::protocol::{Direction, Protocol};
use crate::{Close, Entry, Error, Exit, Frame, Header, More, Open, Writer, seconds};

/// How much was written.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Totals {
    /// The number of connections.
    pub connections: u64,
    /// The number of complete messages and parts of streams.
    pub frames: u64,
    /// The number of bytes of both directions.
    pub bytes: u64,
    /// The files with streams, in the order in which they were created.
    pub streams: Vec<PathBuf>,
    /// Whether something could not be written: the transcript ends there.
    pub is_truncated: bool,
}

struct State {
    writer: Writer<Box<dyn Write + Send>>,
    totals: Totals,
    failure: Option<Error>,
}

/// A transcript that many connections write.
pub struct Journal {
    state: Mutex<State>,
    started: Instant,
    directions: [&'static str; 2],
}

impl std::fmt::Debug for Journal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Journal").field("totals", &self.totals()).finish_non_exhaustive()
    }
}

impl Journal {
    /// Writes the header of a transcript of the protocol `P`.
    ///
    /// # Errors
    /// The header cannot be written.
    pub fn begin<P: Protocol>(out: Box<dyn Write + Send>, mut header: Header) -> Result<Self, Error> {
        header.more.insert("protocol".to_owned(), P::NAME.into());
        header.more.insert("version".to_owned(), 1.into());
        let mut writer = Writer::new(out);
        let started = Instant::now();
        writer.write(&Entry::Header(header))?;
        let state = State { writer, totals: Totals::default(), failure: None };
        Ok(Self { state: Mutex::new(state), started, directions: P::DIRECTIONS })
    }

    /// Returns how much was written so far.
    pub fn totals(&self) -> Totals {
        self.state().totals.clone()
    }

    /// Whether something could not be written.
    pub fn is_truncated(&self) -> bool {
        self.state().totals.is_truncated
    }

    /// Returns why the transcript is truncated. A failure is returned once.
    pub fn take_failure(&self) -> Option<Error> {
        self.state().failure.take()
    }

    /// Seconds since the recording began, as transcripts have them.
    pub fn now(&self) -> f64 {
        seconds(self.started.elapsed())
    }

    /// Returns the value of `dir` for a direction.
    pub fn name_of(&self, direction: Direction) -> &'static str {
        let [client, server] = self.directions;
        match direction {
            Direction::FromClient => client,
            Direction::FromServer => server,
        }
    }

    /// Writes that a connection was opened, and returns its name.
    pub fn open(&self, more: More) -> String {
        let mut state = self.state();
        state.totals.connections += 1;
        let conn = format!("c{}", state.totals.connections);
        let open = |t| Entry::Open(Open { t, conn: conn.clone(), more });
        self.write(&mut state, open);
        conn
    }

    /// Writes a message, or a part of a stream, of `bytes` bytes. `at` is when they were received, if that is not now.
    pub fn message(&self, conn: &str, from: Direction, at: Option<f64>, bytes: usize, message: Frame) {
        let mut state = self.state();
        state.totals.frames += 1;
        self.frame(&mut state, conn, from, bytes, |now| Frame { t: at.unwrap_or(now), ..message });
    }

    /// Writes bytes that are no message; `what` says what they are.
    pub fn fragment(&self, conn: &str, from: Direction, bytes: &[u8], what: &'static str) {
        let more = [("what".to_owned(), what.into())].into_iter().collect();
        let fragment = |t| Frame { t, hex: Some(bytes.to_vec()), more, ..Frame::default() };
        self.frame(&mut self.state(), conn, from, bytes.len(), fragment);
    }

    fn frame(
        &self,
        state: &mut State,
        conn: &str,
        from: Direction,
        bytes: usize,
        frame: impl FnOnce(f64) -> Frame,
    ) {
        state.totals.bytes += bytes as u64;
        let (conn, dir) = (conn.to_owned(), self.name_of(from).to_owned());
        self.write(state, |now| Entry::Frame(Frame { conn, dir, ..frame(now) }));
    }

    /// Writes that a connection, or one direction of it, has ended.
    pub fn close(&self, close: Close) {
        self.write(&mut self.state(), |t| Entry::Close(Close { t, ..close }));
    }

    /// Writes the last line: the exit code of the command, negative for a signal; `None` if there was no command.
    pub fn end(&self, code: Option<i64>) {
        self.write(&mut self.state(), |t| Entry::Exit(Exit { t, code, more: More::new() }));
    }

    /// Notes that a file with a stream was created.
    pub fn add_stream(&self, path: PathBuf) {
        self.state().totals.streams.push(path);
    }

    /// Notes that something beside the transcript could not be written: no line follows.
    pub fn fail(&self, error: Error) {
        fail(&mut self.state(), error);
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The time is read with the lock held, so that lines are in the order of their times.
    fn write(&self, state: &mut State, entry: impl FnOnce(f64) -> Entry) {
        if state.totals.is_truncated {
            return;
        }
        if let Err(error) = state.writer.write(&entry(self.now())) {
            fail(state, error);
        }
    }
}

fn fail(state: &mut State, error: Error) {
    if !std::mem::replace(&mut state.totals.is_truncated, true) {
        state.failure = Some(error);
    }
}
