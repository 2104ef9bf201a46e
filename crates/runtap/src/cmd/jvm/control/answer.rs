//! Execution of requests on the control socket, and their answers.
//!
//! Owns: the answers, each a JSON document on one line whose member `type` names its kind. Their members are stable
//! (docs/jvm.md).

use runtap_bytefrog::hq::{AgentId, Hq, HqError};
use runtap_bytefrog_proto::ModeByte;
use runtap_text::json;
use serde::Serialize;

use super::super::document::{AgentDocument, JvmDocument};
use super::super::hq::filters;
use super::super::hq::watch::Watch;
use super::ControlCommand;

#[derive(Debug, Serialize)]
#[serde(tag = "type", rename_all = "lowercase")]
enum Answer {
    Status { agents: Vec<AgentStatus> },
    Report(JvmDocument),
    Done { agents: Vec<AgentResult> },
    Error { error: String },
}

#[derive(Debug, Serialize)]
struct AgentStatus {
    agent: u32,
    run_id: u8,
    version: u8,
    peer: Option<String>,
    pid: Option<u32>,
    main: Option<String>,
    /// The mode that the collector has commanded.
    mode: String,
    /// The mode that the agent reported in its last heartbeat.
    said: Option<String>,
    started: bool,
    connected: bool,
    silent: bool,
    data_connections: usize,
    entries: u64,
    exits: u64,
    exceptions: u64,
    missing: u64,
    dropped: u64,
    waiting: usize,
}

#[derive(Debug, Serialize)]
struct AgentResult {
    agent: u32,
    ok: bool,
    error: Option<String>,
}

/// Executes a request, and returns the line that answers it. May block on agents that do not read.
pub(in crate::cmd::jvm) fn execute(command: &ControlCommand, hq: &Hq, watch: &Watch) -> Vec<u8> {
    line(&match command {
        ControlCommand::Status => Answer::Status { agents: status(hq, watch) },
        ControlCommand::Report(agent) => match chosen(*agent, hq) {
            Ok(agents) => Answer::Report(report(&agents, hq, watch)),
            Err(error) => Answer::Error { error },
        },
        ControlCommand::Command(command, agent) => each(*agent, hq, |id| hq.command(id, *command)),
        ControlCommand::Configure(agent, classes) => each(*agent, hq, |id| {
            hq.configure(id, |configuration| {
                (configuration.exclusions, configuration.inclusions) =
                    filters(&classes.include, &classes.exclude);
            })
        }),
        ControlCommand::Snapshot(agent) => each(*agent, hq, |id| hq.snapshot(id, false)),
        ControlCommand::Mark { name, begins } => match hq.mark(name, *begins) {
            Ok(()) => Answer::Done { agents: Vec::new() },
            Err(error) => Answer::Error { error: error.to_string() },
        },
        ControlCommand::Quit => Answer::Done { agents: Vec::new() },
    })
}

/// Returns the line that reports an error.
pub(super) fn refusal(error: &(impl ToString + ?Sized)) -> Vec<u8> {
    line(&Answer::Error { error: error.to_string() })
}

fn line(answer: &Answer) -> Vec<u8> {
    let mut bytes = Vec::new();
    // Serializing numbers and strings into memory cannot fail.
    let _ = json::write_line(&mut bytes, answer);
    bytes
}

/// Returns the requested agent, or all agents that the collector keeps.
fn chosen(agent: Option<AgentId>, hq: &Hq) -> Result<Vec<AgentId>, String> {
    let all: Vec<AgentId> = hq.agents().into_iter().map(|state| state.id).collect();
    match agent {
        None => Ok(all),
        Some(id) if all.contains(&id) => Ok(vec![id]),
        Some(id) => Err(HqError::NoAgent(id).to_string()),
    }
}

/// Performs an action for one agent, or for all that have not ended.
fn each(agent: Option<AgentId>, hq: &Hq, act: impl Fn(AgentId) -> Result<(), HqError>) -> Answer {
    let agents: Vec<AgentId> = match agent {
        Some(id) => vec![id],
        None => hq.agents().into_iter().filter(|state| !state.ended).map(|state| state.id).collect(),
    };
    if agents.is_empty() {
        return Answer::Error { error: "no agent is connected".to_owned() };
    }
    let done = agents.into_iter().map(|id| {
        let error = act(id).err().map(|error| error.to_string());
        AgentResult { agent: id.0, ok: error.is_none(), error }
    });
    Answer::Done { agents: done.collect() }
}

fn report(agents: &[AgentId], hq: &Hq, watch: &Watch) -> JvmDocument {
    let documents = agents.iter().filter_map(|id| {
        let facts = watch.facts(*id)?;
        Some(AgentDocument::new(facts.run, &hq.report(*id).ok()?, facts.classes))
    });
    JvmDocument::new(documents.collect())
}

fn status(hq: &Hq, watch: &Watch) -> Vec<AgentStatus> {
    let one = |state: runtap_bytefrog::hq::AgentStatus| {
        let (counters, waiting) = hq.counters(state.id).ok()?;
        let facts = watch.facts(state.id);
        let facts = facts.as_ref();
        let process = facts.and_then(|facts| facts.process.as_ref());
        Some(AgentStatus {
            agent: state.id.0,
            run_id: state.run,
            version: state.dialect.hello(),
            peer: facts.map(|facts| facts.peer.to_string()),
            pid: process.map(|process| process.pid),
            main: process.map(|process| process.main.to_string()),
            mode: state.state.mode.to_string(),
            said: state.reported_mode.and_then(ModeByte::mode).map(|mode| mode.to_string()),
            started: state.state.started,
            connected: !state.ended,
            silent: facts.is_some_and(|facts| facts.silent),
            data_connections: state.data,
            entries: counters.calls(),
            exits: counters.exits,
            exceptions: counters.exceptions,
            missing: counters.missing,
            dropped: counters.dropped,
            waiting,
        })
    };
    hq.agents().into_iter().filter_map(one).collect()
}
