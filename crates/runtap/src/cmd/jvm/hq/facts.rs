//! Facts about an agent apart from its trace.

use std::cmp::Ordering;
use std::net::SocketAddr;

use runtap_bytefrog::hq::AgentId;
use runtap_bytefrog_proto::hq::AgentProcess;
use runtap_bytefrog_proto::{Dialect, ModeByte, Rule, Violation};

use super::super::broken::{BrokenRules, describe_violation};
use super::super::document::Classes;
use super::watch::Weight;

/// The facts that an agent's control connection provides.
#[derive(Debug, Clone)]
pub(in crate::cmd::jvm) struct AgentFacts {
    pub(in crate::cmd::jvm) peer: SocketAddr,
    pub(in crate::cmd::jvm) dialect: Dialect,
    pub(in crate::cmd::jvm) run: u8,
    pub(in crate::cmd::jvm) process: Option<AgentProcess>,
    pub(in crate::cmd::jvm) classes: Classes,
    /// The mode and the number of waiting buffers in its last heartbeat.
    pub(in crate::cmd::jvm) last_heartbeat: Option<(ModeByte, u16)>,
    /// Whether a heartbeat is overdue.
    pub(in crate::cmd::jvm) silent: bool,
    pub(in crate::cmd::jvm) data: usize,
    pub(in crate::cmd::jvm) finished: bool,
    /// Whether data of the agent was lost.
    pub(in crate::cmd::jvm) partial: bool,
    /// The rules that the agent has broken on its connections.
    pub(in crate::cmd::jvm) broken: BrokenRules,
    /// Counters that limit the lines about repeated events of the agent.
    pub(super) modes: LineLimit,
    pub(super) processes: LineLimit,
    pub(super) errors: LineLimit,
}

/// The maximum number of warnings of each kind shown for an agent, because any client that can connect can cause them.
pub(super) const MAX_WARNINGS: u64 = 5;
/// The maximum number of notes of each kind. A program that its user suspends and resumes causes several.
const MAX_NOTES: u64 = 50;

/// Counts the lines of one kind: the first ones are shown, later ones only with `--verbose`.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct LineLimit(u64);

impl LineLimit {
    pub(super) fn line(&mut self, weight: Weight, text: String) -> (Weight, String) {
        self.0 += 1;
        limited(self.0, weight, text)
    }
}

/// Returns the `number`th line of its kind with the weight that the limit gives it.
fn limited(number: u64, weight: Weight, text: String) -> (Weight, String) {
    let shown = if weight == Weight::Warning { MAX_WARNINGS } else { MAX_NOTES };
    match number.cmp(&shown) {
        Ordering::Less => (weight, text),
        Ordering::Equal => (weight, format!("{text} (further ones are shown with --verbose only)")),
        Ordering::Greater => (Weight::Detail, text),
    }
}

/// Returns the name of a program's main class in parentheses, or nothing if the agent was loaded too early to know it.
pub(super) fn named(process: &AgentProcess) -> String {
    let main = process.main.to_string();
    if main.is_empty() { String::new() } else { format!(" ({main})") }
}

impl AgentFacts {
    /// Creates the facts of an agent that has connected.
    pub(super) fn new(peer: SocketAddr, dialect: Dialect, run: u8) -> Self {
        Self {
            peer,
            dialect,
            run,
            process: None,
            classes: Classes::default(),
            last_heartbeat: None,
            silent: false,
            data: 0,
            finished: false,
            partial: false,
            broken: BrokenRules::default(),
            modes: LineLimit::default(),
            processes: LineLimit::default(),
            errors: LineLimit::default(),
        }
    }

    /// Returns whether the agent's last data is missing because its process was killed or a connection was lost.
    pub(in crate::cmd::jvm) fn ended_early(&self) -> bool {
        !self.finished || self.broken.rules().iter().any(|finding| finding.rule.is_early_end())
    }

    pub(super) fn violation(&mut self, violation: &Violation) -> (Weight, String) {
        self.silent |= violation.rule == Rule::HeartbeatMissing;
        // Data before the violation is complete; data after it is missing.
        self.partial |= violation.rule.loses() || violation.rule.is_early_end();
        let count = self.broken.add(violation.rule, || describe_violation(None, violation));
        limited(count, Weight::Warning, format!("breaks {violation}"))
    }

    /// Returns the title of the agent's report.
    pub(in crate::cmd::jvm) fn title(&self, id: AgentId) -> String {
        let process = self.process_named();
        format!("Agent {}: version {}, run {}, {}{process}", id.0, self.dialect, self.run, self.peer)
    }

    /// Returns `, process 12 (Main)`, as far as the agent has reported it.
    pub(super) fn process_named(&self) -> String {
        self.process
            .as_ref()
            .map_or_else(String::new, |process| format!(", process {}{}", process.pid, named(process)))
    }
}
