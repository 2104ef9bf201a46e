//! The thread pool: how many threads, and why there were more or fewer.

use serde::Serialize;

use super::collector::{Collector, Found, Kept, small};
use super::{Collect, Item, Observe, Report};
use crate::clr;

/// What a recording says about the thread pool.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct ThreadPoolReport {
    /// The limits of its threads, if the runtime told them.
    pub min_workers_count: Option<u32>,
    /// The upper limit.
    pub max_workers_count: Option<u32>,
    /// The most threads that it had.
    pub workers_peak_count: Option<u32>,
    /// The number of its threads at the end.
    pub workers_last_count: Option<u32>,
    /// How often a thread was started.
    pub workers_started_count: u64,
    /// How often a thread was ended.
    pub workers_stopped_count: u64,
    /// How often it was given more threads because its threads were blocked, or no work got done.
    pub starvation_count: u64,
    /// The number of work items that were queued. `None` if no event of a work item was recorded.
    pub enqueued_count: Option<u64>,
    /// The number of work items that were taken. `None` if no event of a work item was recorded.
    pub dequeued_count: Option<u64>,
    /// Decisions on the number of threads, in the order of time.
    pub adjustments: Vec<Adjustment>,
}

/// A decision.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Adjustment {
    /// When.
    pub ts_ns: i64,
    /// How many threads there shall be.
    pub workers_count: u32,
    /// Why.
    pub reason: &'static str,
    /// Work items done in a second.
    pub throughput_per_s: f64,
}

#[derive(Debug, Clone)]
enum What {
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
    /// A work item was queued or taken.
    Work(Step, Source),
}

#[derive(Debug, Clone, Copy)]
enum Step {
    Enqueued,
    Dequeued,
}

/// Which events count a work item. A program may have both for the same items.
#[derive(Debug, Clone, Copy)]
enum Source {
    /// The thread pool of managed code.
    Managed,
    /// The runtime's own.
    Runtime,
    /// Completions of I/O, which the runtime counts apart.
    Completion,
}

/// The events of the managed thread pool's work items.
const FRAMEWORK: &str = "System.Diagnostics.Eventing.FrameworkEventSource";

/// Makes a [`ThreadPoolReport`].
#[derive(Debug)]
pub struct ThreadPool(Collector<What>);

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

fn report((kept, clock): Found<What>) -> ThreadPoolReport {
    let mut report = ThreadPoolReport::default();
    // By source: how many were queued, and taken.
    let mut work: Option<[[u64; 2]; 3]> = None;
    for Kept { timestamp, what, .. } in kept {
        let workers = match what {
            What::Limits { min, max } => {
                (report.min_workers_count, report.max_workers_count) = (Some(min), Some(max));
                continue;
            }
            What::Adjusted { workers, reason, throughput } => {
                report.starvation_count += u64::from(matches!(reason, STARVATION | COOPERATIVE_BLOCKING));
                report.adjustments.push(Adjustment {
                    ts_ns: clock.at(timestamp),
                    workers_count: workers,
                    reason: reason_name(reason),
                    throughput_per_s: if throughput.is_finite() { throughput } else { 0.0 },
                });
                continue;
            }
            What::Work(step, source) => {
                let counts = &mut work.get_or_insert_default()[source as usize];
                counts[step as usize] += 1;
                continue;
            }
            What::Started(workers) => {
                report.workers_started_count += 1;
                workers
            }
            What::Stopped(workers) => {
                report.workers_stopped_count += 1;
                workers
            }
            What::Waits(workers) => workers,
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
    fn item(&mut self, item: &Item<'_>) {
        self.0.item(item, |metadata, _, payload| {
            let active = || small(payload, "ActiveWorkerThreadCount");
            Some(match metadata.event_id {
                30 => What::Work(Step::Enqueued, Source::Managed),
                31 => What::Work(Step::Dequeued, Source::Managed),
                50 => What::Started(active()?),
                51 => What::Stopped(active()?),
                55 => What::Adjusted {
                    workers: small(payload, "NewWorkerThreadCount")?,
                    reason: small(payload, "Reason")?,
                    throughput: payload.f64("AverageThroughput")?,
                },
                57 => What::Waits(active()?),
                59 => What::Limits {
                    min: small(payload, "MinWorkerThreads")?,
                    max: small(payload, "MaxWorkerThreads")?,
                },
                61 => What::Work(Step::Enqueued, Source::Runtime),
                62 => What::Work(Step::Dequeued, Source::Runtime),
                63 | 65 => What::Work(Step::Enqueued, Source::Completion),
                _ => What::Work(Step::Dequeued, Source::Completion),
            })
        });
    }
}
