//! Reads all rings, puts what virtual threads did on several carriers in order, and sends it.
//!
//! Owns: the loop of the native thread that does so, and the limits of rings: how far a thread may write, which is how a
//! program is paused too. Refuses to: know messages (`stream` does).

mod losses;
mod snapshot;

use std::io::{self, Write as _};
use std::net::{Shutdown, TcpStream};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use runtap_bytefrog_proto::f1::{Drop as DropMessage, DropReason};
use runtap_bytefrog_proto::{Mode, Record};

use crate::clock;
use crate::lines::Line;
use crate::ring::{CAPACITY, Kind, NOBODY, Raw, Ring, line_of, method_of};
use crate::session::{Agent, Session};
use crate::stream::{Event, Stream};

/// What is buffered for a connection before it is written.
const ENOUGH: usize = 64 * 1024;
/// How long a write may take before it is looked whether it is still wanted.
const STEP: Duration = Duration::from_millis(200);
/// The longest rest between two rounds.
const REST: Duration = Duration::from_millis(2);

/// How far a ring is read.
struct Reader {
    ring: Arc<Ring>,
    tail: u64,
    limit: u64,
    /// The thread whose events come next.
    tid: u64,
    degraded: bool,
}

/// What is sent how.
pub(crate) struct Drain {
    pub(crate) agent: &'static Agent,
    pub(crate) session: Arc<Session>,
    pub(crate) stream: Stream,
    pub(crate) sockets: Vec<TcpStream>,
    pub(crate) record: Record,
    pub(crate) interval: Duration,
    readers: Vec<Reader>,
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
    /// Some of a virtual thread's calls are only counted: on the carriers that had no room.
    carrier_degraded: bool,
    last_snapshot: Instant,
}

impl Drain {
    /// Begins to read. What is in the rings of an earlier trace is passed over.
    pub(crate) fn new(
        agent: &'static Agent,
        session: Arc<Session>,
        stream: Stream,
        sockets: Vec<TcpStream>,
        record: Record,
        interval: Duration,
    ) -> Self {
        let suspended = session.mode() == Mode::Suspended;
        let mut drain = Self {
            agent,
            session,
            stream,
            sockets,
            record,
            interval,
            readers: Vec::new(),
            gone: Vec::new(),
            before: Vec::new(),
            held: None,
            covered: Vec::new(),
            covered_lines: Vec::new(),
            lines: Vec::new(),
            any_degraded: false,
            carrier_degraded: false,
            last_snapshot: Instant::now(),
        };
        for ring in agent.rings.all() {
            drain.adopt(ring, true);
        }
        drain.forget_counts();
        drain.held = suspended.then(|| drain.before.clone());
        drain
    }

    fn adopt(&mut self, ring: Arc<Ring>, old: bool) {
        if old {
            ring.degraded.store(false, Ordering::Relaxed);
            ring.dropped.store(0, Ordering::Relaxed);
        }
        ring.adopted.store(true, Ordering::Relaxed);
        let tail = if old { ring.begin_reading() } else { 0 };
        let (limit, tid) = (ring.limit(), ring.current().load(Ordering::Relaxed));
        let tid = if old { tid } else { ring.tid };
        self.readers.push(Reader { ring, tail, limit, tid, degraded: false });
    }

    /// Takes rings that were made since.
    fn adopt_new(&mut self) {
        if self.agent.rings.count() != self.readers.len() {
            for ring in self.agent.rings.all() {
                if !ring.adopted.load(Ordering::Relaxed) {
                    self.adopt(ring, false);
                }
            }
        }
    }

