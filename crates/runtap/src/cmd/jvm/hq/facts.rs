//! What is known of one agent beside its trace.

use std::cmp::Ordering;
use std::net::SocketAddr;

use runtap_bytefrog::hq::AgentId;
use runtap_bytefrog_proto::hq::AgentProcess;
use runtap_bytefrog_proto::{Dialect, ModeByte, Rule, Violation};

use super::super::broken::{Broken, words};
use super::super::document::Classes;
use super::watch::Weight;

/// An agent, as its control connection has it.
#[derive(Debug, Clone)]
pub(in crate::cmd::jvm) struct Facts {
    pub(in crate::cmd::jvm) peer: SocketAddr,
    pub(in crate::cmd::jvm) dialect: Dialect,
    pub(in crate::cmd::jvm) run: u8,
    pub(in crate::cmd::jvm) process: Option<AgentProcess>,
    pub(in crate::cmd::jvm) classes: Classes,
    /// What its last heartbeat said, and its buffers that wait.
    pub(in crate::cmd::jvm) said: Option<(ModeByte, u16)>,
    /// No heartbeat has come in time.
    pub(in crate::cmd::jvm) silent: bool,
    pub(in crate::cmd::jvm) data: usize,
    pub(in crate::cmd::jvm) finished: bool,
    /// Whether its end was as it should be.
    pub(in crate::cmd::jvm) partial: bool,
    /// The rules that were broken on its connections.
    pub(in crate::cmd::jvm) broken: Broken,
    /// Lines about what the agent may send again and again.
    pub(super) modes: Repeated,
    pub(super) processes: Repeated,
    pub(super) errors: Repeated,
}

/// Warnings of each kind that are shown for an agent: anybody who can connect can cause them.
pub(super) const WARNINGS: u64 = 5;
/// Notes of each kind. A program that is suspended and resumed by its user has some.
const NOTES: u64 = 50;

/// Lines of one kind: the first of them are shown, all further ones are for the curious.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Repeated(u64);

impl Repeated {
    pub(super) fn line(&mut self, weight: Weight, text: String) -> (Weight, String) {
        self.0 += 1;
        limited(self.0, weight, text)
    }
}

/// The line with this number of its kind.
fn limited(number: u64, weight: Weight, text: String) -> (Weight, String) {
    let shown = if weight == Weight::Warning { WARNINGS } else { NOTES };
    match number.cmp(&shown) {
        Ordering::Less => (weight, text),
        Ordering::Equal => (weight, format!("{text} (further ones are shown with --verbose only)")),
        Ordering::Greater => (Weight::Detail, text),
    }
}

/// The name of a program's main class, if the agent knows it: one that is loaded early does not.
pub(super) fn named(process: &AgentProcess) -> String {
    let main = process.main.to_string();
    if main.is_empty() { String::new() } else { format!(" ({main})") }
}

impl Facts {
    /// An agent that has said hello.
    pub(super) fn new(peer: SocketAddr, dialect: Dialect, run: u8) -> Self {
        Self {
            peer,
            dialect,
            run,
            process: None,
            classes: Classes::default(),
            said: None,
            silent: false,
            data: 0,
            finished: false,
            partial: false,
            broken: Broken::default(),
            modes: Repeated::default(),
            processes: Repeated::default(),
            errors: Repeated::default(),
        }
    }

    /// Whether what the agent still had to send is missing: its process was killed, or a connection was lost.
    pub(in crate::cmd::jvm) fn ended_early(&self) -> bool {
        !self.finished || self.broken.rules().iter().any(|finding| finding.rule.is_early_end())
    }

    pub(super) fn violation(&mut self, violation: &Violation) -> (Weight, String) {
        self.silent |= violation.rule == Rule::HeartbeatMissing;
        // What came before is whole; what should have come behind is not there.
        self.partial |= violation.rule.loses() || violation.rule.is_early_end();
        let count = self.broken.add(violation.rule, || words(None, violation));
        limited(count, Weight::Warning, format!("breaks {violation}"))
    }

    /// One line for a report.
    pub(in crate::cmd::jvm) fn title(&self, id: AgentId) -> String {
        let process = self.process_named();
        format!("Agent {}: version {}, run {}, {}{process}", id.0, self.dialect, self.run, self.peer)
    }

    /// `, process 12 (Main)`, as far as the agent has said that.
    pub(super) fn process_named(&self) -> String {
        self.process
            .as_ref()
            .map_or_else(String::new, |process| format!(", process {}{}", process.pid, named(process)))
    }
}
