//! Answers to the questions that people ask of a recording, one module a question.
//!
//! Each reads a stream item by item, or a profile, and says what it found as a value that serializes: totals and lists,
//! each number with its unit in its name. Times are nanoseconds since the session's start. What a member is called is a
//! contract (docs/report.md).
//!
//! Refuses to: make sentences or columns of it, which is up to whoever shows it.

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

use runtap_nettrace::{Event, IdTable, Item, Metadata, Observe, TraceHeader};
use serde::Serialize;

pub use self::alloc::{AllocReport, AllocSite, AllocatedType};
pub use self::contention::{ContentionReport, WaitSite};
pub use self::counters::{CounterKind, CounterSeries, Counters, CountersReport};
pub use self::cpu::{CpuReport, FrameRow, ThreadRow};
pub use self::diff::{DiffOrder, DiffReport, DiffSide, FrameChange, Shares, Weights};
pub use self::events::{EventRow, EventsReport, ProviderRow};
pub use self::exceptions::{ExceptionType, Exceptions, ExceptionsReport, Thrown};
pub use self::gc::{Collection, Gc, GcReport, HeapSizes};
pub use self::http::{Endpoint, Http, HttpReport, Side};
pub use self::jit::{CompiledMethod, Jit, JitReport, TierCount};
pub use self::kind::Kind;
pub use self::locks::{HandleWait, Locks, LocksReport, Wait};
pub use self::logs::{LogLevelCount, LogMessage, Logs, LogsReport};
pub use self::loss::{Loss, LossReport, ThreadLoss};
pub use self::thread_pool::{Adjustment, ThreadPool, ThreadPoolReport};
use crate::payload::{Decoder, Payload};

/// An answer.
pub trait Report: Serialize {
    /// Keeps the first `n` of each list, which are those that matter most.
    fn limit(&mut self, n: usize);

    /// Whether there is nothing to tell.
    fn is_empty(&self) -> bool;
}

/// Sees a stream, and makes an answer of it.
pub trait Collect: Observe + Default {
    /// The answer.
    type Report: Report;

    /// The answer at the end.
    fn finish(self) -> Self::Report;

    /// The answer so far, as if the stream ended here. It takes the time and the memory that the one at the end would.
    fn snapshot(&self) -> Self::Report;
}

/// Times that things took.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Durations {
    /// How many are known.
    pub timed_count: u64,
    /// Their sum.
    pub total_ns: u64,
    /// The longest.
    pub max_ns: u64,
    /// Half of them took no longer.
    pub p50_ns: u64,
    /// 95 of 100 took no longer.
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

/// A whole number of nanoseconds, if it is one that a wait can take.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "the range was checked")]
pub(crate) fn whole(ns: f64) -> Option<u64> {
    (0.0..1e18).contains(&ns).then_some(ns as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_times_that_were_taken() {
        let durations = Durations::of(vec![5, 1, 2, 4, 3]);
        assert_eq!(durations, Durations { timed_count: 5, total_ns: 15, max_ns: 5, p50_ns: 3, p95_ns: 5 });
        assert_eq!(Durations::of(Vec::new()), Durations::default());
    }
}
