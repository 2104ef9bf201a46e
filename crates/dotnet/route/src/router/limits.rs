//! How much of the router its clients get, and for how long.

use std::time::Duration;

use runtap_transport::most_descriptors;

/// What a router allows.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Limits {
    /// How long a client may take to send its whole request.
    pub request: Duration,
    /// Clients that have not sent their whole request yet. One more, and the oldest is disconnected. Each may hold one
    /// message, 64 KiB. Never more than a quarter of `connections`, so that silence leaves room for who speaks.
    pub silent: usize,
    /// Clients that are carried or wait, at the same time. Further ones wait in the system's queue.
    pub connections: usize,
    /// Clients that wait for a connection of a runtime that dials in. Further ones are refused.
    pub queue: usize,
    /// How long one of them waits.
    pub wait: Duration,
    /// How long dialling may take.
    pub connect: Duration,
    /// How long a runtime that has dialled in may take to say who it is.
    pub advertise: Duration,
    /// How long a client may take nothing of a reply before it is disconnected. A session's stream is not limited: a
    /// runtime drops events where nobody takes them.
    pub stalled: Duration,
    /// How long a runtime may take to begin a reply to a client that has ended sending: it may be gone, which is not known
    /// of one that came over TCP.
    pub unanswered: Duration,
    /// How long what is being carried may go on when the router ends.
    pub shut_down: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self::within(most_descriptors())
    }
}

impl Limits {
    /// What so many descriptors suffice for: who is carried has two.
    fn within(descriptors: usize) -> Self {
        let connections = 4096.min(descriptors / 4).max(1);
        Self {
            request: Duration::from_secs(10),
            silent: 1024.min(connections / 4).max(1),
            connections,
            queue: 64,
            wait: Duration::from_secs(30),
            connect: Duration::from_secs(5),
            advertise: Duration::from_secs(2),
            stalled: Duration::from_mins(1),
            unanswered: Duration::from_mins(10),
            shut_down: Duration::from_secs(2),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn however_few_descriptors_there_are_silence_leaves_room() {
        for descriptors in [64, 256, 1024, 4096, 16_384, 1 << 20, usize::MAX] {
            let limits = Limits::within(descriptors);
            assert!(limits.silent * 4 <= limits.connections, "{limits:?}");
            assert!(limits.connections * 2 < descriptors, "{limits:?}");
        }
        let limits = Limits::within(0);
        assert_eq!((limits.silent, limits.connections), (1, 1));
    }
}
