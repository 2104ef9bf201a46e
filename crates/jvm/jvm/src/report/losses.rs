//! Data missing from a trace or its recording, and the protocol rules that were broken.

use runtap_bytefrog::Report;
use serde::Serialize;

use crate::recording::LoadedAgent;

/// Everything that limits the accuracy of the numbers of an agent.
#[derive(Debug, Serialize)]
pub struct Losses {
    /// The number of events that never arrived.
    pub missing: u64,
    /// The number of gaps in the sequence of events.
    pub gaps: u64,
    /// The number of events whose number was used before, or given up.
    pub repeated: u64,
    /// The number of events that the agent dropped and counted.
    pub dropped: u64,
    /// The number of drops whose events the agent did not count.
    pub drops_of_unknown_size: u64,
    /// The number of threads that were too fast for the collector.
    pub degraded_threads: u64,
    /// The number of calls that were only counted, because the collector was too slow.
    pub untimed_entries: u64,
    /// The number of breaks in which nothing was recorded.
    pub data_breaks: u64,
    /// The number of events that were not recorded because recording was suspended; not a loss.
    pub suspended: u64,
    /// The number of suspensions of recording.
    pub suspensions: u64,
    /// The number of ends of calls that had not started.
    pub ends_without_beginning: u64,
    /// The number of calls that are not in the call tree.
    pub untold: u64,
    /// The number of events that exceeded the capacity of a table.
    pub without_room: u64,
    /// The number of calls that are deeper than stacks are kept.
    pub too_deep: u64,
    /// The number of calls whose end was not received.
    pub cut_calls: u64,
    /// The number of calls that had not ended.
    pub open_calls: u64,
    /// The damage of the recording.
    pub damage: Vec<DamageRow>,
    /// Connections whose end is not in the recording.
    pub unfinished: Vec<String>,
    /// The errors that the agent reported.
    pub errors: Vec<String>,
    /// The protocol rules that were broken.
    pub rules: Vec<RuleRow>,
}

/// Damage that ends a stream of a recording.
#[derive(Debug, Serialize)]
pub struct DamageRow {
    /// The stream.
    pub stream: String,
    /// The offset in the bytes of the stream.
    pub offset: u64,
    /// The reason.
    pub reason: String,
}

/// A protocol rule that was broken.
#[derive(Debug, Serialize)]
pub struct RuleRow {
    /// The id of the rule.
    pub id: &'static str,
    /// The severity of the rule.
    pub severity: String,
    /// The rule in one sentence.
    pub summary: &'static str,
    /// The number of violations.
    pub count: u64,
    /// Descriptions of the first violations.
    pub first: Vec<String>,
}

impl Losses {
    /// Returns the losses of an agent with this report.
    pub fn new(agent: &LoadedAgent, report: &Report) -> Self {
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
        Self {
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
}
