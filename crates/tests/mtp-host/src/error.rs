//! Errors of the connection to a server.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use runtap_mtp_proto::Versions;
use runtap_mtp_proto::host::{ReplyError, RequestError};
use thiserror::Error;

use crate::Exit;
use crate::link::HttpError;

/// An error of the connection to the server. Everything that is sent afterwards fails with the same error.
#[derive(Debug, Clone, Error)]
#[non_exhaustive]
pub enum HostError {
    /// No server listens at the path or endpoint.
    #[error("no server at {server} after {} s: {error}", waited.as_secs())]
    Connect {
        /// The path or endpoint.
        server: String,
        /// The time spent on connection attempts.
        waited: Duration,
        /// The error of the last attempt.
        error: Arc<io::Error>,
    },
    /// The server belongs to another user. The platform's own hosts reject such servers too.
    #[error("the server at {path} belongs to another user (UID {uid})")]
    OtherUser {
        /// The path of the socket.
        path: String,
        /// The user id of the listening process.
        uid: u32,
    },
    /// The server accepted the connection but does not reply.
    #[error("the server did not reply to the handshake within {} s", waited.as_secs())]
    Silent {
        /// The time limit.
        waited: Duration,
    },
    /// The client and the server have no version in common.
    #[error("the server supports none of the protocol versions {0}")]
    Rejected(Versions),
    /// Reading from or writing to the connection failed.
    #[error("the connection to the server is lost: {0}")]
    Lost(Arc<io::Error>),
    /// The server closed the connection while no reply was pending.
    #[error("the server closed the connection")]
    Gone,
    /// The server sent an invalid reply.
    #[error(transparent)]
    Reply(#[from] ReplyError),
    /// A message cannot be sent.
    #[error(transparent)]
    Request(#[from] RequestError),
    /// The HTTP response is invalid, or rejects the request.
    #[error(transparent)]
    Http(#[from] HttpError),
    /// The requested diagnostic log cannot be created.
    #[error("can't write a diagnostic log into {directory}: {error}")]
    Diagnostic {
        /// The directory of the log.
        directory: String,
        /// The cause.
        error: Arc<io::Error>,
    },
    /// A thread cannot be started.
    #[error("can't start a thread: {0}")]
    Thread(Arc<io::Error>),
    /// The number of the attempt in the environment is invalid.
    #[error("TESTINGPLATFORM_DOTNETTEST_ATTEMPTNUMBER={0:?} is not a positive number")]
    Attempt(String),
}

impl HostError {
    /// Returns the exit code of an application that fails with this error.
    pub fn exit(&self) -> Exit {
        match self {
            Self::Rejected(_) | Self::Reply(ReplyError::Version(_)) => Exit::INCOMPATIBLE,
            Self::Attempt(_) => Exit::SETUP,
            Self::Http(HttpError::Endpoint { .. }) => Exit::USAGE,
            _ => Exit::ERROR,
        }
    }
}
