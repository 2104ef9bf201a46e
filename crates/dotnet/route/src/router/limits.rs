//! The limits of a router.

use std::time::Duration;

use runtap_transport::most_descriptors;

/// The limits of a router.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Limits {
    /// The time within which a client must send its complete request.
    pub request: Duration,
    /// The maximum number of clients without a complete request. If there are more, the oldest is disconnected. Each may use 64 KiB
    /// for one message. At most a quarter of `connections`.
    pub silent: usize,
    /// The maximum number of clients that are served or wait at the same time. Further ones wait in the system's queue.
    pub connections: usize,
    /// The maximum number of clients that wait for a connection of a runtime. Further ones are rejected.
    pub queue: usize,
    /// The maximum time that such a client waits.
    pub wait: Duration,
    /// Time-out for connecting.
    pub connect: Duration,
    /// The time within which a runtime that has connected must identify itself.
    pub advertise: Duration,
    /// The time for which a client may read nothing of a reply before it is disconnected. The stream of a session is not limited: a
    /// runtime drops events if its client does not read.
    pub stalled: Duration,
    /// The time within which a runtime must start its reply to a client that has stopped sending. Such a client may be gone, which
    /// can't be detected for TCP.
    pub unanswered: Duration,
    /// The time for pending clients to finish when the router stops.
    pub shut_down: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self::within(most_descriptors())
    }
}

impl Limits {
    /// Returns the limits for a number of descriptors, of which each client needs two.
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
    fn silent_clients_leave_room_with_any_number_of_descriptors() {
        for descriptors in [64, 256, 1024, 4096, 16_384, 1 << 20, usize::MAX] {
            let limits = Limits::within(descriptors);
            assert!(limits.silent * 4 <= limits.connections, "{limits:?}");
            assert!(limits.connections * 2 < descriptors, "{limits:?}");
        }
        let limits = Limits::within(0);
        assert_eq!((limits.silent, limits.connections), (1, 1));
    }
}
