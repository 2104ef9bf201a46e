//! What can go wrong in a handshake.

use runtap_wire::DecodeError;
use thiserror::Error;

/// Why a handshake failed.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum HandshakeError {
    /// It does not speak this protocol.
    #[error("the other side does not speak the protocol of runtap's router: {0}")]
    Malformed(#[from] DecodeError),
    /// The other side has hung up.
    #[error("the connection was closed after {received} bytes")]
    Closed {
        /// Bytes that had come.
        received: u64,
    },
    /// No version of the protocol that both know.
    #[error("both sides have no version of the protocol in common")]
    Version,
    /// The proof is not that of somebody who knows the token.
    #[error("the other side does not have the same token")]
    Unproven,
    /// The router has answered with an error.
    #[error("{0}")]
    Refused(Refusal),
}

/// What a router refuses.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum Refusal {
    /// It has another token.
    #[error("the router has another token")]
    Unauthenticated,
    /// It does not understand the request.
    #[error("the router does not know this request: it is of another version")]
    Malformed,
    /// There is no such process (any more).
    #[error("there is no such process: {0}")]
    NoProcess(String),
    /// It can't be listed or reached.
    #[error("the router failed: {0}")]
    Failed(String),
    /// The client has connected to another address than the router's: somebody passes on what both say.
    #[error("the connection was passed on from another address: {0}")]
    Elsewhere(String),
    /// A status of a later version.
    #[error("the router refuses with status {0}")]
    Other(u16),
}
