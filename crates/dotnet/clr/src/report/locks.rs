//! Reports waits for locks and for other handles: events, tasks, threads.

use foldhash::fast::RandomState;
use hashbrown::HashMap;
use serde::Serialize;

use super::collector::{Collected, CollectedEvent, Collector};
use super::{Collect, Durations, Observe, Report, StreamItem};
use crate::clr;

/// The waits in a recording.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct LocksReport {
    /// The number of waits for locks.
    pub contentions_count: u64,
    /// The number of waits that had not ended when the recording ended.
    pub unfinished_count: u64,
    /// The total duration of those waits in nanoseconds.
    pub unfinished_wait_ns: u64,
    /// The durations of the waits that ended.
    pub waits: Durations,
    /// The waits in order of time.
    pub contentions: Vec<Wait>,
    /// The number of waits for something other than a lock (.NET 9 and later, if these events were recorded). A wait that is part of
    /// a recorded wait for a lock is not counted.
    pub handle_waits_count: u64,
    /// The number of waits that had not ended when the recording ended.
    pub handle_waits_unfinished_count: u64,
    /// The durations of the waits that ended.
    pub handle_wait_times: Durations,
    /// The waits in order of time.
    pub handle_waits: Vec<HandleWait>,
}

/// A wait for a handle: an event, a semaphore, or the end of a task or thread.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct HandleWait {
    /// The start in nanoseconds since the start of the session.
    pub start_ns: i64,
    /// The thread that waited.
    pub thread: u64,
    /// `MonitorWait` for `Monitor.Wait`, otherwise `Unknown`.
    pub source: String,
    /// The object, if the runtime reports it.
    pub object: Option<String>,
    /// The duration in nanoseconds. `None` if the wait did not end.
    pub wait_ns: Option<u64>,
}

/// A wait for a lock.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Wait {
    /// The start in nanoseconds since the start of the session.
    pub start_ns: i64,
    /// The thread that waited.
    pub thread: u64,
    /// The thread that owned the lock, if the runtime reports it.
    pub owner_thread: Option<u64>,
    /// The lock, if the runtime reports it.
    pub lock: Option<String>,
    /// The duration in nanoseconds. `None` if the wait did not end.
    pub wait_ns: Option<u64>,
}

#[derive(Debug, Clone)]
enum LockEvent {
    Wanted { owner: Option<u64>, lock: Option<u64> },
    Taken { ns: Option<f64> },
    Waits { source: String, object: Option<u64> },
    Continues,
}

/// Collects a [`LocksReport`].
#[derive(Debug)]
pub struct Locks {
    collector: Collector<LockEvent>,
    /// The time of the last event of any kind.
    end: u64,
}

impl Default for Locks {
    fn default() -> Self {
        let collector = Collector::new(|metadata| {
            metadata.provider == clr::RUNTIME && matches!(metadata.event_id, 81 | 91 | 301 | 302)
        });
        Self { collector, end: 0 }
    }
}

impl Report for LocksReport {
    fn limit(&mut self, n: usize) {
        self.contentions.truncate(n);
        self.handle_waits.truncate(n);
    }

    fn is_empty(&self) -> bool {
        self.contentions_count + self.handle_waits_count == 0
    }
}

impl Collect for Locks {
    type Report = LocksReport;

    fn finish(self) -> LocksReport {
        report(self.collector.finish(), self.end)
    }

    fn snapshot(&self) -> LocksReport {
        report(self.collector.so_far(), self.end)
    }
}

fn report((kept, clock): Collected<LockEvent>, end: u64) -> LocksReport {
    let mut report = LocksReport::default();
    // The index of the wait of each thread.
    let mut waiting: HashMap<u64, (usize, u64), RandomState> = HashMap::default();
    let mut waits = Vec::new();
    // Waits nest, because a wait may run other code. `None` for a wait that is part of a wait for a lock.
    let mut within: HashMap<u64, Vec<Option<(usize, u64)>>, RandomState> = HashMap::default();
    let mut handle_waits = Vec::new();
    for CollectedEvent { timestamp, thread, what } in kept {
        match what {
            LockEvent::Wanted { owner, lock } => {
                waiting.insert(thread, (report.contentions.len(), timestamp));
                report.contentions.push(Wait {
                    start_ns: clock.at(timestamp),
                    thread,
                    owner_thread: owner,
                    lock: lock.map(|lock| format!("{lock:#x}")),
                    wait_ns: None,
                });
            }
            LockEvent::Taken { ns } => {
                let Some((index, start)) = waiting.remove(&thread) else { continue };
                let ns = ns.and_then(super::whole).unwrap_or_else(|| clock.ns(start, timestamp));
                waits.push(ns);
                if let Some(wait) = report.contentions.get_mut(index) {
                    wait.wait_ns = Some(ns);
                }
            }
            LockEvent::Waits { .. } if waiting.contains_key(&thread) => {
                within.entry(thread).or_default().push(None);
            }
            LockEvent::Waits { source, object } => {
                within.entry(thread).or_default().push(Some((report.handle_waits.len(), timestamp)));
                report.handle_waits.push(HandleWait {
                    start_ns: clock.at(timestamp),
                    thread,
                    source,
                    object: object.map(|object| format!("{object:#x}")),
                    wait_ns: None,
                });
            }
            LockEvent::Continues => {
                let Some((index, start)) = within.get_mut(&thread).and_then(Vec::pop).flatten() else {
                    continue;
                };
                let ns = clock.ns(start, timestamp);
                handle_waits.push(ns);
                if let Some(wait) = report.handle_waits.get_mut(index) {
                    wait.wait_ns = Some(ns);
                }
            }
        }
    }
    let count = |n: usize| u64::try_from(n).unwrap_or(u64::MAX);
    report.contentions_count = count(report.contentions.len());
    report.unfinished_count = report.contentions_count - count(waits.len());
    report.unfinished_wait_ns =
        waiting.into_values().fold(0, |sum: u64, (_, start)| sum.saturating_add(clock.ns(start, end)));
    report.waits = Durations::of(waits);
    report.handle_waits_count = count(report.handle_waits.len());
    report.handle_waits_unfinished_count = report.handle_waits_count - count(handle_waits.len());
    report.handle_wait_times = Durations::of(handle_waits);
    report
}

impl Observe for Locks {
    fn item(&mut self, item: &StreamItem<'_>) {
        if let StreamItem::Event(event) = item {
            self.end = self.end.max(event.timestamp);
        }
        self.collector.item(item, |metadata, _, payload| {
            let known = |name| payload.u64(name).filter(|number| *number != 0);
            Some(match metadata.event_id {
                81 => LockEvent::Wanted { owner: known("LockOwnerThreadID"), lock: known("LockID") },
                91 => LockEvent::Taken { ns: payload.f64("DurationNs") },
                301 => LockEvent::Waits {
                    source: payload.name("WaitSource").unwrap_or_default().into_owned(),
                    object: known("AssociatedObjectID"),
                },
                _ => LockEvent::Continues,
            })
        });
    }
}
