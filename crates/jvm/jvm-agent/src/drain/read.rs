//! Passes events from rings to the stream in their order, and reports where events are missing.
//!
//! Owns: how far each ring is read. Does not know sessions, sockets or modes.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use runtap_bytefrog_proto::f1::{Drop as DropMessage, DropReason};

use crate::clock;
use crate::losses::Loss;
use crate::ring::{CAPACITY, EventKind, Ring, line_of, method_of};
use crate::stream::{Event, Stream};

/// A ring and how far it is read.
pub(super) struct Reader {
    pub(super) ring: Arc<Ring>,
    pub(super) tail: u64,
    pub(super) limit: u64,
    /// The thread to which the next events belong.
    tid: u64,
    /// Dropped events of the ring's own thread that were reported or that belong to an earlier trace.
    dropped: u64,
    /// Whether the thread has switched to counts and the stream has reported it.
    degraded: bool,
    /// Whether the stream has reported that virtual threads on this carrier are only counted.
    has_reported_losses: bool,
}

/// All rings, and the stream that receives their events.
pub(super) struct Reading {
    pub(super) readers: Vec<Reader>,
    pub(super) stream: Stream,
    /// Whether events are discarded.
    pub(super) is_suspended: bool,
    /// Whether a carrier only counts the calls of virtual threads.
    pub(super) carrier_is_degraded: bool,
}

impl Reader {
    /// Reports the dropped events of the thread that no event in the ring reports yet.
    pub(super) fn report_dropped(&mut self, stream: &mut Stream) {
        let dropped = self.ring.dropped.load(Ordering::Acquire);
        if dropped > self.dropped {
            let time = stream.since_start(self.ring.dropped_since.load(Ordering::Relaxed));
            let count = dropped - std::mem::replace(&mut self.dropped, dropped);
            stream.drop_events(self.ring.tid, Some(&self.ring.name), time, count, DropReason::FULL);
        }
    }
}

impl Reading {
    pub(super) fn new(stream: Stream) -> Self {
        Self { readers: Vec::new(), stream, is_suspended: false, carrier_is_degraded: false }
    }

    /// Starts to read a ring; in an old ring, from its current head.
    pub(super) fn adopt(&mut self, ring: Arc<Ring>, old: bool) {
        let mut dropped = 0;
        if old {
            ring.degraded.store(false, Ordering::Relaxed);
            dropped = ring.dropped.load(Ordering::Acquire);
            drop(ring.take_losses());
        }
        ring.adopted.store(true, Ordering::Relaxed);
        let tail = if old { ring.begin_reading() } else { 0 };
        let (limit, tid) = (ring.limit(), ring.current().load(Ordering::Relaxed));
        let tid = if old { tid } else { ring.tid };
        self.readers.push(Reader {
            ring,
            tail,
            limit,
            tid,
            dropped,
            degraded: false,
            has_reported_losses: false,
        });
    }

    /// Returns how far each ring is written.
    pub(super) fn heads(&self) -> Vec<u64> {
        self.readers.iter().map(|one| one.ring.head()).collect()
    }

    /// Reports events of virtual threads that did not fit into the rings of their carriers. Call this after reading the heads
    /// of a round: a virtual thread runs sequentially, so losses before an event below the heads are visible then.
    pub(super) fn take_losses(&mut self) {
        for reader in &mut self.readers {
            let ring = &reader.ring;
            if !ring.carries.load(Ordering::SeqCst) {
                continue;
            }
            let since_start = |loss: Loss, stream: &Stream| Loss {
                first: stream.since_start(loss.first),
                last: stream.since_start(loss.last),
                ..loss
            };
            let losses = ring.take_losses();
            for (tid, loss) in losses.of {
                let loss = since_start(loss, &self.stream);
                self.stream.lose(Some(tid), loss);
            }
            if let Some(others) = losses.others {
                let others = since_start(others, &self.stream);
                // The number of losses is reported here, because the affected threads are unknown.
                let (name, time) = (Some(ring.name.as_slice()), others.first);
                self.stream.drop_events(ring.tid, name, time, others.count, DropReason::FULL);
                self.stream.lose(None, Loss { count: 0, ..others });
            }
            if ring.degraded.load(Ordering::Acquire) && !reader.has_reported_losses {
                reader.has_reported_losses = true;
                self.carrier_is_degraded = true;
                let first = self.stream.since_start(ring.dropped_since.load(Ordering::Relaxed));
                self.stream.lose(None, Loss { first, last: u64::MAX, count: DropMessage::UNKNOWN });
            }
        }
    }

