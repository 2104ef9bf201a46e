//! Facts about an agent apart from its trace.

use std::net::SocketAddr;

use runtap_bytefrog_proto::hq::AgentProcess;
use runtap_bytefrog_proto::{Dialect, ModeByte, Rule, Violation};

use crate::recording::ClassCounts;
use crate::{BrokenRules, describe_violation};

/// The facts that an agent's control connection provides.
#[derive(Debug, Clone)]
pub struct AgentFacts {
    /// The address of the agent.
    pub peer: SocketAddr,
    /// The dialect that the agent speaks.
    pub dialect: Dialect,
    /// The number of the run in the agent's configuration.
    pub run: u8,
    /// The process, as far as the agent has reported it.
    pub process: Option<AgentProcess>,
    /// The numbers of classes.
    pub classes: ClassCounts,
    /// The mode and the number of waiting buffers in its last heartbeat.
    pub last_heartbeat: Option<(ModeByte, u16)>,
    /// Whether a heartbeat is overdue.
    pub silent: bool,
    /// The number of open data connections.
    pub data: usize,
    /// Whether all connections are closed.
    pub finished: bool,
    /// Whether data of the agent was lost.
    pub partial: bool,
    /// The rules that the agent has broken on its connections.
    pub broken: BrokenRules,
    /// The number of notices about modes.
    pub(super) mode_notices: u64,
    /// The number of notices about the process.
    pub(super) process_notices: u64,
    /// The number of notices about errors of the agent.
    pub(super) error_notices: u64,
}

impl AgentFacts {
    /// Creates the facts of an agent that has connected.
    pub fn new(peer: SocketAddr, dialect: Dialect, run: u8) -> Self {
        Self {
            peer,
            dialect,
            run,
            process: None,
            classes: ClassCounts::default(),
            last_heartbeat: None,
            silent: false,
            data: 0,
            finished: false,
            partial: false,
            broken: BrokenRules::default(),
            mode_notices: 0,
            process_notices: 0,
            error_notices: 0,
        }
    }

    /// Returns whether the agent's last data is missing because its process was killed or a connection was lost.
    pub fn ended_early(&self) -> bool {
        !self.finished || self.broken.rules().iter().any(|finding| finding.rule.is_early_end())
    }

    /// Records a violation, and returns the number of violations of its rule so far.
    pub(super) fn record_violation(&mut self, violation: &Violation) -> u64 {
        self.silent |= violation.rule == Rule::HeartbeatMissing;
        // Data before the violation is complete; data after it is missing.
        self.partial |= violation.rule.causes_loss() || violation.rule.is_early_end();
        self.broken.add(violation.rule, || describe_violation(None, violation))
    }
}
