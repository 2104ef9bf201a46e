//! The handshake between two runtap processes that lets a client reach the processes of another machine over one TCP
//! port.
//!
//! ```text
//!   client                                        router
//!     │── hello: versions, nonce ───────────────────▶│
//!     │◀─ challenge: version, nonce ─────────────────│
//!     │── ask: request, router's address, proof ────▶│   proof: HMAC-SHA-256 of all messages so far, keyed by the token
//!     │◀─ answer: status, payload, proof ────────────│   proof by the router
//!     │◀═ one Diagnostic IPC connection ════════════▶│   after an open request
//! ```
//!
//! Both sides know a [`Token`], which is never sent. Each side proves its knowledge with a value that depends on a
//! random number of the other side, so recorded messages are useless in another connection. The address that the client
//! connected to is included, so a router with the same token rejects relayed requests. An attacker on the network can
//! still read all data, and modify what follows the answer: **nothing is encrypted** (docs/remote.md).
//!
//! [`ClientHandshake`] and [`RouterHandshake`] are state machines without I/O: `handle_bytes` processes received bytes,
//! `poll_*` returns what to do, and `wanted` returns how many bytes to read next, so that no data after the handshake
//! is consumed. [`drive`] runs a handshake over a stream. This module contains the messages and reads the token file;
//! it neither listens nor connects.

#![deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]
#![warn(clippy::cast_possible_truncation)]

mod address;
mod client;
mod error;
mod listed;
mod message;
mod proof;
mod router;
mod stream;
mod token;

pub use self::address::{AddressError, HostPort, RemoteAddress, RemoteSelector};
pub use self::client::{ClientHandshake, Reply};
pub use self::error::{HandshakeError, Refusal};
pub use self::listed::{MAX_LISTED, MAX_TEXT, RemoteProcess};
pub use self::message::{MAX_ANSWER, Nonce, Request, VERSION};
pub use self::router::{RouterEvent, RouterHandshake};
pub use self::stream::{Handshake, drive, nonce};
pub use self::token::{MIN_TOKEN, Token, TokenError};
