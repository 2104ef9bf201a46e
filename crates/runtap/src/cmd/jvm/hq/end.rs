//! The end of a collection: agents are stopped, what they still have is taken, and the report is printed.

use std::sync::Arc;
use std::time::Duration;

use runtap_bytefrog::hq::{AgentId, AgentState, Hq};
use runtap_bytefrog::{Report, Sums};
use runtap_bytefrog_proto::{Dialect, Mode};
use runtap_record::{StopListener, Stops};
use runtap_text::TextOptions;
use runtap_text::units::Things;
use tokio::time::{Instant, sleep_until, timeout};

use super::super::broken::Broken;
use super::super::document::{AgentDocument, JvmDocument};
use super::super::text::ReportText;
use super::show;
use super::watch::{Facts, Watch};
use crate::cli::{JvmHq, JvmMode};
use crate::exit;
use crate::output::Output;

/// How long agents may take to send what they have. The original ones sleep for a heartbeat first, which is a second.
const PATIENCE: Duration = Duration::from_secs(5);

/// How long the commands that stop agents may take if somebody is in a hurry.
const HURRY: Duration = Duration::from_millis(500);

/// Stops the agents, waits for their ends, unless somebody is in a hurry, and prints the report.
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
    let living = living(hq, watch);
    // An agent that does not read keeps the thread that writes to it waiting.
    let (commands, agents) = (Arc::clone(hq), living.clone());
    let stopped = tokio::task::spawn_blocking(move || stop(&commands, &agents));
    if !living.is_empty() && !hurry {
        output.note(format_args!(
            "waiting up to {} seconds for the rest of what {} to send; Ctrl-C again does not wait",
            PATIENCE.as_secs(),
            if living.len() == 1 {
                "the agent has".to_owned()
            } else {
                format!("{} agents have", living.len())
            }
        ));
    }
    let hurry = if hurry {
        let _ = timeout(HURRY, stopped).await;
        true
    } else {
        wait(&living, watch, &mut again, output).await
    };
    let cut =
        living.iter().filter(|agent| watch.facts(agent.id).is_some_and(|facts| !facts.finished)).count();
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
    let reports: Vec<(AgentId, Facts, Report)> = hq
        .agents()
        .into_iter()
        .filter_map(|state| {
            let facts = watch.facts(state.id)?;
            let report = hq.report(state.id).ok()?;
            let counts = options.tracing.mode != JvmMode::Full && report.dialect == Dialect::F1;
            let report = Report { unsent: counts && facts.ended_early(), ..report };
            Some((state.id, facts, report))
        })
        .collect();
    let former = hq.former();
    let left_out = watch.seen().saturating_sub(reports.len() as u64);
    let left_out = left_out.saturating_sub(former.as_ref().map_or(0, |(count, _)| *count));
    let former_loses = former.as_ref().is_some_and(|(_, report)| report.has_losses());
    match former {
        Some((count, report)) => print_together(options, watch, (count, report), &reports, output)?,
        None => print(options, &reports, output)?,
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
    if cut > 0 {
        output.warning(format_args!(
            "{} had not ended: what came is in the report",
            Things(cut as u64, "agent")
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
    let partial = cut > 0
        || left_out > 0
        || refused > 0
        || displaced > 0
        || watch.is_partial()
        || former_loses
        || reports.iter().any(|(.., report)| report.has_losses());
    Ok(if partial { exit::PARTIAL } else { exit::OK })
}

/// Says why there is nothing, if the expressions have chosen nothing.
fn hint_at_names(options: &JvmHq, reports: &[(AgentId, Facts, Report)], output: Output) {
    let any = reports.iter().any(|(_, facts, report)| {
        // Of a class with a method that could not be traced the others are. Messages about classes may come late, or be lost.
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

/// The agents that have not ended, with their states.
fn living(hq: &Hq, watch: &Watch) -> Vec<AgentState> {
    let has_ended = |id| watch.facts(id).is_none_or(|facts| facts.finished);
    hq.agents().into_iter().filter(|state| !has_ended(state.id)).collect()
}

/// Stops agents. A program that waits for its start is let go: the original agents never end otherwise.
fn stop(hq: &Hq, agents: &[AgentState]) {
    for agent in agents {
        if !agent.state.started {
            // What fails here fails below too: its connection is gone.
            let _ = hq.go(agent.id, Mode::Tracing);
        }
        let _ = hq.go(agent.id, Mode::ShuttingDown);
    }
}

/// Waits until all have ended, the patience is over, or somebody has none, which is returned.
async fn wait(living: &[AgentState], watch: &Watch, again: &mut StopListener, output: Output) -> bool {
    let until = Instant::now() + PATIENCE;
    while living.iter().any(|agent| watch.facts(agent.id).is_some_and(|facts| !facts.finished)) {
        tokio::select! {
            biased;
            _ = again.next() => return true,
            () = sleep_until(until) => return false,
            () = watch.news.notified() => show(watch, output),
        }
    }
    false
}

/// More agents than are kept: all of them as one, and a hint at what has each.
fn print_together(
    options: &JvmHq,
    watch: &Watch,
    (former, report): (u64, Report),
    reports: &[(AgentId, Facts, Report)],
    output: Output,
) -> anyhow::Result<()> {
    let mut sums = Sums::default();
    sums.add(report);
    for (.., report) in reports {
        sums.add(report.clone());
    }
    let (agents, report) = (former.saturating_add(reports.len() as u64), sums.report());
    let classes = watch.classes();
    if output.json() {
        return output.document(&JvmDocument::new(vec![AgentDocument::of_several(agents, &report, classes)]));
    }
    let title = format!("{} together", Things(agents, "agent"));
    let broken = Broken::default().and(&report);
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

fn print(options: &JvmHq, reports: &[(AgentId, Facts, Report)], output: Output) -> anyhow::Result<()> {
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
            broken: facts.broken.clone().and(report),
        };
        output.print(&text, &shown)?;
    }
    Ok(())
}
