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
    /// How many work items were queued, if that was recorded.
    pub enqueued_count: u64,
    /// How many were taken.
    pub dequeued_count: u64,
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
    Limits { min: u32, max: u32 },
    Started(u32),
    Stopped(u32),
    Waits(u32),
    Adjusted { workers: u32, reason: u32, throughput: f64 },
    Enqueued,
    Dequeued,
}

/// Makes a [`ThreadPoolReport`].
#[derive(Debug)]
pub struct ThreadPool(Collector<What>);

impl Default for ThreadPool {
    fn default() -> Self {
        Self(Collector::new(|metadata| {
            metadata.provider == clr::RUNTIME && matches!(metadata.event_id, 50 | 51 | 55 | 57 | 59 | 61 | 62)
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
        self.workers_peak_count.is_none() && self.adjustments.is_empty() && self.enqueued_count == 0
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
            What::Enqueued => {
                report.enqueued_count += 1;
                continue;
            }
            What::Dequeued => {
                report.dequeued_count += 1;
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
    report
}

impl Observe for ThreadPool {
    fn item(&mut self, item: &Item<'_>) {
        self.0.item(item, |metadata, _, payload| {
            let active = || small(payload, "ActiveWorkerThreadCount");
            Some(match metadata.event_id {
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
                61 => What::Enqueued,
                _ => What::Dequeued,
            })
        });
    }
}
