//! The result of a collection: the reports on its agents, and what is missing from them.

use std::io;

use runtap_jvm::BrokenRules;
use runtap_jvm::agents::{AgentResult, CollectionResult};

use super::agents::agent_title;
use super::document::{AgentDocument, JvmDocument};
use super::summary::ReportText;
use crate::units::Things;
use crate::{Print, TextOptions};

/// Returns the document on agents.
pub(super) fn document_of(agents: &[AgentResult]) -> JvmDocument {
    let document =
        |agent: &AgentResult| AgentDocument::new(agent.facts.run, &agent.report, agent.facts.classes);
    JvmDocument::new(agents.iter().map(document).collect())
}

/// Returns the document on a collection.
pub fn collection_document(result: &CollectionResult) -> JvmDocument {
    match &result.combined {
        Some((agents, report)) => {
            JvmDocument::new(vec![AgentDocument::of_several(*agents, report, result.classes)])
        }
        None => document_of(&result.agents),
    }
}

/// The reports on the agents of a collection, or a combined report.
#[derive(Debug)]
pub struct CollectionText<'a>(pub &'a CollectionResult);

impl Print for CollectionText<'_> {
    fn print(&self, out: &mut dyn io::Write, options: &TextOptions<'_>) -> io::Result<()> {
        let Self(result) = self;
        if let Some((agents, report)) = &result.combined {
            let title = format!("{} together", Things(*agents, "agent"));
            let broken = BrokenRules::default().with_report(report);
            return ReportText { title, report, classes: result.classes, broken }.print(out, options);
        }
        for (index, AgentResult { id, facts, report }) in result.agents.iter().enumerate() {
            if index > 0 {
                out.write_all(b"\n")?;
            }
            let (title, broken) = (agent_title(*id, facts), facts.broken.clone().with_report(report));
            ReportText { title, report, classes: facts.classes, broken }.print(out, options)?;
        }
        Ok(())
    }
}

/// Returns warnings about what is missing from the reports. `has_inclusions` is whether the user has selected classes.
pub fn collection_warnings(result: &CollectionResult, has_inclusions: bool) -> Vec<String> {
    let counts = [
        (result.left_out, "agent", "left before they had ended: what they had is not in the report"),
        (result.refused, "connection", "refused, for lack of room: what they had is not in the report"),
        (
            result.displaced,
            "agent",
            "disconnected to make room for those of other users: what came until then is in the report",
        ),
        (result.unfinished, "agent", "had not ended: what came is in the report"),
    ];
    let mut warnings: Vec<String> = counts
        .into_iter()
        .filter(|(count, ..)| *count > 0)
        .map(|(count, thing, what)| format!("{} {what}", Things(count, thing)))
        .collect();
    if let Some(loaded) = result.unmatched_classes().filter(|_| has_inclusions) {
        let loaded =
            if loaded > 0 { format!(" ({loaded} others were loaded meanwhile)") } else { String::new() };
        let last = warnings.len() - usize::from(result.unfinished > 0);
        warnings.insert(
            last,
            format!(
                "no class matched --include{loaded}: names have slashes, and expressions are matched from their beginning: '^com/example/Main'"
            ),
        );
    }
    warnings
}
