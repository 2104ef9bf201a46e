//! The end of a collection: stops the agents, receives their remaining data, and prints the report.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use runtap_bytefrog::hq::{AgentId, AgentStatus, Hq};
use runtap_bytefrog::{CombinedReport, Report};
use runtap_bytefrog_proto::{Dialect, Mode};
use runtap_record::{StopListener, Stops};
use runtap_text::TextOptions;
use runtap_text::units::Things;
use tokio::time::{Instant, sleep_until, timeout};

use super::super::broken::BrokenRules;
use super::super::document::{AgentDocument, JvmDocument};
use super::super::text::ReportText;
use super::show;
use super::watch::{AgentFacts, Watch};
use crate::cli::{JvmHq, JvmMode};
use crate::exit;
use crate::output::Output;

/// The time in which agents may send their remaining data. The original agents first sleep for the heartbeat interval, a
/// second.
const GRACE_PERIOD: Duration = Duration::from_secs(5);

/// The time-out for the commands that stop agents when the user does not want to wait.
const HURRIED_STOP_TIMEOUT: Duration = Duration::from_millis(500);

/// Stops the agents, waits for their ends unless `hurry` is set, and prints the report.
pub(in crate::cmd::jvm) async fn end(
    options: &JvmHq,
    hq: &Arc<Hq>,
    watch: &Arc<Watch>,
    stops: &Stops,
    hurry: bool,
    output: Output,
) -> anyhow::Result<u8> {
    let mut again = stops.listener();
    let is_interrupted = stops.is_stopping();
    let unfinished_agents = unfinished_agents(hq, watch);
    // On its own thread, because writing to an agent that does not read blocks.
    let (commands, agents) = (Arc::clone(hq), unfinished_agents.clone());
    let stopped = tokio::task::spawn_blocking(move || stop(&commands, &agents));
    if !unfinished_agents.is_empty() && !hurry {
        output.note(format_args!(
            "waiting up to {} seconds for the rest of what {} to send; Ctrl-C again does not wait",
            GRACE_PERIOD.as_secs(),
            if unfinished_agents.len() == 1 {
                "the agent has".to_owned()
            } else {
                format!("{} agents have", unfinished_agents.len())
            }
        ));
    }
    let hurry = if hurry {
        let _ = timeout(HURRIED_STOP_TIMEOUT, stopped).await;
        true
    } else {
        wait(&unfinished_agents, watch, &mut again, output).await
    };
    let unfinished = unfinished_agents
        .iter()
        .filter(|agent| watch.facts(agent.id).is_some_and(|facts| !facts.finished))
        .count();
    if hurry {
        hq.abandon();
    }
    let closing = Arc::clone(hq);
    let mut closed = tokio::task::spawn_blocking(move || closing.close());
    tokio::select! {
        biased;
        done = &mut closed => done?,
        _ = again.next() => {
            hq.abandon();
            closed.await?;
        }
    }
    show(watch, output);
    let agents = hq.agents();
    let own: BTreeSet<AgentId> = agents.iter().filter(|state| state.is_own).map(|state| state.id).collect();
    let reports: Vec<(AgentId, AgentFacts, Report)> = agents
        .into_iter()
        .filter_map(|state| {
            let facts = watch.facts(state.id)?;
            let report = hq.report(state.id).ok()?;
            let counts = options.tracing.mode != JvmMode::Full && report.dialect == Dialect::F1;
            let report = Report { unsent: counts && facts.ended_early(), ..report };
            Some((state.id, facts, report))
        })
        .collect();
    let former = [true, false].map(|own| hq.former(own));
    let left_out = watch.connected_agents().saturating_sub(reports.len() as u64);
    let left_out = former.iter().flatten().fold(left_out, |left, (count, _)| left.saturating_sub(*count));
    let former_loses = former.iter().flatten().any(|(_, report)| report.has_losses());
    if former.iter().any(Option::is_some) {
        print_together(options, watch, combine(former, &reports, &own), output)?;
    } else {
        print(options, &reports, output)?;
    }
    if left_out > 0 {
        output.warning(format_args!(
            "{} left before they had ended: what they had is not in the report",
            Things(left_out, "agent")
        ));
    }
    let refused = watch.refused();
    if refused > 0 {
        output.warning(format_args!(
            "{} refused, for lack of room: what they had is not in the report",
            Things(refused, "connection")
        ));
    }
    let displaced = watch.displaced();
    if displaced > 0 {
        output.warning(format_args!(
            "{} disconnected to make room for those of other users: what came until then is in the report",
            Things(displaced, "agent")
        ));
    }
    hint_at_names(options, &reports, output);
    if unfinished > 0 {
        output.warning(format_args!(
            "{} had not ended: what came is in the report",
            Things(unfinished as u64, "agent")
        ));
    }
    if reports.is_empty() {
        if is_interrupted {
            return Ok(stops.exit_code().unwrap_or(exit::INTERRUPTED));
        }
        return Err(exit::expected(
            exit::NO_TARGET,
            "no agent has connected",
            format!(
                "load one into a program that runs: runtap jvm attach PID --hq {0}; or start it with -javaagent:bytefrog-tracer.jar={0}",
                hq.address()
            ),
        ));
    }
    let partial = unfinished > 0
        || left_out > 0
        || refused > 0
        || displaced > 0
        || watch.is_partial()
        || former_loses
        || reports.iter().any(|(.., report)| report.has_losses());
    Ok(if partial { exit::PARTIAL } else { exit::OK })
}

