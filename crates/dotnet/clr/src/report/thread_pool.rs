//! Reports the size of the thread pool and the reasons for its changes.

use serde::Serialize;

use super::collector::{Collected, CollectedEvent, Collector, small};
use super::{Collect, Observe, Report, StreamItem};
use crate::clr;

/// The thread pool in a recording.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct ThreadPoolReport {
    /// The minimum number of worker threads, if reported.
    pub min_workers_count: Option<u32>,
    /// The maximum number of worker threads, if reported.
    pub max_workers_count: Option<u32>,
    /// The peak number of worker threads.
    pub workers_peak_count: Option<u32>,
    /// The number of worker threads at the end.
    pub workers_last_count: Option<u32>,
    /// The number of worker threads started.
    pub workers_started_count: u64,
    /// The number of worker threads stopped.
    pub workers_stopped_count: u64,
    /// The number of times that threads were added because all were blocked or no work was completed.
    pub starvation_count: u64,
    /// The number of work items queued. `None` if no event of a work item was recorded.
    pub enqueued_count: Option<u64>,
    /// The number of work items dequeued. `None` if no event of a work item was recorded.
    pub dequeued_count: Option<u64>,
    /// The changes of the target number of threads, in order of time.
    pub adjustments: Vec<Adjustment>,
}

/// A change of the target number of threads.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Adjustment {
    /// The time in nanoseconds since the start of the session.
    pub ts_ns: i64,
    /// The new target number of threads.
    pub workers_count: u32,
    /// The reason.
    pub reason: &'static str,
    /// The number of work items completed per second.
    pub throughput_per_s: f64,
}

#[derive(Debug, Clone)]
enum EventData {
    Limits {
        min: u32,
        max: u32,
    },
    Started(u32),
    Stopped(u32),
    Waits(u32),
    Adjusted {
        workers: u32,
        reason: u32,
        throughput: f64,
    },
    /// A work item was queued or dequeued.
    Work(Step, Source),
}

#[derive(Debug, Clone, Copy)]
enum Step {
    Enqueued,
    Dequeued,
}

/// The source of events about a work item. Items may be reported by more than one.
#[derive(Debug, Clone, Copy)]
enum Source {
    /// The thread pool of managed code.
    Managed,
    /// The thread pool of the runtime.
    Runtime,
    /// Completions of I/O, which the runtime counts separately.
    Completion,
}

/// The events of the managed thread pool's work items.
const FRAMEWORK: &str = "System.Diagnostics.Eventing.FrameworkEventSource";

/// Collects a [`ThreadPoolReport`].
#[derive(Debug)]
pub struct ThreadPool(Collector<EventData>);

impl Default for ThreadPool {
    fn default() -> Self {
        Self(Collector::new(|metadata| match metadata.provider.as_str() {
            clr::RUNTIME => matches!(metadata.event_id, 50 | 51 | 55 | 57 | 59 | 61..=65),
            FRAMEWORK => matches!(metadata.event_id, 30 | 31),
            _ => false,
        }))
    }
}

const STARVATION: u32 = 6;
const COOPERATIVE_BLOCKING: u32 = 8;

fn reason_name(reason: u32) -> &'static str {
    match reason {
        0 => "warmup",
        1 => "initializing",
        2 => "random move",
        3 => "climbing move",
        4 => "change point",
        5 => "stabilizing",
        STARVATION => "starvation",
        7 => "thread timed out",
        COOPERATIVE_BLOCKING => "cooperative blocking",
        _ => "unknown",
    }
}

impl Report for ThreadPoolReport {
    fn limit(&mut self, n: usize) {
        self.adjustments.truncate(n);
    }

    fn is_empty(&self) -> bool {
        self.workers_peak_count.is_none() && self.adjustments.is_empty() && self.enqueued_count.is_none()
    }
}

impl Collect for ThreadPool {
    type Report = ThreadPoolReport;

    fn finish(self) -> ThreadPoolReport {
        report(self.0.finish())
    }

    fn snapshot(&self) -> ThreadPoolReport {
        report(self.0.so_far())
    }
}

fn report((kept, clock): Collected<EventData>) -> ThreadPoolReport {
    let mut report = ThreadPoolReport::default();
    // The numbers of queued and dequeued items, by source.
    let mut work: Option<[[u64; 2]; 3]> = None;
    for CollectedEvent { timestamp, what, .. } in kept {
        let workers = match what {
            EventData::Limits { min, max } => {
                (report.min_workers_count, report.max_workers_count) = (Some(min), Some(max));
                continue;
            }
            EventData::Adjusted { workers, reason, throughput } => {
                report.starvation_count += u64::from(matches!(reason, STARVATION | COOPERATIVE_BLOCKING));
                report.adjustments.push(Adjustment {
                    ts_ns: clock.at(timestamp),
                    workers_count: workers,
                    reason: reason_name(reason),
                    throughput_per_s: if throughput.is_finite() { throughput } else { 0.0 },
                });
                continue;
            }
            EventData::Work(step, source) => {
                let counts = &mut work.get_or_insert_default()[source as usize];
                counts[step as usize] += 1;
                continue;
            }
            EventData::Started(workers) => {
                report.workers_started_count += 1;
                workers
            }
            EventData::Stopped(workers) => {
                report.workers_stopped_count += 1;
                workers
            }
            EventData::Waits(workers) => workers,
        };
        report.workers_last_count = Some(workers);
        report.workers_peak_count = report.workers_peak_count.max(Some(workers));
    }
    let total = |step: Step| {
        let [managed, runtime, completion] = work?.map(|counts| counts[step as usize]);
        Some(managed.max(runtime) + completion)
    };
    (report.enqueued_count, report.dequeued_count) = (total(Step::Enqueued), total(Step::Dequeued));
    report
}

impl Observe for ThreadPool {
    fn item(&mut self, item: &StreamItem<'_>) {
        self.0.item(item, |metadata, _, payload| {
            let active = || small(payload, "ActiveWorkerThreadCount");
            Some(match metadata.event_id {
                30 => EventData::Work(Step::Enqueued, Source::Managed),
                31 => EventData::Work(Step::Dequeued, Source::Managed),
                50 => EventData::Started(active()?),
                51 => EventData::Stopped(active()?),
                55 => EventData::Adjusted {
                    workers: small(payload, "NewWorkerThreadCount")?,
                    reason: small(payload, "Reason")?,
                    throughput: payload.f64("AverageThroughput")?,
                },
                57 => EventData::Waits(active()?),
                59 => EventData::Limits {
                    min: small(payload, "MinWorkerThreads")?,
                    max: small(payload, "MaxWorkerThreads")?,
                },
                61 => EventData::Work(Step::Enqueued, Source::Runtime),
                62 => EventData::Work(Step::Dequeued, Source::Runtime),
                63 | 65 => EventData::Work(Step::Enqueued, Source::Completion),
                _ => EventData::Work(Step::Dequeued, Source::Completion),
            })
        });
    }
}
