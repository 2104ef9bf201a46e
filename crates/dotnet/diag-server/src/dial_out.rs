//! Connect ports: the server dials a tool, says who it is, and waits there for one command after the other.
//!
//! Does what a runtime does, with its times, but that a tool of another user is not told who we are: a runtime tells
//! everybody, and does what it is told there. Owns the dialling; what a command does is `connection`'s. Source: the Diagnostic IPC specification, section "Diagnostic Ports", and measurements.

use std::convert::Infallible;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use runtap_diag_proto::Advertise;
use runtap_os::my_uid;
use runtap_transport::{Endpoint, Peer, Stream};
use tokio::io::AsyncWriteExt;
use tokio::time::{sleep, timeout};

use crate::connection::{Dispatcher, Visit};
use crate::notice::Notice;

/// Between two tries: at first, and at most. Each is 1.25 times the one before.
const FIRST_PAUSE: Duration = Duration::from_millis(10);
const LONGEST_PAUSE: Duration = Duration::from_millis(500);
/// For the Advertise message to be taken by the kernel.
const ADVERTISE: Duration = Duration::from_millis(100);

/// A tool's port that the server dials.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ConnectPort {
    /// Its socket.
    pub path: PathBuf,
    /// Whether the program waits at startup until a tool has resumed it over this port.
    pub suspend: bool,
    /// Whether a tool of any user is served there. Off: only one of our own user, or of root.
    pub any_user: bool,
}

impl ConnectPort {
    /// A port for which the program waits at startup, as it is by default.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into(), suspend: true, any_user: false }
    }

    /// Whether the program waits for it.
    #[must_use]
    pub fn suspend(mut self, yes: bool) -> Self {
        self.suspend = yes;
        self
    }

    /// Whether a tool of any user is served there, who can do with the program what its commands allow. For a tool outside
    /// of the program's user namespace, whose user is nobody here.
    #[must_use]
    pub fn any_user(mut self, yes: bool) -> Self {
        self.any_user = yes;
        self
    }
}

/// Dials `endpoint` for ever: asks `may_know` whether whoever listens there, as the kernel says, is to be told who we are,
/// and hangs up if not; says who we are, waits for the first byte of a command, and gives the connection to
/// `serve`. Dials again when the future of `serve` is ready, which need not be the end of the connection: a session
/// keeps its own.
pub async fn dial_out<S: Future<Output = ()>>(
    endpoint: &Endpoint,
    advertise: Advertise,
    mut may_know: impl FnMut(Peer) -> bool,
    mut serve: impl FnMut(Stream) -> S,
) -> Infallible {
    let greeting = advertise.to_bytes();
    let mut pause = FIRST_PAUSE;
    loop {
        if let Ok(mut stream) = endpoint.connect_unverified(ADVERTISE).await
            && stream.peer().is_ok_and(&mut may_know)
            && matches!(timeout(ADVERTISE, stream.write_all(&greeting)).await, Ok(Ok(())))
        {
            pause = FIRST_PAUSE;
            if matches!(stream.readable().await, Ok(true)) {
                serve(stream).await;
                continue;
            }
        }
        sleep(pause).await;
        pause = pause.mul_f64(1.25).min(LONGEST_PAUSE);
    }
}

/// Dials one port and serves what comes, for ever.
pub(crate) async fn serve(dispatcher: Dispatcher, port: ConnectPort, number: usize) -> Infallible {
    let dispatcher = dispatcher.of_port(number);
    let info = &dispatcher.description().info;
    let advertise = Advertise { runtime_cookie: info.runtime_cookie, process_id: info.process_id };
    let endpoint = Endpoint::local(&port.path);
    let mut told_of = None;
    let may_know = |peer: Peer| {
        let trusted = port.any_user || peer.uid == 0 || peer.uid == my_uid();
        if !trusted && told_of.replace(peer.uid) != Some(peer.uid) {
            dispatcher.notifier().notify(|| Notice::ForeignTool { path: port.path.clone(), peer });
        }
        trusted
    };
    let turn = Arc::new(tokio::sync::Semaphore::new(1));
    dial_out(&endpoint, advertise, may_know, |stream| {
        let (dispatcher, turn) = (dispatcher.clone(), Arc::clone(&turn));
        async move {
            // Never closed; free again when the command is over, or its session has begun.
            let Ok(permit) = Arc::clone(&turn).acquire_owned().await else { return };
            tokio::spawn(async move {
                let visit = Visit { peer: stream.peer().ok(), permit: Some(permit), ..Visit::default() };
                // A client that went away is its own affair.
                let _: std::io::Result<()> = dispatcher.serve_with(stream, visit).await;
            });
            let _ = turn.acquire().await;
        }
    })
    .await
}
