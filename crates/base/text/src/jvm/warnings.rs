//! What is missing from a recording.

use std::path::Path;

use runtap_bytefrog_proto::Rule;
use runtap_jvm::recording::LoadedAgent;

use crate::units::Things;

/// Returns what is missing from the recording of an agent, one line each. Problems of marks, which all agents share, are
/// listed for the first agent.
pub fn warnings(path: &Path, agent: &LoadedAgent, is_first: bool) -> Vec<String> {
    let path = path.display();
    let mut lines = Vec::new();
    if let Some(problem) = agent.recorded.marks.problem().filter(|_| is_first) {
        lines.push(format!("{path}: marks.tsv {problem}; parts that were marked may be missing"));
    }
    let replayed = &agent.replayed;
    lines.extend(replayed.damage.iter().map(|damage| {
        format!("{path}: {} can't be read beyond offset {}: {}", damage.stream, damage.offset, damage.reason)
    }));
    let name = &replayed.agent;
    if !replayed.unfinished.is_empty() {
        let connections: Vec<String> = replayed.unfinished.iter().map(ToString::to_string).collect();
        lines.push(format!(
            "{path}: {name}: the recording ends before the connection ({})",
            connections.join(", ")
        ));
    }
    for finding in agent.broken().rules() {
        let rule = finding.rule;
        if rule == Rule::EndWithoutShutdown {
            // Data that the agent had not sent by itself or on request is lost.
            lines.push(format!(
                "{path}: {name}: the program was killed or halted, or its connection was lost ({rule}): calls that the \
                 agent had not sent by then are missing; with --mode counts or coverage, all since the last snapshot"
            ));
        } else if rule.causes_loss() || rule.is_early_end() {
            lines.push(format!("{path}: {name}: {rule}: {}; what came is shown", rule.summary()));
        }
    }
    let counters = replayed.model.counters();
    if counters.counted_besides() > 0 {
        lines.push(format!(
            "{path}: {name}: {} only counted, because the collector was too slow: times, callers and threads are \
             without them",
            Things(counters.counted_besides(), "call")
        ));
    }
    for (count, what) in [(counters.missing, "never came"), (counters.dropped, "were dropped by the agent")] {
        if count > 0 {
            let events = Things(count, "event");
            lines.push(format!("{path}: {name}: {events} {what}; numbers may be too low"));
        }
    }
    lines
}
