//! Stands between tools and a runtime, passes on what both say, and writes it down: docs/transcripts.md has the format.
//!
//! ```text
//!  Way::ToRuntime   tool ── dials ──▶ our socket ══▶ runtime's socket      one connection of ours for each of a tool's
//!  Way::ToTool      runtime ── dials ──▶ our socket ══▶ tool's port        one connection of ours for each of a runtime's
//! ```
//!
//! **What comes out is what came in**: every byte, each message in one write, descriptors with the byte they came with, the
//! end of one direction as the end of that direction. A line is written before its bytes are passed on, so that a
//! recorder which is killed has written all that was heard. If it can't be written, everything goes on passing.
//!
//! Three things are not as without us. A runtime serves nobody else while it waits for a request; here it is dialled only when
//! the request is whole, so a silent tool holds up nobody. Of silent ones a bounded number is kept. And a connection that breaks off with something unread arrives
//! as one that ends.
//!
//! Refuses to judge: what would kill a runtime is passed on like everything else. Refuses to print.

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
mod passed;
mod place;
mod run;
mod silent;
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
pub use self::place::{Place, PlaceError};
pub(crate) use self::run::conduct;
pub use self::run::{Command, Error, Outcome, Recording, Stop, is_in_foreground};
use self::silent::Silent;
pub use runtap_transcript::{
    Error as TranscriptError, Header, Inspector, Journal, Reader, Row, Totals, create,
};

/// How long a pause is made when the system is out of descriptors.
const OUT_OF_DESCRIPTORS: Duration = Duration::from_millis(50);

/// Who dials whom.
#[derive(Debug, Clone)]
pub enum Way {
    /// Tools dial us, and we dial the runtime.
    ToRuntime(Endpoint),
    /// Runtimes dial us as they dial a tool's port, and we dial the port on which the tool listens.
    ToTool(Endpoint),
}

/// How far a recording has got. It only goes forward.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Phase {
    /// New connections are taken.
    #[default]
    Open,
    /// It ends when no connection is open. Until then new ones are taken: a session is stopped over one.
    Closing,
    /// They are broken off.
    Broken,
}

/// What happens meanwhile.
#[derive(Debug)]
#[non_exhaustive]
pub enum Event<'a> {
    /// Somebody has dialled.
    Opened {
        /// What the connection is called.
        conn: &'a str,
        /// Who it is.
        peer: Peer,
    },
    /// The other side could not be dialled.
    Unreachable {
        /// What the connection is called.
        conn: &'a str,
        /// Why.
        error: &'a runtap_transport::ConnectError,
    },
    /// The transcript can't be written any more; connections still pass.
    NotWritten(&'a runtap_transcript::Error),
    /// The end was asked for, and so many connections are open.
    Closing {
        /// How many.
        open: usize,
    },
    /// A connection is over.
    Closed {
        /// What the connection is called.
        conn: &'a str,
        /// The file with its stream, if there was one.
        stream: Option<PathBuf>,
    },
}

/// Hears what happens.
pub type Reporter = Arc<dyn Fn(Event<'_>) + Send + Sync>;

/// What every connection needs.
#[derive(Clone)]
pub(crate) struct Shared {
    pub(crate) way: Way,
    pub(crate) journal: Arc<Journal>,
    pub(crate) reporter: Reporter,
    pub(crate) phase: watch::Receiver<Phase>,
}

/// Passes connections on until the phase says otherwise and the last of them has ended. Gives what was written.
pub async fn record(
    listener: Listener,
    way: Way,
    streams: Streams,
    journal: Arc<Journal>,
    mut phase: watch::Receiver<Phase>,
    reporter: Reporter,
) -> Totals {
    // Here, because a command was started before, and would inherit it.
    allow_many_files();
    let mut silent = Silent::new();
    let shared = Shared { way, journal: Arc::clone(&journal), reporter, phase: phase.clone() };
    let mut connections = JoinSet::new();
    let mut told = false;
    loop {
        let now = *phase.borrow_and_update();
        if now == Phase::Broken || now == Phase::Closing && connections.is_empty() {
            break;
        }
        // A session that runs is stopped over a connection of its own.
        if now == Phase::Closing && !std::mem::replace(&mut told, true) {
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
                connections.spawn(connection::pass(shared, log, stream, peer, leave));
            }
            Err(_out_of_descriptors) => {
                silent.disconnect_oldest();
                tokio::time::sleep(OUT_OF_DESCRIPTORS).await;
            }
        }
    }
    drop(listener);
    // Each of them hears it when they are to be broken off.
    while connections.join_next().await.is_some() {}
    drop(shared);
    journal.totals()
}