    /// Reports the threads that have switched to counts. Returns whether there are any.
    pub(super) fn report_degraded(&mut self) -> bool {
        let mut any = false;
        for reader in &mut self.readers {
            let degraded = reader.ring.degraded.load(Ordering::Acquire);
            if degraded && !reader.degraded && reader.ring.head() == reader.tail {
                reader.degraded = true;
                any = true;
                let time = self.stream.since_start(reader.ring.dropped_since.load(Ordering::Relaxed));
                let name = (reader.tid == reader.ring.tid).then_some(reader.ring.name.as_slice());
                self.stream.drop_events(reader.tid, name, time, DropMessage::UNKNOWN, DropReason::DEGRADED);
            }
        }
        any
    }

    /// Reads a ring up to a head, or to an event that is later than `until`.
    pub(super) fn read(&mut self, number: usize, head: u64, until: u64) -> bool {
        let Some(reader) = self.readers.get_mut(number) else { return false };
        let (ring, mut tid) = (Arc::clone(&reader.ring), reader.tid);
        if head.saturating_sub(reader.tail) > CAPACITY {
            // The ring was created while rings were not read, so it had no limit yet.
            reader.tail = head;
            let (time, name) =
                (self.stream.since_start(clock::now()), (tid == ring.tid).then_some(ring.name.as_slice()));
            self.stream.drop_events(tid, name, time, DropMessage::UNKNOWN, DropReason::FULL);
            if ring.carries.load(Ordering::SeqCst) {
                self.stream.lose(None, Loss { first: 0, last: time, count: DropMessage::UNKNOWN });
            }
            return true;
        }
        let mut at = reader.tail;
        let (began, suspended) = (at, self.is_suspended);
        let mut dropped = reader.dropped;
        let mut discarded = 0;
        let mut discarded_since = 0;
        while at < head {
            let event = ring.event(at);
            if event.time > until {
                break;
            }
            let name = (tid == ring.tid).then_some(ring.name.as_slice());
            let kind = EventKind::of(event.word).unwrap_or(EventKind::More);
            let more = || ring.event(at + 1).time;
            let time = self.stream.since_start(event.time);
            at += match kind {
                EventKind::Switch => {
                    if discarded > 0 {
                        self.stream.discard(tid, name, discarded_since, std::mem::take(&mut discarded));
                    }
                    tid = more();
                    2
                }
                EventKind::Drop => {
                    let reason = DropReason(u8::try_from(method_of(event.word)).unwrap_or(u8::MAX));
                    let count = more().saturating_sub(dropped);
                    dropped = dropped.max(more());
                    if count > 0 {
                        self.stream.drop_events(ring.tid, Some(&ring.name), time, count, reason);
                    }
                    2
                }
                EventKind::Standing => {
                    if !suspended {
                        self.stream.settle(tid, name, time, method_of(event.word), more());
                    }
                    2
                }
                EventKind::More | EventKind::Count | EventKind::CountThrown => 1,
                EventKind::Constructed if suspended => 1,
                EventKind::Entry
                | EventKind::Exit
                | EventKind::Throw
                | EventKind::Bubble
                | EventKind::Called
                | EventKind::Constructed => {
                    let long = matches!(kind, EventKind::Throw | EventKind::Bubble);
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
            reader.dropped = dropped;
        }
        at > began
    }

    /// Reads rings of carriers together, in order of time, because a virtual thread changes carriers.
    pub(super) fn merge(&mut self, carriers: &[usize], heads: &[u64], until: u64) -> bool {
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
}