/// Warns that the `--include` patterns have matched no class.
fn hint_at_names(options: &JvmHq, reports: &[(AgentId, AgentFacts, Report)], output: Output) {
    let any = reports.iter().any(|(_, facts, report)| {
        // In a failed class, some methods may still be traced. Reports on classes may be late or lost.
        let was_seen = facts.classes.transformed + facts.classes.failed > 0;
        was_seen || !facts.finished || report.methods.iter().any(|method| method.has_run)
    });
    if options.tracing.include.is_empty() || reports.is_empty() || any {
        return;
    }
    let loaded: u64 = reports.iter().map(|(_, facts, _)| facts.classes.ignored).sum();
    let loaded = if loaded > 0 { format!(" ({loaded} others were loaded meanwhile)") } else { String::new() };
    output.warning(format_args!(
        "no class matched --include{loaded}: names have slashes, and expressions are matched from their beginning: '^com/example/Main'"
    ));
}

/// Returns the agents that have not ended, with their states.
fn unfinished_agents(hq: &Hq, watch: &Watch) -> Vec<AgentStatus> {
    let has_ended = |id| watch.facts(id).is_none_or(|facts| facts.finished);
    hq.agents().into_iter().filter(|state| !has_ended(state.id)).collect()
}

/// Stops agents. First starts those that have not started: the original agents never end while their program waits for the
/// start.
fn stop(hq: &Hq, agents: &[AgentStatus]) {
    for agent in agents {
        if !agent.state.started {
            // If this fails, the connection is gone and the next command fails too.
            let _ = hq.change_mode(agent.id, Mode::Tracing);
        }
        let _ = hq.change_mode(agent.id, Mode::ShuttingDown);
    }
}

/// Waits until all agents have ended or the grace period has elapsed. Returns `true` if the user interrupts the wait.
async fn wait(
    unfinished_agents: &[AgentStatus],
    watch: &Watch,
    again: &mut StopListener,
    output: Output,
) -> bool {
    let until = Instant::now() + GRACE_PERIOD;
    while unfinished_agents.iter().any(|agent| watch.facts(agent.id).is_some_and(|facts| !facts.finished)) {
        tokio::select! {
            biased;
            _ = again.next() => return true,
            () = sleep_until(until) => return false,
            () = watch.news.notified() => show(watch, output),
        }
    }
    false
}

/// Returns the number of agents and their combined report. Adds the agents of the current user and root first, so that the data
/// of other users cannot fill the tables before.
fn combine(
    former: [Option<(u64, Report)>; 2],
    reports: &[(AgentId, AgentFacts, Report)],
    own: &BTreeSet<AgentId>,
) -> (u64, Report) {
    let (mut sums, mut agents) = (CombinedReport::default(), reports.len() as u64);
    for (is_own, former) in [true, false].into_iter().zip(former) {
        if let Some((count, report)) = former {
            agents = agents.saturating_add(count);
            sums.add(report);
        }
        for (.., report) in reports.iter().filter(|(id, ..)| own.contains(id) == is_own) {
            sums.add(report.clone());
        }
    }
    (agents, sums.report())
}

/// Prints the combined report of more agents than are kept, with a note on how to keep each of them.
fn print_together(
    options: &JvmHq,
    watch: &Watch,
    (agents, report): (u64, Report),
    output: Output,
) -> anyhow::Result<()> {
    let classes = watch.classes();
    if output.json() {
        return output.document(&JvmDocument::new(vec![AgentDocument::of_several(agents, &report, classes)]));
    }
    let title = format!("{} together", Things(agents, "agent"));
    let broken = BrokenRules::default().with_report(&report);
    let text = ReportText { title, report: &report, classes, broken };
    output.print(&text, &shown(options, output))?;
    if options.record.is_none() {
        output.note(
            "these are more agents than can be shown each: --record DIR keeps all, for 'runtap jvm report'",
        );
    }
    Ok(())
}

fn shown(options: &JvmHq, output: Output) -> TextOptions<'static> {
    TextOptions {
        width: output.columns(),
        rows: (options.limit > 0).then_some(options.limit),
        more: Some("--limit 0 shows all"),
        ..output.options()
    }
}

fn print(options: &JvmHq, reports: &[(AgentId, AgentFacts, Report)], output: Output) -> anyhow::Result<()> {
    if output.json() {
        let agents = reports
            .iter()
            .map(|(_, facts, report)| AgentDocument::new(facts.run, report, facts.classes))
            .collect();
        return output.document(&JvmDocument::new(agents));
    }
    let shown = shown(options, output);
    for (index, (id, facts, report)) in reports.iter().enumerate() {
        if index > 0 {
            output.text("\n")?;
        }
        let text = ReportText {
            title: facts.title(*id),
            report,
            classes: facts.classes,
            broken: facts.broken.clone().with_report(report),
        };
        output.print(&text, &shown)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;

    use runtap_bytefrog::{ExceptionReport, Fate, Limits, MethodReport, Model};

    use super::super::super::document::Classes;
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
        let reports = [(AgentId(8), facts.clone(), of("other")), (AgentId(9), facts, of("living"))];
        let former = [Some((1, of("former"))), Some((5, others))];
        let (agents, report) = combine(former, &reports, &BTreeSet::from([AgentId(9)]));
        let methods: Vec<&str> =
            report.methods.iter().filter_map(|method| method.signature.get(..6)).collect();
        assert_eq!((agents, methods), (8, vec!["former", "living"]));
        assert_eq!(report.beyond, 200 - 123 + 1);
        let document = AgentDocument::of_several(agents, &report, Classes::default());
        let json = serde_json::to_value(&document).unwrap();
        assert_eq!((&json["agents_count"], &json["without_room"]), (&8.into(), &78.into()));
    }
}
