//! The options of HQ.

use std::sync::Arc;
use std::time::Duration;

use runtap_bytefrog_proto::hq::Settings;
use runtap_bytefrog_proto::{Configuration, Mode};

use super::Recorder;
use super::slots::max_closing;
#[cfg(doc)]
use super::{Event, Hq};
use crate::Limits;

/// The configuration that HQ sends to agents, and the limits on what HQ accepts from them.
#[derive(Debug, Clone)]
pub struct Options {
    /// The accepted versions, and the limits of the decoder.
    pub protocol: Settings,
    /// The configuration of each agent: which classes it traces. HQ sets the run number.
    pub configuration: Configuration,
    /// The mode that each agent is put in once it is configured. `None` waits for [`Hq::change_mode`].
    pub initial_mode: Option<Mode>,
    /// The limits on what is kept of each large trace.
    pub limits: Limits,
    /// The number of agents whose traces have the full [`Options::limits`]. All others have [an
    /// eighth](Limits::small), so that a crowd of agents cannot use up all memory: by default, 64 agents use at
    /// most 1.5 GB. One of these slots is reserved for HQ's own user. A complete trace that fits into an eighth
    /// releases its slot.
    pub large: usize,
    /// The duration in nanoseconds from which a call is logged as slow.
    pub slow: u64,
    /// The maximum number of agents that are kept with their traces, including those that have finished, of which
    /// the oldest makes room for a new agent. If none has finished, an agent of the user with the most agents is
    /// displaced ([`Event::Displaced`]), but never one of HQ's own user for another user; the first agent of HQ's
    /// own user displaces one even if each user has only one. Otherwise the oldest agent that has only said hello
    /// is displaced. If no agent can be displaced, the new agent is rejected.
    pub agents: usize,
    /// The maximum number of connections at a time, shared among users in the same way: the oldest connection that
    /// has not said hello makes room, or the user's newest agent with all of its connections. A connection of HQ's
    /// own user always displaces those of other users.
    pub connections: usize,
    /// The time that a connection has to say hello, and that a write may take.
    pub timeout: Duration,
    /// Versions 1 to 4: the time for which data connections that are far ahead wait for an event of another
    /// connection. If all of them wait, the time is counted from when the last one was opened.
    pub gap_timeout: Duration,
    /// The users (numeric IDs) whose processes may connect, for an address of the loopback interface on Linux
    /// ([`runtap_os::loopback::is_known`]). Others are reported ([`Event::UserRejected`]) and receive no reply.
    /// `None` allows all users.
    pub users: Option<Vec<u32>>,
    /// The recorder of the connections; `None` records nothing.
    pub recorder: Option<Arc<dyn Recorder>>,
}

impl Default for Options {
    /// Returns options that accept all versions and trace everything from the start: calls of 100 ms are slow; 64
    /// agents, 8 of them large, and 200 connections; time-outs of 10 seconds, and 3 for gaps.
    fn default() -> Self {
        Self {
            protocol: Settings::default(),
            configuration: Configuration::default(),
            initial_mode: Some(Mode::Tracing),
            limits: Limits::default(),
            large: 8,
            slow: 100_000_000,
            agents: 64,
            connections: 200,
            timeout: Duration::from_secs(10),
            gap_timeout: Duration::from_secs(3),
            users: None,
            recorder: None,
        }
    }
}

/// The number of descriptors that are left for everything but connections.
const RESERVED_DESCRIPTORS: usize = 64;

impl Options {
    /// Returns the number of connections of all users that may be open within a limit of descriptors, at most the
    /// default. A connection needs one for its socket and, if it is recorded, two files for each direction. Some more
    /// are shut down but have not ended.
    pub fn connections_within(descriptors: usize, is_recorded: bool) -> usize {
        let each = if is_recorded { 5 } else { 1 };
        let most = descriptors.saturating_sub(RESERVED_DESCRIPTORS) / each;
        let fits = |open: &usize| open + max_closing(*open) <= most;
        // An agent needs two connections.
        (2..=Self::default().connections).rev().find(fits).unwrap_or(2)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_connection_limit_leaves_descriptors_for_other_uses() {
        let connections = Options::connections_within;
        assert_eq!([connections(4096, false), connections(4096, true)], [200, 200]);
        assert_eq!([connections(1024, true), connections(256, false)], [154, 154]);
        assert_eq!(connections(10, true), 2);
    }
}
