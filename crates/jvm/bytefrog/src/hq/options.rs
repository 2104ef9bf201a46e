//! The options of HQ.

use std::sync::Arc;
use std::time::Duration;

use runtap_bytefrog_proto::hq::Settings;
use runtap_bytefrog_proto::{Configuration, Mode};

use super::Recorder;
#[cfg(doc)]
use super::{Event, Hq};
use crate::Limits;

/// The configuration that HQ sends to agents, and limits on what it accepts from them.
#[derive(Debug, Clone)]
pub struct Options {
    /// The versions that are accepted, and how much is read of one message.
    pub protocol: Settings,
    /// The configuration of each agent: which classes it traces. HQ sets the run number.
    pub configuration: Configuration,
    /// The mode that an agent is led to as soon as it has its configuration. `None`: it waits for [`Hq::go`].
    pub begin: Option<Mode>,
    /// How much is kept of each trace.
    pub limits: Limits,
    /// Agents of those that are kept whose traces have all of [`Options::limits`]. All others have [an eighth](Limits::small), so
    /// that a crowd of agents can't take all memory: 64 agents 1.5 GB at most by default. One is left for HQ's own user. A trace that
    /// has ended and would have found room in an eighth leaves its place to others.
    pub large: usize,
    /// Nanoseconds from which a call is in the log of slow calls.
    pub slow: u64,
    /// Agents that are kept with their traces, those that are over too. The oldest of these makes room for a new agent. If all live,
    /// an agent of the user with most of them is displaced ([`Event::Displaced`]), but none of HQ's own user for another user's, and
    /// for the first agent of the own user also where each user has one only; else the oldest agent that has sent only hello. If no agent can be displaced, the new agent is refused.
    pub agents: usize,
    /// Connections at a time, which are shared among users likewise: the oldest that has not said hello makes room, or the user's
    /// newest agent with all of its connections. For one of HQ's own user, other users give way whatever they hold.
    pub connections: usize,
    /// How long a connection may take to say hello, and a write to be taken.
    pub patience: Duration,
    /// Versions 1 to 4: for how long data connections that are far ahead wait for an event that another one should have. If
    /// all of them wait, for so long after the last has begun.
    pub gap_patience: Duration,
    /// The users (numbers of the system) whose processes may connect: for an address of the loopback interface, on Linux
    /// ([`runtap_os::loopback::is_known`]). All others are told of ([`Event::Stranger`]) and hear nothing. `None`: everybody may.
    pub users: Option<Vec<u32>>,
    /// Who keeps what goes over the connections.
    pub recorder: Option<Arc<dyn Recorder>>,
}

impl Default for Options {
    /// All versions; everything is traced from the beginning; calls of 100 ms are slow; 64 agents, 8 of them large, 200
    /// connections; 10 seconds, and 3 for gaps.
    fn default() -> Self {
        Self {
            protocol: Settings::default(),
            configuration: Configuration::default(),
            begin: Some(Mode::Tracing),
            limits: Limits::default(),
            large: 8,
            slow: 100_000_000,
            agents: 64,
            connections: 200,
            patience: Duration::from_secs(10),
            gap_patience: Duration::from_secs(3),
            users: None,
            recorder: None,
        }
    }
}
