//! Local sockets and the processes behind them.
//!
//! - [`Endpoint`] names a peer, [`Endpoint::connect`] dials it within a time-out and says *why* when it can't:
//!   not there, nobody listens (a stale socket), not permitted, its queue is full, or somebody else listens there than
//!   the one who is meant.
//! - [`Listener`] is the other side: a socket that is private from its first moment and gone when it is dropped.
//! - [`shell`] quotes what stands in a command that is suggested to people.
//! - [`in_a_thread`] is for what may take long, so that signals are handled meanwhile.
//! - [`naming`] has the names of diagnostics sockets: they say whose a socket is meant to be.
//!
//! Nothing here knows a byte of any protocol, nor looks for processes: that is `runtap-discover`'s.

#[cfg(unix)]
mod bridge;
#[cfg(all(test, target_os = "linux"))]
mod bsd;
mod endpoint;
#[cfg(unix)]
mod exposure;
#[cfg(unix)]
mod folder;
#[cfg(target_os = "linux")]
pub mod linux;
#[cfg(unix)]
mod listener;
pub mod naming;
pub mod shell;
mod socket;
mod stream;
mod thread;
#[cfg(target_os = "linux")]
mod unix;
#[cfg(all(unix, not(target_os = "linux")))]
#[path = "bsd.rs"]
mod unix;
#[cfg(windows)]
mod windows;

#[cfg(unix)]
pub use bridge::{Bridge, Call};
pub use endpoint::{ConnectError, ConnectFailure, Endpoint, ProcessEndpoint};
#[cfg(unix)]
pub use exposure::{Exposure, PathCheck};
#[cfg(unix)]
pub use folder::{Folder, random_u64};
#[cfg(unix)]
pub use listener::{BindError, BindOptions, Listener};
pub use socket::{Socket, SocketState};
#[cfg(target_os = "linux")]
pub use stream::MAX_DESCRIPTORS;
pub use stream::{Peer, Stream};
#[cfg(unix)]
pub use thread::allow_many_files;
pub use thread::{in_a_thread, in_thread_called};
