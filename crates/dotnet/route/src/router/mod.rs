//! A router: tools on one side, a runtime on the other, and between them nobody who can hold up or harm the runtime.
//!
//! ```text
//!   tools                          router                                   runtime
//!   dial its socket ───────▶ Front::Listen            Back::Dial ─────────▶ listens (TCP, or its own socket)
//!   listen on a port ◀────── Front::Dial              Back::Listen ◀─────── dials in (TCP, or a port)
//! ```
//!
//! Each of the four combinations works. A runtime serves one client at a time, waits for a request without a limit, and
//! dies of some malformed ones. Therefore:
//!
//! - a request is **read whole and checked** before the runtime hears of it ([`runtap_diag_proto::server`]); a malformed one,
//!   and one that this crate does not know, gets the answer of a healthy runtime from the router;
//! - each client has a connection of its own to the runtime. Where the runtime dials in, it has one at a time: clients
//!   wait for it in their order, in a bounded queue, for a bounded time;
//! - what is answered passes **byte for byte**, and so does the end of each direction: a session's stream drains while a
//!   second connection asks for its stop;
//! - a session whose client is gone is stopped, and drained meanwhile: a runtime with nothing to send would keep it for ever;
//! - a client that sends nothing costs a descriptor and little memory, and is disconnected after [`Limits::request`], or
//!   earlier where there is no room.
//!
//! To a tool that listens, the router says what the runtime says of itself: its own Advertise, with its cookie. Descriptors
//! for sessions into `user_events` do not pass: such a request is answered with `NOTSUPPORTED`.
//!
//! [`Offer`] is for runtaps of other machines: all runtimes of our user on one port, after a handshake (`runtap_transport::remote`).
//!
//! Refuses to print, and to choose a process for anybody.

mod back;
mod board;
mod crowd;
mod front;
mod greeting;
mod half;
mod in_use;
mod limits;
mod link;
mod notice;
mod offer;
mod places;
mod pump;
mod relay;
mod request;

use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinSet;
use tokio::time::timeout;

pub use self::back::{Back, DialError, RuntimeAddress};
use self::board::Board;
pub use self::front::Front;
pub use self::limits::Limits;
pub use self::link::{Gate, Link};
use self::notice::Teller;
pub use self::notice::{Notice, Statistics};
pub use self::offer::Offer;
pub use self::relay::Relay;

/// How a router ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Ended {
    /// It was told to.
    Told,
    /// No runtime was there for as long as it may be without one.
    NoRuntime,
}

/// A router whose sockets are there.
#[derive(Debug)]
pub struct Router {
    front: Front,
    back: Back,
    limits: Limits,
    runtime_timeout: Option<Duration>,
    teller: Teller,
}

impl Router {
    /// Between these two.
    pub fn new(front: Front, back: Back) -> Self {
        let (limits, teller) = (Limits::default(), Teller::default());
        Self { front, back, limits, runtime_timeout: None, teller }
    }

    /// With other limits.
    #[must_use]
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// Which ends when no runtime is there for so long.
    #[must_use]
    pub fn runtime_timeout(mut self, limit: Option<Duration>) -> Self {
        self.runtime_timeout = limit;
        self
    }

    /// Which tells this of what happens. What takes long is to be handed on.
    #[must_use]
    pub fn on_notice(mut self, tell: impl Fn(&Notice) + Send + Sync + 'static) -> Self {
        self.teller = self.teller.telling(tell);
        self
    }

    /// What it has carried so far; goes on counting.
    pub fn statistics(&self) -> Arc<Statistics> {
        self.teller.statistics()
    }

    /// Routes until `until` is ready, or no runtime is there any more. Then nobody is let in, and what is being carried
    /// has [`Limits::shut_down`] to come to its end.
    pub async fn run(self, until: impl Future<Output = ()>) -> Ended {
        let Self { front, back, limits, runtime_timeout, teller } = self;
        let mut background = JoinSet::new();
        let (supply, board) = match back {
            Back::Dial(address) => (relay::Supply::Dial(Arc::new(address)), None),
            Back::Listen(gate) => {
                let board = Arc::new(Board::new(limits.clone(), teller.clone()));
                background.spawn(greeting::accept(Arc::clone(&board), gate));
                (relay::Supply::Board(Arc::clone(&board)), Some(board))
            }
        };
        let relay = Relay::new(supply, limits.clone(), teller.clone());
        let ended = tokio::select! {
            () = until => Ended::Told,
            () = nobody_there(board.as_deref(), &relay, runtime_timeout) => Ended::NoRuntime,
            () = front.serve(&relay, board.as_ref()) => Ended::Told,
        };
        drop(front);
        background.shutdown().await;
        relay.close().await;
        ended
    }
}

/// Ready when no runtime was there for so long; never without a limit.
async fn nobody_there(board: Option<&Board>, relay: &Relay, limit: Option<Duration>) {
    let Some(limit) = limit else { return std::future::pending().await };
    match board {
        Some(board) => board.deserted(limit).await,
        None => {
            // One that listens is asked who it is: it was there if it answers.
            if timeout(limit, relay.identify_patiently()).await.is_ok() {
                std::future::pending::<()>().await;
            }
        }
    }
}
