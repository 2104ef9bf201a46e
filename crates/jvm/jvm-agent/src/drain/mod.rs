//! Reads all rings, puts the events of virtual threads on several carriers in order, and sends them.
//!
//! Owns: the loop of the native thread that reads and sends, and the limits of rings, which say how far a thread may write
//! and by which a program is paused. Does not know messages (`stream` does).

mod losses;
mod read;
mod snapshot;
#[cfg(test)]
mod tests;

use std::io::{self, Write as _};
use std::net::{Shutdown, TcpStream};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use runtap_bytefrog_proto::{Mode, RecordMode};

use crate::clock;
use crate::lines::Line;
use crate::ring::{RawEvent, UNREAD};
use crate::session::{Agent, Session};
use crate::stream::Stream;
use read::Reading;

/// The number of bytes buffered for a connection before they are written.
const FLUSH_BYTES: usize = 64 * 1024;
/// The time-out of a write, after which the thread checks whether the write is still wanted.
const WRITE_TIMEOUT: Duration = Duration::from_millis(200);
/// The longest pause between two rounds.
const MAX_PAUSE: Duration = Duration::from_millis(2);

/// Reads rings and sends their events to HQ.
pub(crate) struct Drain {
    pub(crate) agent: &'static Agent,
    pub(crate) session: Arc<Session>,
    pub(crate) sockets: Vec<TcpStream>,
    pub(crate) record: RecordMode,
    pub(crate) interval: Duration,
    reading: Reading,
    /// Counts of threads that have ended, and counts from before the last reset.
    gone: Vec<[u64; 2]>,
    before: Vec<[u64; 2]>,
    /// The counts when recording was suspended; `None` while it is not suspended.
    held: Option<Vec<[u64; 2]>>,
    covered: Vec<bool>,
    /// For each entry of `lines`, whether HQ has been told that the line ran.
    covered_lines: Vec<bool>,
    /// All lines with probes.
    lines: Vec<Line>,
    any_degraded: bool,
    last_snapshot: Instant,
}

impl Drain {
    /// Creates the reader of a trace. Events from an earlier trace that are still in the rings are skipped.
    pub(crate) fn new(
        agent: &'static Agent,
        session: Arc<Session>,
        stream: Stream,
        sockets: Vec<TcpStream>,
        record: RecordMode,
        interval: Duration,
    ) -> Self {
        let suspended = session.mode() == Mode::Suspended;
        let mut drain = Self {
            agent,
            session,
            sockets,
            record,
            interval,
            reading: Reading::new(stream),
            gone: Vec::new(),
            before: Vec::new(),
            held: None,
            covered: Vec::new(),
            covered_lines: Vec::new(),
            lines: Vec::new(),
            any_degraded: false,
            last_snapshot: Instant::now(),
        };
        for ring in agent.rings.all() {
            drain.reading.adopt(ring, true);
        }
        drain.forget_counts();
        drain.held = suspended.then(|| drain.before.clone());
        drain
    }

    /// Adopts rings that were created since the last call.
    fn adopt_new(&mut self) {
        if self.agent.rings.count() != self.reading.readers.len() {
            for ring in self.agent.rings.all() {
                if !ring.adopted.load(Ordering::Relaxed) {
                    self.reading.adopt(ring, false);
                }
            }
        }
    }

    /// Reads and sends until the trace is over, and then releases all waiting threads.
    pub(crate) fn run(mut self) {
        let result = self.until_over();
        for reader in &self.reading.readers {
            reader.ring.set_limit(UNREAD);
        }
        self.agent.set_gone(true);
        // Rings that were created meanwhile.
        for ring in self.agent.rings.all() {
            ring.set_limit(UNREAD);
            if ring.ended.load(Ordering::Acquire) {
                self.agent.rings.forget(&ring);
            }
        }
        if result.is_err() {
            self.session.set_lost();
        }
        for socket in &self.sockets {
            // The socket may be closed already.
            let _ = socket.shutdown(Shutdown::Write);
        }
    }

