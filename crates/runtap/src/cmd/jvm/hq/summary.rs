//! Periodic summary lines, one per agent: its mode and the calls since the previous summary. For agents that send counts, the
//! calls are taken from their snapshots.

use std::collections::BTreeMap;
use std::time::Instant;

use runtap_bytefrog::Counters;
use runtap_bytefrog::hq::{AgentId, Hq};
use runtap_text::units::{Count, Things};

use super::watch::Watch;

/// The state of the previous summary.
#[derive(Debug)]
pub(super) struct Summaries {
    before: BTreeMap<AgentId, u64>,
    at: Instant,
}

impl Summaries {
    /// Starts counting at this time.
    pub(super) fn new(at: Instant) -> Self {
        Self { before: BTreeMap::new(), at }
    }

    /// Returns a line for each agent that has not ended.
    pub(super) fn lines(&mut self, hq: &Hq, watch: &Watch, now: Instant) -> Vec<String> {
        let millis = now.duration_since(self.at).as_millis().max(1);
        self.at = now;
        let mut lines = Vec::new();
        for state in hq.agents() {
            let Some(facts) = watch.facts(state.id).filter(|facts| !facts.finished) else {
                self.before.remove(&state.id);
                continue;
            };
            let Ok((counters, waiting)) = hq.counters(state.id) else { continue };
            let before = self.before.insert(state.id, counters.calls()).unwrap_or(0);
            let rate = u128::from(counters.calls().saturating_sub(before)) * 1000 / millis;
            let queue = facts.last_heartbeat.map_or(0, |(_, queue)| queue);
            lines.push(format!(
                "agent {}: {}, {} ({}/s), {}{}{}{}",
                state.id.0,
                facts.last_heartbeat.and_then(|(mode, _)| mode.mode()).unwrap_or(state.state.mode),
                Things(counters.calls(), "call"),
                Count(u64::try_from(rate).unwrap_or(u64::MAX)),
                Things(counters.exceptions, "exception"),
                missing(&counters),
                if waiting > 0 {
                    format!(", {} ahead of others", Things(waiting as u64, "event"))
                } else {
                    String::new()
                },
                if queue > 0 {
                    format!(", {} wait in the program", Things(queue.into(), "buffer"))
                } else {
                    String::new()
                },
            ));
        }
        lines
    }
}

/// Returns the number of missing events as text; empty if none are missing.
fn missing(counters: &Counters) -> String {
    let lost = counters.missing.saturating_add(counters.dropped);
    if lost > 0 { format!(", {} missing", Things(lost, "event")) } else { String::new() }
}
