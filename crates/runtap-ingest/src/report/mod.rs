//! Answers to the questions that people ask of a recording, one module a question.
//!
//! Each reads a stream item by item and says at its end what it found, as a value that serializes: totals and a list,
//! each number with its unit in its name. Times are nanoseconds since the session's start.
//!
//! Refuses to: cut lists short, which is up to whoever shows them.

mod collector;
mod counters;
mod exceptions;
mod gc;
mod http;
mod jit;
mod locks;
mod logs;
mod loss;
mod thread_pool;

use runtap_nettrace::{Event, Item, Metadata, Observe, TraceHeader};
use serde::Serialize;

pub use self::counters::{CounterKind, CounterSeries, Counters, CountersReport};
pub use self::exceptions::{ExceptionType, Exceptions, ExceptionsReport, Thrown};
pub use self::gc::{Collection, Gc, GcReport, HeapSizes};
pub use self::http::{Endpoint, Http, HttpReport, Side};
pub use self::jit::{CompiledMethod, Jit, JitReport, TierCount};
pub use self::locks::{HandleWait, Locks, LocksReport, Wait};
pub use self::logs::{LogLevelCount, LogMessage, Logs, LogsReport};
pub use self::loss::{Loss, LossReport, ThreadLoss};
pub use self::thread_pool::{Adjustment, ThreadPool, ThreadPoolReport};
use crate::payload::{Decoder, Payload};

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
