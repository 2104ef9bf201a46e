//! Reads all rings, puts what virtual threads did on several carriers in order, and sends it.
//!
//! Owns: the loop of the native thread that does so, and the limits of rings: how far a thread may write, which is how a
//! program is paused too. Refuses to: know messages (`stream` does).

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
use crate::ring::{NOBODY, Raw};
use crate::session::{Agent, Session};
use crate::stream::Stream;
use read::Reading;

/// What is buffered for a connection before it is written.
const ENOUGH: usize = 64 * 1024;
/// How long a write may take before it is looked whether it is still wanted.
const STEP: Duration = Duration::from_millis(200);
/// The longest rest between two rounds.
const REST: Duration = Duration::from_millis(2);

/// What is sent how.
pub(crate) struct Drain {
    pub(crate) agent: &'static Agent,
    pub(crate) session: Arc<Session>,
    pub(crate) sockets: Vec<TcpStream>,
    pub(crate) record: RecordMode,
    pub(crate) interval: Duration,
    reading: Reading,
    /// Counts of threads that are gone, and what was counted before the last reset.
    gone: Vec<[u64; 2]>,
    before: Vec<[u64; 2]>,
    /// What was counted when recording was suspended; `None` while it is not.
    held: Option<Vec<[u64; 2]>>,
    covered: Vec<bool>,
    /// For each of `lines`, whether HQ was told that it ran.
    covered_lines: Vec<bool>,
    /// All lines that have probes.
    lines: Vec<Line>,
    any_degraded: bool,
    last_snapshot: Instant,
}

impl Drain {
    /// Begins to read. What is in the rings of an earlier trace is passed over.
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

    /// Takes rings that were made since.
    fn adopt_new(&mut self) {
        if self.agent.rings.count() != self.reading.readers.len() {
            for ring in self.agent.rings.all() {
                if !ring.adopted.load(Ordering::Relaxed) {
                    self.reading.adopt(ring, false);
                }
            }
        }
    }

    /// Reads and sends until the trace is over, and frees everybody then.
    pub(crate) fn run(mut self) {
        let result = self.until_over();
        for reader in &self.reading.readers {
            reader.ring.set_limit(NOBODY);
        }
        self.agent.set_gone(true);
        // Those that were made meanwhile.
        for ring in self.agent.rings.all() {
            ring.set_limit(NOBODY);
            if ring.ended.load(Ordering::Acquire) {
                self.agent.rings.forget(&ring);
            }
        }
        if result.is_err() {
            self.session.set_lost();
        }
        for socket in &self.sockets {
            // It may be closed already.
            let _ = socket.shutdown(Shutdown::Write);
        }
    }

    fn until_over(&mut self) -> io::Result<()> {
        for socket in &self.sockets {
            socket.set_write_timeout(Some(STEP))?;
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
                self.tell_rest()?;
                return self.flush(0);
            }
            rest = if any { Duration::ZERO } else { (rest * 2).clamp(Duration::from_micros(50), REST) };
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
            // What was recorded before is sent.
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

    /// Everything that is there now. Says whether there was anything. In the last rounds nobody gets room for more.
    fn round(&mut self, last: bool) -> io::Result<bool> {
        // Read before anything else: an event of this time or before it is in a ring that is looked at, if a later one of the
        // same thread is in another.
        let until = clock::now();
        self.adopt_new();
        self.reading.is_suspended = self.is_suspended();
        let mut any = false;
        // Ended is read before the head: nothing comes behind that head then.
        let ended: Vec<bool> =
            self.reading.readers.iter().map(|one| one.ring.ended.load(Ordering::Acquire)).collect();
        let heads = self.reading.heads();
        self.reading.take_losses();
        let mut carriers = Vec::new();
        for (number, head) in heads.iter().enumerate() {
            // Read after the head: a ring whose events up to there have a switch says so.
            if self.reading.readers.get(number).is_some_and(|one| one.ring.carries.load(Ordering::SeqCst)) {
                carriers.push(number);
                continue;
            }
            any |= self.reading.read(number, *head, u64::MAX);
            self.flush(ENOUGH)?;
        }
        any |= self.reading.merge(&carriers, &heads, until);
        self.reading.stream.end_round(false);
        let mut waiting = 0u16;
        for (reader, head) in self.reading.readers.iter().zip(&heads) {
            waiting = waiting.saturating_add(u16::from(reader.ring.head() > *head));
        }
        self.session.set_waiting(waiting);
        self.any_degraded |= self.reading.tell_degraded();
        self.flush(0)?;
        if !last {
            self.give_room();
        }
        self.bury(&ended, &heads);
        Ok(any)
    }

    /// Rings of threads that are gone, and that were read to their end.
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
                reader.tell_dropped(stream);
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

    /// Writes what is buffered, if it is so much.
    fn flush(&mut self, enough: usize) -> io::Result<()> {
        // Before what comes behind them.
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

/// Events are read from memory that others write.
const _: () = assert!(size_of::<Raw>() == 16);
