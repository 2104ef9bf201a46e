//! How long a client may take, and how much of the server it gets.

use std::time::Duration;

/// What a server allows its clients.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Limits {
    /// How long a client may take to send its whole request.
    pub request: Duration,
    /// How long a client may take nothing of what is sent to it before it is hung up on.
    pub stalled_reader: Duration,
    /// Connections that are served at the same time, sessions not counted. For a further one the oldest is hung up on that
    /// has not sent its whole request or does not take its answer; only commands that are being carried out keep it
    /// waiting.
    pub connections: usize,
    /// Most bytes of events that one session keeps for its reader, whatever buffer the client asks for.
    pub session_buffer: usize,
    /// How long a thread of the program waits for room in the buffer of a session that asked for that (CollectTracing6,
    /// "block"). Then its event is lost as in any other session, and nobody waits until there is room again: a reader that
    /// hangs costs each thread this time once, not once for each event. [`Notice::Overdue`](crate::Notice::Overdue) tells
    /// the program. The server's own thread never waits.
    pub blocked_writer: Duration,
    /// How long [`ServerThread::shut_down`](crate::ServerThread::shut_down) waits for the readers of sessions and for commands that are being carried
    /// out.
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
