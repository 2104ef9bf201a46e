//! The log of a collector: lines about its agents, and summaries from time to time.

use std::pin::pin;
use std::time::Duration;

use runtap_bytefrog::hq::Hq;
use runtap_jvm::agents::AgentWatch;
use tokio::time::{Instant, MissedTickBehavior, interval_at};

use super::agents::{AgentRates, notice_messages};
use crate::Output;

/// Longer than any collection: timers cannot be set to arbitrary times.
const NEVER: Duration = Duration::from_hours(24 * 365);

/// The log of a collector.
#[derive(Debug, Clone, Copy)]
pub struct AgentLog {
    /// Whether the log ends when the first agent has ended.
    pub once: bool,
    /// The interval of summaries; zero for none.
    pub interval: Duration,
}

impl AgentLog {
    /// Prints the log until `end`, or the first agent has ended.
    pub async fn show(self, hq: &Hq, watch: &AgentWatch, end: impl Future<Output = ()>, output: Output) {
        let mut end = pin!(end);
        let begin = Instant::now();
        let mut rates = AgentRates::new(begin.into_std());
        let interval = if self.interval.is_zero() { NEVER } else { self.interval.min(NEVER) };
        let mut summary = interval_at(begin + interval, interval);
        summary.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                biased;
                () = &mut end => return,
                () = watch.news.notified() => output.messages(notice_messages(watch)),
                _ = summary.tick() => {
                    output.messages(notice_messages(watch));
                    for line in rates.lines(hq, watch, std::time::Instant::now()) {
                        output.note(line);
                    }
                }
            }
            if self.once && watch.one_has_finished() {
                return;
            }
        }
    }
}
