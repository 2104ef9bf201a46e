//! A proxy between tools and a runtime that records all messages. docs/transcripts.md describes the format.
//!
//! ```text
//!  Way::ToRuntime   tool ── connects to ──▶ recorder's socket ══▶ runtime's socket   one connection for each of the tool's
//!  Way::ToTool      runtime ── connects to ──▶ recorder's socket ══▶ tool's port     one connection for each of the runtime's
//! ```
//!
//! **Connections are forwarded unchanged**: every byte, each message in a single write, descriptors with the byte that carried
//! them, and the end of one direction as the end of that direction. A line is written before its bytes are forwarded, so that a
//! killed recorder has recorded everything it received. If a line can't be written, forwarding continues.
//!
//! There are three differences from a direct connection. A runtime serves no other client while it waits for a request; the
//! recorder connects to the runtime only when the request is complete, so an idle tool blocks no others. The number of idle
//! tools is limited. And a connection that is reset with unread data arrives as one that ends.
//!
//! Messages are not validated: a request that would crash a runtime is forwarded too. Does not print.

mod connection;
mod describe;
#[cfg_attr(target_os = "linux", path = "ended/linux.rs")]
#[cfg_attr(windows, path = "ended/windows.rs")]
#[cfg_attr(not(any(target_os = "linux", windows)), path = "ended/bsd.rs")]
mod ended;
#[cfg(all(test, target_os = "linux"))]
#[path = "ended/bsd.rs"]
mod ended_bsd;
mod log;
pub mod messages;
mod passed;
mod run;
mod silent;
mod socket;
mod start;
#[cfg(any(target_os = "linux", windows))]
mod watching;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use runtap_os::allow_many_files;
use runtap_transport::{Endpoint, Listener, Peer};
use tokio::sync::watch;
use tokio::task::JoinSet;

pub use self::describe::{Described, DiagnosticIpc, Dissector, field};
pub(crate) use self::describe::{of_answer, of_refusal, side_of};
pub use self::log::Streams;
pub(crate) use self::run::conduct;
pub use self::run::{Command, Error, RecordOutcome, Recording, Stop, is_in_foreground};
use self::silent::PendingClients;
pub use self::socket::{RecorderSocket, SocketError};
pub use self::start::recorder_header;
pub use runtap_transcript::{
    Error as TranscriptError, Header, Inspector, Journal, JournalTotals, Reader, Row, create,
};

/// The pause before accepting again when the process has no free descriptors.
const ACCEPT_RETRY_INTERVAL: Duration = Duration::from_millis(50);

/// The direction of connections.
#[derive(Debug, Clone)]
pub enum Way {
    /// Tools connect to the recorder, and the recorder connects to the runtime.
    ToRuntime(Endpoint),
    /// Runtimes connect to the recorder as to a tool's port, and the recorder connects to the port on which the tool listens.
    ToTool(Endpoint),
}

/// The phase of a recording. A later phase never returns to an earlier one.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Phase {
    /// New connections are accepted.
    #[default]
    Open,
    /// The recording ends when no connection is open. Until then, new connections are accepted, because stopping a session
    /// needs one.
    Closing,
    /// Open connections are closed.
    Broken,
}

/// An event of a recording.
#[derive(Debug)]
#[non_exhaustive]
pub enum Event<'a> {
    /// A client has connected.
    Opened {
        /// The name of the connection.
        conn: &'a str,
        /// The client.
        peer: Peer,
    },
    /// The other side could not be reached.
    Unreachable {
        /// The name of the connection.
        conn: &'a str,
        /// The reason.
        error: &'a runtap_transport::ConnectError,
    },
    /// The transcript can't be written any more; connections are still forwarded.
    NotWritten(&'a runtap_transcript::Error),
    /// The end was requested while connections are open.
    Closing {
        /// The number of open connections.
        open: usize,
    },
    /// A connection was closed.
    Closed {
        /// The name of the connection.
        conn: &'a str,
        /// The file with its stream, if there was one.
        stream: Option<PathBuf>,
    },
}

/// A callback for events.
pub type Reporter = Arc<dyn Fn(Event<'_>) + Send + Sync>;

/// The state shared by all connections.
#[derive(Clone)]
pub(crate) struct RecordingContext {
    pub(crate) way: Way,
    pub(crate) journal: Arc<Journal>,
    pub(crate) reporter: Reporter,
    pub(crate) phase: watch::Receiver<Phase>,
}

/// Forwards and records connections until the phase changes and the last connection has ended. Returns the amount of data
/// recorded.
pub async fn record(
    listener: Listener,
    way: Way,
    streams: Streams,
    journal: Arc<Journal>,
    mut phase: watch::Receiver<Phase>,
    reporter: Reporter,
) -> JournalTotals {
    // Only here: a command has been started before, so it does not inherit the limit.
    allow_many_files();
    let mut silent = PendingClients::new();
    let shared = RecordingContext { way, journal: Arc::clone(&journal), reporter, phase: phase.clone() };
    let mut connections = JoinSet::new();
    let mut has_reported_closing = false;
    loop {
        let now = *phase.borrow_and_update();
        if now == Phase::Broken || now == Phase::Closing && connections.is_empty() {
            break;
        }
        // Stopping a running session needs another connection.
        if now == Phase::Closing && !std::mem::replace(&mut has_reported_closing, true) {
            (shared.reporter)(Event::Closing { open: connections.len() });
        }
        let accepted = tokio::select! {
            biased;
            Ok(()) = phase.changed() => continue,
            Some(_ended) = connections.join_next() => continue,
            accepted = listener.accept() => accepted,
        };
        match accepted {
            Ok((stream, peer)) => {
                let log = log::open(&journal, &streams, peer, &shared.way);
                let (shared, leave) = (shared.clone(), silent.enter());
                connections.spawn(connection::forward(shared, log, stream, peer, leave));
            }
            Err(_out_of_descriptors) => {
                silent.disconnect_oldest();
                tokio::time::sleep(ACCEPT_RETRY_INTERVAL).await;
            }
        }
    }
    drop(listener);
    // Each connection watches the phase and closes when it is `Broken`.
    while connections.join_next().await.is_some() {}
    drop(shared);
    journal.totals()
}
