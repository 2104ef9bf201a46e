//! Connect ports: the server connects to a tool, identifies itself, and serves one command after the other.
//!
//! Follows the behavior and the timing of a runtime, except that the server does not identify itself to a tool of another
//! user, whose commands a runtime would carry out. Source: the Diagnostic IPC specification, section "Diagnostic Ports",
//! and measurements.

use std::convert::Infallible;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use runtap_diag_proto::Advertise;
use runtap_os::my_uid;
use runtap_transport::{Endpoint, Peer, Stream};
use tokio::io::AsyncWriteExt;
use tokio::time::{sleep, timeout};

use crate::connection::{ConnectionContext, Dispatcher};
use crate::notice::Notice;

/// The first and the longest pause between attempts. Each pause is 1.25 times the previous one.
const MIN_PAUSE: Duration = Duration::from_millis(10);
const MAX_PAUSE: Duration = Duration::from_millis(500);
/// The time limit for sending the Advertise message.
const ADVERTISE_TIMEOUT: Duration = Duration::from_millis(100);

/// A tool's port to which the server connects.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ConnectPort {
    /// The path of the tool's socket.
    pub path: PathBuf,
    /// Whether the program waits at startup until a tool has resumed it over this port.
    pub suspend: bool,
    /// Whether tools of any user are served. By default only tools of the program's own user and of root are.
    pub any_user: bool,
}

impl ConnectPort {
    /// Creates a port for which the program waits at startup, as is the default.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into(), suspend: true, any_user: false }
    }

    /// Sets whether the program waits for the port at startup.
    #[must_use]
    pub fn suspend(mut self, yes: bool) -> Self {
        self.suspend = yes;
        self
    }

    /// Sets whether tools of any user are served; such a tool can do everything that the program's commands allow. For a
    /// tool outside of the program's user namespace, whose user is unknown inside.
    #[must_use]
    pub fn any_user(mut self, yes: bool) -> Self {
        self.any_user = yes;
        self
    }
}

/// Connects to `endpoint` forever: disconnects if `is_allowed` rejects the listening process, as reported by the kernel;
/// otherwise sends the Advertise message, waits for the first byte of a command, and passes the connection to `serve`.
/// Connects again when the future of `serve` completes, which may be before the end of the connection: a session
/// keeps its own.
pub async fn connect_forever<S: Future<Output = ()>>(
    endpoint: &Endpoint,
    advertise: Advertise,
    mut is_allowed: impl FnMut(Peer) -> bool,
    mut serve: impl FnMut(Stream) -> S,
) -> Infallible {
    let greeting = advertise.to_bytes();
    let mut pause = MIN_PAUSE;
    loop {
        if let Ok(mut stream) = endpoint.connect_unverified(ADVERTISE_TIMEOUT).await
            && stream.peer().is_ok_and(&mut is_allowed)
            && matches!(timeout(ADVERTISE_TIMEOUT, stream.write_all(&greeting)).await, Ok(Ok(())))
        {
            pause = MIN_PAUSE;
            if matches!(stream.readable().await, Ok(true)) {
                serve(stream).await;
                continue;
            }
        }
        sleep(pause).await;
        pause = pause.mul_f64(1.25).min(MAX_PAUSE);
    }
}

/// Connects to one port and serves its commands, forever.
pub(crate) async fn serve(dispatcher: Dispatcher, port: ConnectPort, number: usize) -> Infallible {
    let dispatcher = dispatcher.for_port(number);
    let info = &dispatcher.description().info;
    let advertise = Advertise { runtime_cookie: info.runtime_cookie, process_id: info.process_id };
    let endpoint = Endpoint::local(&port.path);
    let mut told_of = None;
    let is_allowed = |peer: Peer| {
        let trusted = port.any_user || peer.uid == 0 || peer.uid == my_uid();
        if !trusted && told_of.replace(peer.uid) != Some(peer.uid) {
            dispatcher.notifier().notify(|| Notice::ForeignTool { path: port.path.clone(), peer });
        }
        trusted
    };
    let turn = Arc::new(tokio::sync::Semaphore::new(1));
    connect_forever(&endpoint, advertise, is_allowed, |stream| {
        let (dispatcher, turn) = (dispatcher.clone(), Arc::clone(&turn));
        async move {
            // The semaphore is never closed; the permit is released when the command is complete, or its session has started.
            let Ok(permit) = Arc::clone(&turn).acquire_owned().await else { return };
            tokio::spawn(async move {
                let context = ConnectionContext {
                    peer: stream.peer().ok(),
                    permit: Some(permit),
                    ..ConnectionContext::default()
                };
                // An error means that the client has disconnected.
                let _: std::io::Result<()> = dispatcher.serve_with(stream, context).await;
            });
            let _ = turn.acquire().await;
        }
    })
    .await
}
