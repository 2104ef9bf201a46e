//! The answers of a control socket as JSON documents, each on one line. The member `type` names the kind of an answer.
//! The members are stable (docs/jvm.md).

use runtap_bytefrog::hq::{AgentId, HqError};
use runtap_bytefrog_proto::ModeByte;
use runtap_jvm::agents::{AgentSummary, ControlAnswer};
use serde::Serialize;

use super::collection::document_of;
use super::document::JvmDocument;
use crate::json;

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

/// Returns the line for an answer.
pub fn answer_line(answer: &ControlAnswer) -> Vec<u8> {
    let document = match answer {
        ControlAnswer::Status(agents) => Answer::Status { agents: agents.iter().map(status).collect() },
        ControlAnswer::Report(agents) => Answer::Report(document_of(agents)),
        ControlAnswer::Done(agents) => {
            let result = |(agent, done): &(AgentId, Result<(), HqError>)| {
                let error = done.as_ref().err().map(HqError::to_string);
                AgentResult { agent: agent.0, ok: error.is_none(), error }
            };
            Answer::Done { agents: agents.iter().map(result).collect() }
        }
        ControlAnswer::Error(error) => Answer::Error { error: error.clone() },
    };
    let mut bytes = Vec::new();
    // Serializing numbers and strings into memory cannot fail.
    let _ = json::write_line(&mut bytes, &document);
    bytes
}

fn status(summary: &AgentSummary) -> AgentStatus {
    let AgentSummary { status, facts, counters, waiting } = summary;
    let process = facts.as_ref().and_then(|facts| facts.process.as_ref());
    AgentStatus {
        agent: status.id.0,
        run_id: status.run,
        version: status.dialect.hello(),
        peer: facts.as_ref().map(|facts| facts.peer.to_string()),
        pid: process.map(|process| process.pid),
        main: process.map(|process| process.main.to_string()),
        mode: status.state.mode.to_string(),
        said: status.reported_mode.and_then(ModeByte::mode).map(|mode| mode.to_string()),
        started: status.state.started,
        connected: !status.ended,
        silent: facts.as_ref().is_some_and(|facts| facts.silent),
        data_connections: status.data,
        entries: counters.calls(),
        exits: counters.exits,
        exceptions: counters.exceptions,
        missing: counters.missing,
        dropped: counters.dropped,
        waiting: *waiting,
    }
}
