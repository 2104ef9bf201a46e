//! A transcript that several connections write concurrently.
//!
//! A line is written before its bytes are forwarded. After a failed write, no line follows, so that a transcript has no gaps.

use std::io::Write;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use crate::protocol::{Direction, Protocol};
use crate::{Close, Entry, Error, Exit, Frame, Header, More, Open, Writer, seconds};

/// The amount of data written.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct JournalTotals {
    /// The number of connections.
    pub connections: u64,
    /// The number of complete messages and parts of streams.
    pub frames: u64,
    /// The number of bytes of both directions.
    pub bytes: u64,
    /// The files with streams, in the order in which they were created.
    pub streams: Vec<PathBuf>,
    /// Whether a write has failed, which ends the transcript.
    pub is_truncated: bool,
}

struct JournalState {
    writer: Writer<Box<dyn Write + Send>>,
    totals: JournalTotals,
    failure: Option<Error>,
}

/// A transcript that several connections write concurrently.
pub struct Journal {
    state: Mutex<JournalState>,
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
    #[expect(clippy::disallowed_methods, reason = "the times of lines count from here")]
    pub fn begin<P: Protocol>(out: Box<dyn Write + Send>, mut header: Header) -> Result<Self, Error> {
        header.more.insert("protocol".to_owned(), P::NAME.into());
        header.more.insert("version".to_owned(), 1.into());
        let mut writer = Writer::new(out);
        let started = Instant::now();
        writer.write(&Entry::Header(header))?;
        let state = JournalState { writer, totals: JournalTotals::default(), failure: None };
        Ok(Self { state: Mutex::new(state), started, directions: P::DIRECTIONS })
    }

    /// Returns the amount of data written so far.
    pub fn totals(&self) -> JournalTotals {
        self.state().totals.clone()
    }

    /// Returns whether a write has failed.
    pub fn is_truncated(&self) -> bool {
        self.state().totals.is_truncated
    }

    /// Returns the error that truncated the transcript, the first time that it is called.
    pub fn take_failure(&self) -> Option<Error> {
        self.state().failure.take()
    }

    /// Returns the seconds since the start of the recording, as written in transcripts.
    pub fn now(&self) -> f64 {
        seconds(self.started.elapsed())
    }

    /// Returns the value of `dir` for a direction.
    pub fn name_of(&self, direction: Direction) -> &'static str {
        direction.name_in(self.directions)
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

    /// Writes a message, or a part of a stream, of `bytes` bytes. `at` is the time at which they were received; `None` for now.
    pub fn message(&self, conn: &str, from: Direction, at: Option<f64>, bytes: usize, message: Frame) {
        let mut state = self.state();
        state.totals.frames += 1;
        self.frame(&mut state, conn, from, bytes, |now| Frame { t: at.unwrap_or(now), ..message });
    }

    /// Writes bytes that are not a message; `what` names their kind.
    pub fn fragment(&self, conn: &str, from: Direction, bytes: &[u8], what: &'static str) {
        let more = [("what".to_owned(), what.into())].into_iter().collect();
        let fragment = |t| Frame { t, hex: Some(bytes.to_vec()), more, ..Frame::default() };
        self.frame(&mut self.state(), conn, from, bytes.len(), fragment);
    }

    fn frame(
        &self,
        state: &mut JournalState,
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

    /// Ends the transcript because a file beside it could not be written.
    pub fn fail(&self, error: Error) {
        fail(&mut self.state(), error);
    }

    fn state(&self) -> MutexGuard<'_, JournalState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads the time while holding the lock, so that lines are in chronological order.
    fn write(&self, state: &mut JournalState, entry: impl FnOnce(f64) -> Entry) {
        if state.totals.is_truncated {
            return;
        }
        if let Err(error) = state.writer.write(&entry(self.now())) {
            fail(state, error);
        }
    }
}

fn fail(state: &mut JournalState, error: Error) {
    if !std::mem::replace(&mut state.totals.is_truncated, true) {
        state.failure = Some(error);
    }
}
