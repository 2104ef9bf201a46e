//! The end of a collection: stopping the agents, and what they have sent.

use std::collections::BTreeSet;

use runtap_bytefrog::hq::{AgentId, AgentStatus, Hq};
use runtap_bytefrog::{CombinedReport, Report};
use runtap_bytefrog_proto::{Dialect, Mode};
use runtap_model::order;

use super::{AgentFacts, AgentWatch};
use crate::recording::ClassCounts;

/// Returns the agents that have not ended, with their states.
pub(super) fn unfinished_agents(hq: &Hq, watch: &AgentWatch) -> Vec<AgentStatus> {
    let has_ended = |id| watch.facts(id).is_none_or(|facts| facts.finished);
    hq.agents().into_iter().filter(|status| !has_ended(status.id)).collect()
}

/// Stops agents. First starts those that have not started: the original agents never end while their program waits for
/// the start. Blocks while an agent does not read.
pub(super) fn stop_agents(hq: &Hq, agents: &[AgentStatus]) {
    for agent in agents {
        if !agent.state.started {
            // If this fails, the connection is gone and the next command fails too.
            let _ = hq.change_mode(agent.id, Mode::Tracing);
        }
        let _ = hq.change_mode(agent.id, Mode::ShuttingDown);
    }
}

/// The data of an agent.
#[derive(Debug, Clone)]
pub struct AgentResult {
    /// The agent.
    pub id: AgentId,
    /// The facts.
    pub facts: AgentFacts,
    /// The report on its trace.
    pub report: Report,
}

/// The data of all agents of a collection.
#[derive(Debug, Clone)]
pub struct CollectionResult {
    /// The agents that the collector has kept.
    pub agents: Vec<AgentResult>,
    /// If the collector has dropped agents: the number of all agents, and their combined report.
    pub combined: Option<(u64, Report)>,
    /// The sums of classes of all agents.
    pub classes: ClassCounts,
    /// The number of agents that were dropped before they had ended: their data is in no report.
    pub left_out: u64,
    /// The number of connections rejected at a limit: their data is in no report.
    pub refused: u64,
    /// The number of agents that were disconnected to make room.
    pub displaced: u64,
    /// The number of agents that had not ended.
    pub unfinished: u64,
    /// Whether data of any agent is known to be missing.
    has_losses: bool,
}

impl CollectionResult {
    /// Collects the data after the collector has closed. `sends_counts` is whether agents send counts or coverage at
    /// intervals, and `unfinished` the number of agents that had not ended when it closed.
    pub(super) fn of(hq: &Hq, watch: &AgentWatch, sends_counts: bool, unfinished: u64) -> Self {
        let agents = hq.agents();
        let own = order::to_set(agents.iter().filter(|status| status.is_own).map(|status| status.id));
        let result = |status: AgentStatus| {
            let facts = watch.facts(status.id)?;
            let report = hq.report(status.id).ok()?;
            let unsent = sends_counts && report.dialect == Dialect::F1 && facts.ended_early();
            Some(AgentResult { id: status.id, facts, report: Report { unsent, ..report } })
        };
        let agents: Vec<AgentResult> = agents.into_iter().filter_map(result).collect();
        let former = [true, false].map(|own| hq.former(own));
        let left_out = watch.connected_agents().saturating_sub(agents.len() as u64);
        let left_out = former.iter().flatten().fold(left_out, |left, (count, _)| left.saturating_sub(*count));
        let has_losses = watch.is_partial()
            || former.iter().flatten().any(|(_, report)| report.has_losses())
            || agents.iter().any(|agent| agent.report.has_losses());
        let combined = former.iter().any(Option::is_some).then(|| combine(former, &agents, &own));
        Self {
            agents,
            combined,
            classes: watch.classes(),
            left_out,
            refused: watch.refused(),
            displaced: watch.displaced(),
            unfinished,
            has_losses,
        }
    }

    /// Returns whether data is missing.
    pub fn is_partial(&self) -> bool {
        self.has_losses || [self.unfinished, self.left_out, self.refused, self.displaced] != [0; 4]
    }

    /// Returns the number of other loaded classes if no agent has traced any class, which usually means that the names
    /// of classes do not match the inclusions.
    pub fn unmatched_classes(&self) -> Option<u64> {
        let any = self.agents.iter().any(|AgentResult { facts, report, .. }| {
            // In a failed class, some methods may still be traced. Reports on classes may be late or lost.
            let was_seen = facts.classes.transformed + facts.classes.failed > 0;
            was_seen || !facts.finished || report.methods.iter().any(|method| method.has_run)
        });
        let ignored = self.agents.iter().map(|agent| agent.facts.classes.ignored);
        (!any && !self.agents.is_empty()).then(|| ignored.sum())
    }
}

/// Returns the number of agents and their combined report. Adds the agents of the current user and root first, so that
/// the data of other users cannot fill the tables before.
fn combine(
    former: [Option<(u64, Report)>; 2],
    agents: &[AgentResult],
    own: &BTreeSet<AgentId>,
) -> (u64, Report) {
    let (mut sums, mut count) = (CombinedReport::default(), agents.len() as u64);
    for (is_own, former) in [true, false].into_iter().zip(former) {
        if let Some((dropped, report)) = former {
            count = count.saturating_add(dropped);
            sums.add(report);
        }
        for agent in agents.iter().filter(|agent| own.contains(&agent.id) == is_own) {
            sums.add(agent.report.clone());
        }
    }
    (count, sums.report())
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;
    use std::sync::Arc;

    use runtap_bytefrog::{ExceptionReport, Fate, Limits, MethodReport, Model};

    use super::*;

    /// The data of other users fills the table; one agent of the current user has already ended, another is still kept.
    #[test]
    fn own_agents_are_added_up_before_others_fill_the_tables() {
        let empty = Model::new(Dialect::F1, &Limits::default(), 1).report();
        let name: Arc<str> = "x".repeat(1 << 20).into();
        let exception = |line| ExceptionReport {
            exception: Arc::clone(&name),
            signature: Arc::from(""),
            line: Some(line),
            fate: Fate::Thrown,
            count: 1,
        };
        let others = Report { exceptions: (0..200).map(exception).collect(), ..empty.clone() };
        // The last of these exceptions does not fit, so the table has no capacity for another method either.
        let method = |class: &str| MethodReport {
            signature: class.to_owned() + &name + &name,
            entries: 1,
            exits: 1,
            has_run: true,
            ..MethodReport::default()
        };
        let of = |class| Report { methods: vec![method(class)], ..empty.clone() };
        let facts = AgentFacts::new(SocketAddr::from(([127, 0, 0, 1], 1)), Dialect::F1, 1);
        let agents = [(AgentId(8), "other"), (AgentId(9), "living")].map(|(id, class)| AgentResult {
            id,
            facts: facts.clone(),
            report: of(class),
        });
        let former = [Some((1, of("former"))), Some((5, others))];
        let (count, report) = combine(former, &agents, &BTreeSet::from([AgentId(9)]));
        let methods: Vec<&str> =
            report.methods.iter().filter_map(|method| method.signature.get(..6)).collect();
        assert_eq!((count, methods), (8, vec!["former", "living"]));
        assert_eq!(report.beyond, 200 - 123 + 1);
    }
}
