//! The handshake between two runtaps: how one reaches the processes of the other's machine over one TCP port.
//!
//! ```text
//!   client                                        router
//!     │── hello: versions, nonce ───────────────────▶│
//!     │◀─ challenge: version, nonce ─────────────────│
//!     │── ask: request, router's address, proof ────▶│   proof: HMAC-SHA-256 of everything said so far, by the token
//!     │◀─ answer: status, what was asked for, proof ─│   and the other way round
//!     │◀═ one connection of Diagnostic IPC ═════════▶│   after an open process
//! ```
//!
//! Both sides know a [`Token`], which is never sent. Each side proves that it knows it by what depends on a random number
//! that the other side has just made: what was overheard is of no use in another connection. The address to which the client
//! has connected is part of it: another router with that token refuses what is passed on to it. Who listens on the way reads
//! everything all the same, and can change what follows the answer: **nothing is encrypted** (docs/remote.md).
//!
//! [`ClientHandshake`] and [`RouterHandshake`] are state machines without I/O: `handle_bytes` takes what came, `poll_*` gives
//! what is to be done, `wanted` is how many bytes are to be read next, so that none of what follows is taken. [`drive`] does
//! it for a stream. Here are the bytes and the token's file; refuses to listen, to dial, and to look for processes.

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

pub use self::address::{AddressError, HostPort, RemoteAddress, Which};
pub use self::client::{ClientHandshake, Reply};
pub use self::error::{HandshakeError, Refusal};
pub use self::listed::{Listed, MAX_LISTED, MAX_TEXT};
pub use self::message::{MAX_ANSWER, Nonce, Request, VERSION};
pub use self::router::{RouterEvent, RouterHandshake};
pub use self::stream::{Handshake, drive, nonce};
pub use self::token::{MIN_TOKEN, Token, TokenError};
