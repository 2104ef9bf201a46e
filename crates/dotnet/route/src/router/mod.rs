//! A router that connects tools to a runtime, and protects the runtime from blocking and malformed requests.
//!
//! ```text
//!   tools                          router                                   runtime
//!   connect to socket ─────▶ Front::Listen            Back::Connect ──────▶ listens (TCP, or its own socket)
//!   listen on a port ◀────── Front::Connect           Back::Listen ◀─────── connects (TCP, or a port)
//! ```
//!
//! All four combinations work. A runtime serves one client at a time, waits for a request without a time-out, and crashes on some
//! malformed ones. Therefore:
//!
//! - A request is **read completely and validated** before it is sent to the runtime ([`runtap_diag_proto::server`]). The router
//!   answers malformed and unknown requests itself, as a healthy runtime would.
//! - Each client has its own connection to the runtime. A runtime that connects has one connection at a time, for which clients wait
//!   in order, in a bounded queue, for a bounded time.
//! - Answers are forwarded **byte for byte**, including the end of each direction: the stream of a session continues while a second
//!   connection requests its stop.
//! - A session whose client is gone is stopped, and read meanwhile, because a runtime with nothing to send would keep it forever.
//! - A client that sends nothing uses one descriptor and little memory. It is disconnected after [`Limits::request`], or earlier if
//!   there is no room.
//!
//! To a tool that listens, the router sends the runtime's own Advertise message with its cookie. Descriptors for `user_events`
//! sessions can't be forwarded; such requests are answered with `NOTSUPPORTED`.
//!
//! [`Offer`] serves runtap on other machines: all runtimes of the current user on one port, after a handshake
//! (`runtap_transport::remote`).
//!
//! The module prints nothing and does not select processes.

mod back;
mod client_pool;
mod dsrouter;
mod front;
mod greeting;
mod half;
mod in_use;
mod limits;
mod link;
pub mod messages;
#[cfg_attr(unix, path = "names/unix.rs")]
#[cfg_attr(windows, path = "names/windows.rs")]
mod names;
mod notice;
mod offer;
mod places;
mod pump;
mod relay;
mod request;
mod runtime_registry;

use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinSet;
use tokio::time::timeout;

pub use self::back::{Back, RuntimeAddress, RuntimeConnectError};
pub use self::dsrouter::{Unsupported, normalize_args};
pub use self::front::Front;
pub use self::limits::Limits;
pub use self::link::{Acceptor, Link};
pub use self::names::socket_names;
use self::notice::NoticeReporter;
pub use self::notice::{Notice, Statistics};
pub use self::offer::Offer;
pub use self::relay::Relay;
use self::runtime_registry::RuntimeRegistry;

/// Why a router stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Ended {
    /// It was requested to stop.
    Stopped,
    /// There was no runtime within the time limit.
    NoRuntime,
}

/// A router whose sockets are open.
#[derive(Debug)]
pub struct Router {
    front: Front,
    back: Back,
    limits: Limits,
    runtime_timeout: Option<Duration>,
    reporter: NoticeReporter,
}

impl Router {
    /// Creates a router between these two sides.
    pub fn new(front: Front, back: Back) -> Self {
        let (limits, reporter) = (Limits::default(), NoticeReporter::default());
        Self { front, back, limits, runtime_timeout: None, reporter }
    }

    /// Sets the limits.
    #[must_use]
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// Sets the time without a runtime after which the router stops.
    #[must_use]
    pub fn runtime_timeout(mut self, limit: Option<Duration>) -> Self {
        self.runtime_timeout = limit;
        self
    }

    /// Sets a callback for notices. It must not block.
    #[must_use]
    pub fn on_notice(mut self, callback: impl Fn(&Notice) + Send + Sync + 'static) -> Self {
        self.reporter = self.reporter.with_callback(callback);
        self
    }

    /// Returns the live statistics.
    pub fn statistics(&self) -> Arc<Statistics> {
        self.reporter.statistics()
    }

    /// Runs until `until` is ready, or there has been no runtime for the time limit. Then no more clients are accepted, and pending
    /// ones have [`Limits::shut_down`] to finish.
    pub async fn run(self, until: impl Future<Output = ()>) -> Ended {
        let Self { front, back, limits, runtime_timeout, reporter } = self;
        let mut background = JoinSet::new();
        let (supply, registry) = match back {
            Back::Connect(address) => (relay::Supply::Connect(Arc::new(address)), None),
            Back::Listen(gate) => {
                let registry = Arc::new(RuntimeRegistry::new(limits.clone(), reporter.clone()));
                background.spawn(greeting::accept(Arc::clone(&registry), gate));
                (relay::Supply::Registry(Arc::clone(&registry)), Some(registry))
            }
        };
        let relay = Relay::new(supply, limits.clone(), reporter.clone());
        let ended = tokio::select! {
            () = until => Ended::Stopped,
            () = no_runtime(registry.as_deref(), &relay, runtime_timeout) => Ended::NoRuntime,
            () = front.serve(&relay, registry.as_ref()) => Ended::Stopped,
        };
        drop(front);
        background.shutdown().await;
        relay.close().await;
        ended
    }
}

/// Waits until there has been no runtime for this time. Never ready without a limit.
async fn no_runtime(registry: Option<&RuntimeRegistry>, relay: &Relay, limit: Option<Duration>) {
    let Some(limit) = limit else { return std::future::pending().await };
    match registry {
        Some(registry) => registry.deserted(limit).await,
        None => {
            // A runtime that listens counts as present if it answers a query.
            if timeout(limit, relay.identify_patiently()).await.is_ok() {
                std::future::pending::<()>().await;
            }
        }
    }
}
