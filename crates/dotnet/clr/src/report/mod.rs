//! Reports about a recording, one module per kind.
//!
//! Each report reads a stream item by item, or a profile, and returns a serializable value: totals and lists, in which the name of
//! each number includes its unit. Times are nanoseconds since the start of the session. The names of members are stable
//! (docs/report.md).
//!
//! The values contain no sentences or tables; how they are shown is up to the caller.

mod alloc;
mod collector;
mod contention;
mod counters;
mod cpu;
mod diff;
mod events;
mod exceptions;
mod gc;
mod http;
mod http_runs;
mod jit;
mod kind;
mod locks;
mod logs;
mod loss;
mod places;
mod thread_pool;

use runtap_nettrace::{Event, IdTable, Metadata, Observe, StreamItem, TraceHeader};
use serde::Serialize;

pub use self::alloc::{AllocReport, AllocSite, AllocatedType};
pub use self::contention::{ContentionReport, WaitSite};
pub use self::counters::{CounterSeries, Counters, CountersReport};
pub use self::cpu::{CpuReport, FrameRow, ThreadRow};
pub use self::diff::{DiffOrder, DiffReport, DiffSide, FrameChange, Shares, Weights};
pub use self::events::{EventRow, EventsReport, ProviderRow};
pub use self::exceptions::{ExceptionType, Exceptions, ExceptionsReport, Thrown};
pub use self::gc::{Collection, Gc, GcReport, HeapSizes};
pub use self::http::{Endpoint, Http, HttpReport, Side};
pub use self::jit::{CompiledMethod, Jit, JitReport, TierCount};
pub use self::kind::ReportKind;
pub use self::locks::{HandleWait, Locks, LocksReport, Wait};
pub use self::logs::{LogLevelCount, LogMessage, Logs, LogsReport};
pub use self::loss::{Loss, LossReport, ThreadLoss};
pub use self::thread_pool::{Adjustment, ThreadPool, ThreadPoolReport};
use crate::payload::{Decoder, Payload};
pub use runtap_model::counters::CounterKind;

/// A serializable report.
pub trait Report: Serialize {
    /// Truncates each list to its first `n` elements, which are the most relevant ones.
    fn limit(&mut self, n: usize);

    /// Whether the report is empty.
    fn is_empty(&self) -> bool;
}

/// Reads a stream and creates a report.
pub trait Collect: Observe + Default {
    /// The type of the report.
    type Report: Report;

    /// Returns the report at the end.
    fn finish(self) -> Self::Report;

    /// Returns the report so far, as if the stream ended here. Takes as much time and memory as the final report.
    fn snapshot(&self) -> Self::Report;
}

/// Statistics of durations.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Durations {
    /// The number of known durations.
    pub timed_count: u64,
    /// Their sum in nanoseconds.
    pub total_ns: u64,
    /// The maximum in nanoseconds.
    pub max_ns: u64,
    /// The median in nanoseconds.
    pub p50_ns: u64,
    /// The 95th percentile in nanoseconds.
    pub p95_ns: u64,
}

impl Durations {
    fn of(mut all: Vec<u64>) -> Self {
        all.sort_unstable();
        let at = |share: usize| {
            let last = all.len().saturating_sub(1);
            all.get(last.saturating_mul(share).div_ceil(100)).copied().unwrap_or_default()
        };
        Self {
            timed_count: u64::try_from(all.len()).unwrap_or(u64::MAX),
            total_ns: all.iter().fold(0, |sum, ns| sum.saturating_add(*ns)),
            max_ns: at(100),
            p50_ns: at(50),
            p95_ns: at(95),
        }
    }
}

/// Converts to a whole number of nanoseconds, if it is a valid duration.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "the range was checked")]
pub(crate) fn whole(ns: f64) -> Option<u64> {
    (0.0..1e18).contains(&ns).then_some(ns as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_actual_durations() {
        let durations = Durations::of(vec![5, 1, 2, 4, 3]);
        assert_eq!(durations, Durations { timed_count: 5, total_ns: 15, max_ns: 5, p50_ns: 3, p95_ns: 5 });
        assert_eq!(Durations::of(Vec::new()), Durations::default());
    }
}
