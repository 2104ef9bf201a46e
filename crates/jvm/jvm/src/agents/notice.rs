//! What happened to agents, as values that a printer turns into lines.

use std::cmp::Ordering;

use runtap_bytefrog::hq::{AgentId, Event};
use runtap_bytefrog_proto::hq::AgentProcess;
use runtap_bytefrog_proto::{Command, ModeByte};

/// The maximum number of warnings of each kind shown for an agent, because any client that can connect can cause them.
pub(super) const MAX_WARNINGS: u64 = 5;
/// The maximum number of notes of each kind. A program that its user suspends and resumes causes several.
pub(super) const MAX_NOTES: u64 = 50;

/// The importance of a notice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Weight {
    /// Shown only if details are requested.
    Detail,
    /// Shown.
    Note,
    /// Shown as a warning.
    Warning,
}

/// What happened to an agent, or to the collector.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Notice {
    /// The importance.
    pub weight: Weight,
    /// The agent; `None` for the collector.
    pub agent: Option<AgentId>,
    /// What happened.
    pub news: News,
    /// Whether all later notices of this kind about the agent are details.
    pub is_last: bool,
}

/// What happened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum News {
    /// An event of the agent, or of a connection that belongs to no agent.
    Event(Event),
    /// A heartbeat has arrived after one was overdue.
    AliveAgain(ModeByte),
    /// A data connection was closed; the number of open ones.
    DataClosed(usize),
    /// The agent was disconnected, to make room for a new one ([`Event::Displaced`]).
    Displaced {
        /// The process of the agent, as far as the agent has reported it.
        process: Option<AgentProcess>,
        /// The user of the agent's process; `None` if unknown.
        user: Option<u32>,
        /// The user of the new agent's process; `None` if unknown.
        newcomer: Option<u32>,
        /// Whether the agent has sent nothing but hello.
        silent: bool,
    },
    /// A command was sent to the agent.
    Sent(Command),
    /// A command could not be sent to the agent, for this reason.
    NotSent(Command, String),
    /// This number of notices was discarded, because the queue was full.
    LeftOut(u64),
}

impl Notice {
    /// Creates a notice about an agent, or the collector.
    pub fn new(weight: Weight, agent: impl Into<Option<AgentId>>, news: News) -> Self {
        Self { weight, agent: agent.into(), news, is_last: false }
    }

    /// Reduces the weight of the `number`th notice of its kind if it is beyond the limit.
    pub(super) fn limited(self, number: u64) -> Self {
        let shown = if self.weight == Weight::Warning { MAX_WARNINGS } else { MAX_NOTES };
        match number.cmp(&shown) {
            Ordering::Less => self,
            Ordering::Equal => Self { is_last: true, ..self },
            Ordering::Greater => Self { weight: Weight::Detail, ..self },
        }
    }
}
