//! Data missing from a trace or its recording, and the protocol rules that were broken.

use runtap_bytefrog::Report;
use serde::Serialize;

use super::load::LoadedAgent;

#[derive(Debug, Serialize)]
pub(super) struct Losses {
    pub(super) missing: u64,
    pub(super) gaps: u64,
    pub(super) repeated: u64,
    pub(super) dropped: u64,
    pub(super) drops_of_unknown_size: u64,
    /// Threads that were too fast for the collector, and their calls that were therefore only counted.
    pub(super) degraded_threads: u64,
    pub(super) untimed_entries: u64,
    pub(super) data_breaks: u64,
    /// Events that were not recorded because recording was suspended; not a loss.
    pub(super) suspended: u64,
    pub(super) suspensions: u64,
    pub(super) ends_without_beginning: u64,
    /// Calls that are not in the call tree.
    pub(super) untold: u64,
    pub(super) without_room: u64,
    pub(super) too_deep: u64,
    pub(super) cut_calls: u64,
    pub(super) open_calls: u64,
    pub(super) damage: Vec<DamageRow>,
    /// Connections whose end is not in the recording.
    pub(super) unfinished: Vec<String>,
    pub(super) errors: Vec<String>,
    pub(super) rules: Vec<RuleRow>,
}

#[derive(Debug, Serialize)]
pub(super) struct DamageRow {
    pub(super) stream: String,
    pub(super) offset: u64,
    pub(super) reason: String,
}

#[derive(Debug, Serialize)]
pub(super) struct RuleRow {
    pub(super) id: &'static str,
    pub(super) severity: String,
    pub(super) summary: &'static str,
    pub(super) count: u64,
    pub(super) first: Vec<String>,
}

/// Returns everything that limits the accuracy of the numbers.
pub(super) fn losses(agent: &LoadedAgent, report: &Report) -> Losses {
    let replayed = &agent.replayed;
    let tree = replayed.model.call_tree(None);
    let broken = agent.broken().with_report(report);
    let rules = broken.rules().iter().map(|finding| RuleRow {
        id: finding.rule.id(),
        severity: finding.rule.severity().to_string(),
        summary: finding.rule.summary(),
        count: finding.count,
        first: finding.first.clone(),
    });
    let counters = &report.counters;
    Losses {
        missing: counters.missing,
        gaps: counters.gaps,
        repeated: counters.repeated,
        dropped: counters.dropped,
        drops_of_unknown_size: counters.drops_unknown,
        degraded_threads: counters.degraded,
        untimed_entries: counters.counted_besides(),
        data_breaks: counters.data_breaks,
        suspended: counters.suspended,
        suspensions: counters.suspensions,
        ends_without_beginning: counters.orphans,
        untold: report.without_node,
        without_room: report.beyond,
        too_deep: report.too_deep,
        cut_calls: tree.rows.iter().map(|row| row.cut).sum(),
        open_calls: tree.rows.iter().map(|row| row.open).sum(),
        damage: replayed
            .damage
            .iter()
            .map(|damage| DamageRow {
                stream: damage.stream.to_string(),
                offset: damage.offset,
                reason: damage.reason.clone(),
            })
            .collect(),
        unfinished: replayed.unfinished.iter().map(ToString::to_string).collect(),
        errors: replayed.errors.clone(),
        rules: rules.collect(),
    }
}
