//! Local sockets and the processes behind them.
//!
//! - [`Endpoint`] names a peer, [`Endpoint::connect`] dials it within a time-out and says *why* when it can't:
//!   not there, nobody listens (a stale socket), not permitted, its queue is full, or somebody else listens there than
//!   the one who is meant.
//! - [`Listener`] is the other side: a socket that is private from its first moment and gone when it is dropped.
//! - [`remote`] is the handshake between two runtaps, as a state machine, and its tokens.
//! - [`naming`] has the names of diagnostics sockets: they say whose a socket is meant to be.
//!
//! Nothing here knows a byte of any protocol, nor looks for processes: that is `runtap-discover`'s.

mod bind;
mod bridge;
#[cfg(all(test, target_os = "linux"))]
mod bsd;
#[cfg_attr(unix, path = "descriptor/unix.rs")]
#[cfg_attr(windows, path = "descriptor/windows.rs")]
mod descriptor;
mod endpoint;
mod exposure;
#[cfg(unix)]
mod folder;
mod keep_alive;
#[cfg(target_os = "linux")]
pub mod linux;
#[cfg(unix)]
mod listener;
mod local;
pub mod naming;
#[cfg(unix)]
mod path_check;
mod peer;
pub mod remote;
mod socket;
#[cfg_attr(unix, path = "stream/unix.rs")]
#[cfg_attr(windows, path = "stream/windows.rs")]
mod stream;
#[cfg(target_os = "linux")]
mod unix;
#[cfg(all(unix, not(target_os = "linux")))]
#[path = "bsd.rs"]
mod unix;
#[cfg(windows)]
mod windows;

pub use bind::{BindError, BindOptions};
pub use bridge::{Bridge, Call, FarEnd};
pub use descriptor::{Descriptor, Lent, lend, most_descriptors};
pub use endpoint::{ConnectError, ConnectFailure, Endpoint, ProcessEndpoint};
pub use exposure::Exposure;
#[cfg(unix)]
pub use folder::Folder;
pub use keep_alive::keep_alive;
#[cfg(unix)]
pub use listener::Listener;
pub use local::{LocalListener, LocalStream};
#[cfg(unix)]
pub use path_check::PathCheck;
pub use peer::Peer;
pub use socket::{Socket, SocketState};
#[cfg(unix)]
pub use stream::MAX_DESCRIPTORS;
pub use stream::Stream;
#[cfg(windows)]
pub use windows::Listener;
