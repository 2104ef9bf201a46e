//! Errors of a handshake.

use runtap_wire::DecodeError;
use thiserror::Error;

/// The reasons why a handshake fails.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum HandshakeError {
    /// The peer does not implement this protocol.
    #[error("the peer does not implement the protocol of runtap's router: {0}")]
    Malformed(#[from] DecodeError),
    /// The peer closed the connection.
    #[error("the connection was closed after {received} bytes")]
    Closed {
        /// Number of bytes received before.
        received: u64,
    },
    /// The peers have no protocol version in common.
    #[error("the peers have no protocol version in common")]
    Version,
    /// The peer did not prove that it knows the token.
    #[error("the peer has a different token")]
    Unproven,
    /// The router answered with an error.
    #[error("{0}")]
    Refused(Refusal),
}

/// Errors that a router answers with.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum Refusal {
    /// The client did not prove that it knows the token.
    #[error("the router has a different token")]
    Unauthenticated,
    /// The router does not know the request.
    #[error(
        "the router does not support this request, because its version differs from that of this program"
    )]
    Malformed,
    /// The process does not exist (any more).
    #[error("there is no such process: {0}")]
    NoProcess(String),
    /// The processes cannot be listed, or the process cannot be reached.
    #[error("the router failed: {0}")]
    Failed(String),
    /// The client connected to another address than the router's, so the connection was relayed.
    #[error("the connection was relayed from another address: {0}")]
    Elsewhere(String),
    /// A status of a later version.
    #[error("the router rejected the request with status {0}")]
    Other(u16),
}
