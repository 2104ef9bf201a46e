//! Local sockets and the processes behind them.
//!
//! - [`Endpoint`] names a peer, [`Endpoint::connect`] dials it within a time-out and says *why* when it can't:
//!   not there, nobody listens (a stale socket), not permitted, its queue is full, or somebody else listens there than
//!   the one who is meant.
//! - [`Listener`] is the other side: a socket that is private from its first moment and gone when it is dropped.
//! - [`shell`] quotes what stands in a command that is suggested to people.
//! - [`in_a_thread`] is for what may take long, so that signals are handled meanwhile.
//! - [`random`] has numbers that nobody can foresee.
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
#[cfg(target_os = "linux")]
#[path = "random/linux.rs"]
mod random;
#[cfg(all(unix, not(target_os = "linux")))]
#[path = "random/bsd.rs"]
mod random;
#[cfg(all(test, target_os = "linux"))]
#[expect(unreachable_pub, reason = "it is the interface elsewhere")]
#[path = "random/bsd.rs"]
mod random_bsd;
pub mod shell;
mod socket;
#[cfg_attr(unix, path = "stream/unix.rs")]
#[cfg_attr(windows, path = "stream/windows.rs")]
mod stream;
mod thread;
#[cfg(target_os = "linux")]
mod unix;
#[cfg(all(unix, not(target_os = "linux")))]
#[path = "bsd.rs"]
mod unix;
#[cfg_attr(unix, path = "user_unix.rs")]
#[cfg_attr(windows, path = "user_windows.rs")]
mod user;
#[cfg(windows)]
mod windows;

pub use bind::{BindError, BindOptions};
pub use bridge::{Bridge, Call, FarEnd};
pub use descriptor::{Descriptor, Lent, lend, most_descriptors};
pub use endpoint::{ConnectError, ConnectFailure, Endpoint, ProcessEndpoint};
pub use exposure::Exposure;
#[cfg(unix)]
pub use folder::Folder;
#[cfg(unix)]
pub use folder::random_u64;
pub use keep_alive::keep_alive;
#[cfg(unix)]
pub use listener::Listener;
pub use local::{LocalListener, LocalStream};
#[cfg(unix)]
pub use path_check::PathCheck;
pub use peer::Peer;
#[cfg(unix)]
pub use random::random;
#[cfg(windows)]
pub use runtap_windows::random::{fill as random, random_u64};
pub use socket::{Socket, SocketState};
#[cfg(unix)]
pub use stream::MAX_DESCRIPTORS;
pub use stream::Stream;
pub use thread::{allow_many_files, in_a_thread, in_thread_called};
#[cfg(windows)]
pub use user::uid_of;
pub use user::{is_root, my_uid};
#[cfg(windows)]
pub use windows::Listener;
