//! Local sockets with verification of the peer process.
//!
//! - [`Endpoint`] is the address of a peer. [`Endpoint::connect`] connects within a time-out and distinguishes
//!   failures: the socket does not exist, no process listens (a stale socket), permission is denied, the queue is full,
//!   or another process than the expected one listens.
//! - [`Listener`] accepts connections: its socket is private from the start and removed when it is dropped.
//! - [`remote`] contains the handshake between two runtap processes, as a state machine, and access tokens.
//! - [`naming`] formats and parses the names of diagnostics sockets, which refer to processes.
//!
//! This crate implements no diagnostics protocol and does not search for processes; `runtap-discover` does.

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
pub use bridge::{Bridge, ConnectRequest, FarEnd};
pub use descriptor::{BorrowedDescriptor, Descriptor, lend, most_descriptors};
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