    /// Reads and sends until the trace is over, and frees everybody then.
    pub(crate) fn run(mut self) {
        let result = self.until_over();
        for reader in &self.readers {
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
            self.stream.break_here();
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
        let mut any = false;
        // Ended is read before the head: nothing comes behind that head then.
        let ended: Vec<bool> =
            self.readers.iter().map(|one| one.ring.ended.load(Ordering::Acquire)).collect();
        let heads: Vec<u64> = self.readers.iter().map(|one| one.ring.head()).collect();
        let mut carriers = Vec::new();
        for (number, head) in heads.iter().enumerate() {
            // Read after the head: a ring whose events up to there have a switch says so.
            if self.readers.get(number).is_some_and(|one| one.ring.carries.load(Ordering::SeqCst)) {
                carriers.push(number);
                continue;
            }
            any |= self.read(number, *head, u64::MAX);
            self.flush(ENOUGH)?;
        }
        any |= self.merge(&carriers, &heads, until);
        let mut waiting = 0u16;
        for (reader, head) in self.readers.iter().zip(&heads) {
            waiting = waiting.saturating_add(u16::from(reader.ring.head() > *head));
        }
        self.session.set_waiting(waiting);
        self.tell_degraded();
        self.flush(0)?;
        if !last {
            self.give_room();
        }
        self.bury(&ended, &heads);
        Ok(any)
    }

    /// Reads a ring up to a head, or to an event that is later than a time.
    fn read(&mut self, number: usize, head: u64, until: u64) -> bool {
        let Some(reader) = self.readers.get_mut(number) else { return false };
        let (ring, mut tid) = (Arc::clone(&reader.ring), reader.tid);
        if head.saturating_sub(reader.tail) > CAPACITY {
            // Made while nobody read, it had no limit yet.
            reader.tail = head;
            let (time, name) =
                (self.stream.since_start(clock::now()), (tid == ring.tid).then_some(ring.name.as_slice()));
            self.stream.drop_events(tid, name, time, DropMessage::UNKNOWN, DropReason::FULL);
            return true;
        }
        let mut at = reader.tail;
        let (began, suspended) = (at, self.is_suspended());
        let mut discarded = 0;
        let mut discarded_since = 0;
        while at < head {
            let event = ring.event(at);
            if event.time > until {
                break;
            }
            let name = (tid == ring.tid).then_some(ring.name.as_slice());
            let kind = Kind::of(event.word).unwrap_or(Kind::More);
            let more = || ring.event(at + 1).time;
            let time = self.stream.since_start(event.time);
            at += match kind {
                Kind::Switch => {
                    if discarded > 0 {
                        self.stream.discard(tid, name, discarded_since, std::mem::take(&mut discarded));
                    }
                    tid = more();
                    2
                }
                Kind::Drop => {
                    if ring.carries.load(Ordering::SeqCst) {
                        self.stream.lose_of_virtual();
                    }
                    let reason = DropReason(u8::try_from(method_of(event.word)).unwrap_or(u8::MAX));
                    self.stream.drop_events(tid, name, time, more(), reason);
                    2
                }
                Kind::Standing => {
                    if !suspended {
                        self.stream.settle(tid, name, time, method_of(event.word), more());
                    }
                    2
                }
                Kind::More | Kind::Count | Kind::CountThrown => 1,
                Kind::Entry | Kind::Exit | Kind::Throw | Kind::Bubble => {
                    let long = matches!(kind, Kind::Throw | Kind::Bubble);
                    if suspended {
                        if discarded == 0 {
                            discarded_since = time;
                        }
                        discarded += 1;
                    } else {
                        let exception = if long { u32::try_from(more()).unwrap_or(u32::MAX) } else { 0 };
                        let (method, line) = (method_of(event.word), line_of(event.word));
                        self.stream.event(tid, name, &Event { kind, time, method, line, exception });
                    }
                    1 + u64::from(long)
                }
            };
        }
        if discarded > 0 {
            let name = (tid == ring.tid).then_some(ring.name.as_slice());
            self.stream.discard(tid, name, discarded_since, discarded);
        }
        if let Some(reader) = self.readers.get_mut(number) {
            reader.tail = at;
            reader.tid = tid;
        }
        at > began
    }

    /// Reads rings of carriers together, by time: a virtual thread goes from one to another.
    fn merge(&mut self, carriers: &[usize], heads: &[u64], until: u64) -> bool {
        let mut any = false;
        loop {
            let next = |number: &usize| -> Option<(u64, usize)> {
                let reader = self.readers.get(*number)?;
                let head = *heads.get(*number)?;
                (reader.tail < head).then(|| (reader.ring.event(reader.tail).time, *number))
            };
            let mut first: Option<(u64, usize)> = None;
            let mut second = until;
            for (time, number) in carriers.iter().filter_map(next) {
                match first {
                    Some((earliest, _)) if time >= earliest => second = second.min(time),
                    Some((earliest, _)) => {
                        second = second.min(earliest);
                        first = Some((time, number));
                    }
                    None => first = Some((time, number)),
                }
            }
            let Some((time, number)) = first.filter(|(time, _)| *time <= until) else { return any };
            let head = heads.get(number).copied().unwrap_or(0);
            if !self.read(number, head, second.max(time)) {
                return any;
            }
            any = true;
        }
    }

    /// Rings of threads that are gone, and that were read to their end.
    fn bury(&mut self, ended: &[bool], heads: &[u64]) {
        let now = self.stream.since_start(clock::now());
        let mut number = 0;
        let mut buried = Vec::new();
        self.readers.retain(|reader| {
            let (ended, head) = (ended.get(number).copied(), heads.get(number).copied());
            number += 1;
            let over = ended == Some(true) && head == Some(reader.tail);
            if over {
                buried.push(Arc::clone(&reader.ring));
            }
            !over
        });
        for ring in buried {
            self.tell_dropped(&ring);
            self.keep_counts(&ring);
            self.stream.end_thread(ring.tid, now);
            self.agent.rings.forget(&ring);
        }
    }

    /// Writes what is buffered, if it is so much.
    fn flush(&mut self, enough: usize) -> io::Result<()> {
        // Before what comes behind them.
        for sequence in self.stream.take_breaks() {
            self.session.break_at(sequence);
        }
        for (buffer, socket) in self.stream.buffers().iter_mut().zip(&mut self.sockets) {
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
