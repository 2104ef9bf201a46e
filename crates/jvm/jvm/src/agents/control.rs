//! Execution of the commands of a control socket.

use runtap_bytefrog::control::ControlCommand;
use runtap_bytefrog::hq::{AgentId, Hq, HqError};

use super::{AgentResult, AgentSummary, AgentWatch};

/// The answer to a command.
#[derive(Debug)]
pub enum ControlAnswer {
    /// The status of the agents.
    Status(Vec<AgentSummary>),
    /// The data of agents so far.
    Report(Vec<AgentResult>),
    /// What became of the command for each agent.
    Done(Vec<(AgentId, Result<(), HqError>)>),
    /// The command cannot be executed.
    Error(String),
}

/// Executes a command. May block on agents that do not read. [`ControlCommand::Quit`] has no effect here.
pub fn execute(command: &ControlCommand, hq: &Hq, watch: &AgentWatch) -> ControlAnswer {
    match command {
        ControlCommand::Status => ControlAnswer::Status(watch.summaries(hq)),
        ControlCommand::Report(agent) => report(*agent, hq, watch),
        ControlCommand::Command(command, agent) => each(*agent, hq, |id| hq.command(id, *command)),
        ControlCommand::Configure(agent, classes) => {
            each(*agent, hq, |id| hq.configure(id, |configuration| classes.apply_to(configuration)))
        }
        ControlCommand::Snapshot(agent) => each(*agent, hq, |id| hq.snapshot(id, false)),
        ControlCommand::Mark { name, begins } => match hq.mark(name, *begins) {
            Ok(()) => ControlAnswer::Done(Vec::new()),
            Err(error) => ControlAnswer::Error(error.to_string()),
        },
        ControlCommand::Quit => ControlAnswer::Done(Vec::new()),
    }
}

/// Reports on one agent, or on all agents that the collector keeps.
fn report(agent: Option<AgentId>, hq: &Hq, watch: &AgentWatch) -> ControlAnswer {
    let mut agents: Vec<AgentId> = hq.agents().into_iter().map(|status| status.id).collect();
    if let Some(agent) = agent {
        if !agents.contains(&agent) {
            return ControlAnswer::Error(HqError::NoAgent(agent).to_string());
        }
        agents = vec![agent];
    }
    let result = |id| Some(AgentResult { id, facts: watch.facts(id)?, report: hq.report(id).ok()? });
    ControlAnswer::Report(agents.into_iter().filter_map(result).collect())
}

/// Performs an action for one agent, or for all that have not ended.
fn each(agent: Option<AgentId>, hq: &Hq, act: impl Fn(AgentId) -> Result<(), HqError>) -> ControlAnswer {
    let agents: Vec<AgentId> = match agent {
        Some(id) => vec![id],
        None => hq.agents().into_iter().filter(|status| !status.ended).map(|status| status.id).collect(),
    };
    if agents.is_empty() {
        return ControlAnswer::Error("no agent is connected".to_owned());
    }
    ControlAnswer::Done(agents.into_iter().map(|id| (id, act(id))).collect())
}