    fn until_over(&mut self) -> io::Result<()> {
        for socket in &self.sockets {
            socket.set_write_timeout(Some(WRITE_TIMEOUT))?;
        }
        let mut rest = Duration::ZERO;
        loop {
            let finishing = self.session.is_finishing();
            self.follow_mode();
            let any = self.round(finishing)?;
            self.session.progressed();
            if self.snapshot_is_due(finishing) {
                self.snapshot(self.session.take_snapshot());
                self.flush(0)?;
            }
            if self.session.is_lost() {
                return Err(io::ErrorKind::ConnectionAborted.into());
            }
            if finishing {
                self.report_remaining()?;
                return self.flush(0);
            }
            rest = if any { Duration::ZERO } else { (rest * 2).clamp(Duration::from_micros(50), MAX_PAUSE) };
            if rest.is_zero() {
                std::thread::yield_now();
            } else {
                std::thread::park_timeout(rest);
            }
        }
    }

    fn follow_mode(&mut self) {
        let suspended = self.session.mode() == Mode::Suspended;
        if suspended && !self.is_suspended() {
            // Events recorded before the suspension are sent.
            let _ = self.round(false);
            self.reading.stream.break_here();
            self.hold_counts();
        }
        if !suspended && self.is_suspended() {
            self.adopt_new();
            self.pass_counts();
        }
    }

    fn is_suspended(&self) -> bool {
        self.held.is_some()
    }

    /// Reads and sends all current events, and returns whether there were any. The last rounds do not move the limits.
    fn round(&mut self, last: bool) -> io::Result<bool> {
        // Read first: every event up to this time is then in a ring that this round reads, even if a later event of the same
        // thread is in another ring.
        let until = clock::now();
        self.adopt_new();
        self.reading.is_suspended = self.is_suspended();
        let mut any = false;
        // `ended` is read before the head: no event follows that head then.
        let ended: Vec<bool> =
            self.reading.readers.iter().map(|one| one.ring.ended.load(Ordering::Acquire)).collect();
        let heads = self.reading.heads();
        self.reading.take_losses();
        let mut carriers = Vec::new();
        for (number, head) in heads.iter().enumerate() {
            // Read after the head: a ring with a switch below the head is marked as a carrier's.
            if self.reading.readers.get(number).is_some_and(|one| one.ring.carries.load(Ordering::SeqCst)) {
                carriers.push(number);
                continue;
            }
            any |= self.reading.read(number, *head, u64::MAX);
            self.flush(FLUSH_BYTES)?;
        }
        any |= self.reading.merge(&carriers, &heads, until);
        self.reading.stream.end_round(false);
        let mut waiting = 0u16;
        for (reader, head) in self.reading.readers.iter().zip(&heads) {
            waiting = waiting.saturating_add(u16::from(reader.ring.head() > *head));
        }
        self.session.set_waiting(waiting);
        self.any_degraded |= self.reading.report_degraded();
        self.flush(0)?;
        if !last {
            self.give_room();
        }
        self.bury(&ended, &heads);
        Ok(any)
    }

    /// Releases the rings of ended threads that were read to their end.
    fn bury(&mut self, ended: &[bool], heads: &[u64]) {
        let now = self.reading.stream.since_start(clock::now());
        let mut number = 0;
        let mut buried = Vec::new();
        let stream = &mut self.reading.stream;
        self.reading.readers.retain_mut(|reader| {
            let (ended, head) = (ended.get(number).copied(), heads.get(number).copied());
            number += 1;
            let over = ended == Some(true) && head == Some(reader.tail);
            if over {
                reader.report_dropped(stream);
                buried.push(Arc::clone(&reader.ring));
            }
            !over
        });
        for ring in buried {
            self.keep_counts(&ring);
            self.reading.stream.end_thread(ring.tid, now);
            self.agent.rings.forget(&ring);
        }
    }

    /// Writes buffers that have at least `enough` bytes.
    fn flush(&mut self, enough: usize) -> io::Result<()> {
        // Breaks are reported before the events that follow them.
        for sequence in self.reading.stream.take_breaks() {
            self.session.break_at(sequence);
        }
        for (buffer, socket) in self.reading.stream.buffers().iter_mut().zip(&mut self.sockets) {
            if buffer.len() <= enough {
                continue;
            }
            let mut rest = buffer.as_slice();
            while !rest.is_empty() {
                match socket.write(rest) {
                    Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                    Ok(count) => {
                        self.session.progressed();
                        rest = rest.get(count..).unwrap_or_default();
                    }
                    Err(error) => match error.kind() {
                        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut | io::ErrorKind::Interrupted => {
                            if self.session.is_lost() {
                                return Err(error);
                            }
                        }
                        _ => return Err(error),
                    },
                }
            }
            buffer.clear();
        }
        Ok(())
    }
}

/// Events are read from memory that other threads write.
const _: () = assert!(size_of::<RawEvent>() == 16);
