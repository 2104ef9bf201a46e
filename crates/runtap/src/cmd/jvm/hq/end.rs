//! The end of a collection: stops the agents, receives their remaining data, and prints the report.

use std::sync::Arc;
use std::time::Duration;

use runtap_bytefrog::hq::{AgentStatus, Hq};
use runtap_jvm::agents::{AgentWatch, CollectionResult, stop_agents, unfinished_agents};
use runtap_record::{StopListener, Stops};
use runtap_text::TextOptions;
use runtap_text::jvm::{CollectionText, collection_document, collection_warnings};
use tokio::time::{Instant, sleep_until, timeout};

use super::show;
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
    watch: &Arc<AgentWatch>,
    stops: &Stops,
    hurry: bool,
    output: Output,
) -> anyhow::Result<u8> {
    let mut again = stops.listener();
    let is_interrupted = stops.is_stopping();
    let agents = unfinished_agents(hq, watch);
    // On its own thread, because writing to an agent that does not read blocks.
    let (commands, stopping) = (Arc::clone(hq), agents.clone());
    let stopped = tokio::task::spawn_blocking(move || stop_agents(&commands, &stopping));
    if !agents.is_empty() && !hurry {
        let rest = match agents.len() {
            1 => "the agent".to_owned(),
            several => format!("{several} agents"),
        };
        output.note(format_args!(
            "Waiting up to {} seconds for the remaining data of {rest}; Ctrl-C again stops waiting",
            GRACE_PERIOD.as_secs(),
        ));
    }
    let hurry = if hurry {
        let _ = timeout(HURRIED_STOP_TIMEOUT, stopped).await;
        true
    } else {
        wait(&agents, watch, &mut again, output).await
    };
    let unfinished = agents.iter().filter(|agent| is_unfinished(agent, watch)).count() as u64;
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
    let sends_counts = options.tracing.mode != JvmMode::Full;
    let result = CollectionResult::of(hq, watch, sends_counts, unfinished);
    print(options, &result, output)?;
    for warning in collection_warnings(&result, !options.tracing.include.is_empty()) {
        output.warning(warning);
    }
    if result.agents.is_empty() {
        if is_interrupted {
            return Ok(stops.exit_code().unwrap_or(exit::INTERRUPTED));
        }
        return Err(exit::expected(
            exit::NO_TARGET,
            "no agent has connected",
            format!(
                "Load the agent into a running program: runtap jvm attach PID --hq {0}; or start the program with -javaagent:bytefrog-tracer.jar={0}",
                hq.address()
            ),
        ));
    }
    Ok(if result.is_partial() { exit::PARTIAL } else { exit::OK })
}

fn is_unfinished(agent: &AgentStatus, watch: &AgentWatch) -> bool {
    watch.facts(agent.id).is_some_and(|facts| !facts.finished)
}

/// Waits until all agents have ended or the grace period has elapsed. Returns `true` if the user interrupts the wait.
async fn wait(agents: &[AgentStatus], watch: &AgentWatch, again: &mut StopListener, output: Output) -> bool {
    let until = Instant::now() + GRACE_PERIOD;
    while agents.iter().any(|agent| is_unfinished(agent, watch)) {
        tokio::select! {
            biased;
            _ = again.next() => return true,
            () = sleep_until(until) => return false,
            () = watch.news.notified() => show(watch, output),
        }
    }
    false
}

/// Prints the reports on the agents, or a combined report of more agents than are kept.
fn print(options: &JvmHq, result: &CollectionResult, output: Output) -> anyhow::Result<()> {
    if output.json() {
        return output.document(&collection_document(result));
    }
    let shown = TextOptions {
        width: output.columns(),
        rows: (options.limit > 0).then_some(options.limit),
        more: Some("--limit 0 shows all"),
        ..output.options()
    };
    output.print(&CollectionText(result), &shown)?;
    if result.combined.is_some() && options.record.is_none() {
        output.note(
            "There are too many agents to show each one; --record DIR keeps all of them, for 'runtap jvm report'.",
        );
    }
    Ok(())
}
