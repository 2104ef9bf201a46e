//! Limits on the time and the resources of clients.

use std::time::Duration;

/// The limits for the clients of a server.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Limits {
    /// How long a client may take to send its complete request.
    pub request: Duration,
    /// How long a client may read nothing of the data sent to it before it is disconnected.
    pub stalled_reader: Duration,
    /// The most concurrent connections, not counting sessions. A further connection replaces the oldest one that has not
    /// sent its complete request or does not read its answer; if all connections carry out commands, it waits.
    pub connections: usize,
    /// The most bytes of events that one session buffers for its reader, whatever buffer size the client requests.
    pub session_buffer: usize,
    /// How long a thread of the program waits for buffer space in a session that requested blocking (CollectTracing6).
    /// After that its event is lost as in other sessions, and no thread waits until there is space again: a reader that
    /// hangs delays each thread once, not once per event. [`Notice::Overdue`](crate::Notice::Overdue) notifies the program.
    /// The server's own thread never waits.
    pub blocked_writer: Duration,
    /// How long [`ServerThread::shut_down`](crate::ServerThread::shut_down) waits for the readers of sessions and for
    /// running commands.
    pub shut_down: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            request: Duration::from_secs(10),
            stalled_reader: Duration::from_mins(1),
            connections: 256,
            session_buffer: 64 << 20,
            blocked_writer: Duration::from_secs(1),
            shut_down: Duration::from_secs(5),
        }
    }
}
