//! What keeps an application from telling a server how its tests went.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use runtap_mtp_proto::Versions;
use runtap_mtp_proto::host::{ReplyError, RequestError};
use thiserror::Error;

use crate::Exit;
use crate::link::HttpError;

/// The connection can't be made, or is of no use any more. Everything that is sent afterwards fails with the same error.
#[derive(Debug, Clone, Error)]
#[non_exhaustive]
pub enum HostError {
    /// Nobody listens there.
    #[error("no server at {server} after {} s: {error}", waited.as_secs())]
    Connect {
        /// Path or endpoint.
        server: String,
        /// How long it was tried.
        waited: Duration,
        /// What was wrong last.
        error: Arc<io::Error>,
    },
    /// The server is another user's. The platform's own hosts refuse that too.
    #[error("the server at {path} is not of the current user (user {uid})")]
    NotOurUser {
        /// The socket.
        path: String,
        /// Whose process listens.
        uid: u32,
    },
    /// Somebody listens there, and says nothing.
    #[error("the server has not answered the handshake within {} s", waited.as_secs())]
    Silent {
        /// How long it had.
        waited: Duration,
    },
    /// No version that both know.
    #[error("the server knows none of the versions {0} of the protocol")]
    Rejected(Versions),
    /// Reading or writing failed.
    #[error("the connection to the server is lost: {0}")]
    Lost(Arc<io::Error>),
    /// The server has closed the connection while there was nothing to answer.
    #[error("the server is gone")]
    Gone,
    /// The server has answered something else than it should.
    #[error(transparent)]
    Reply(#[from] ReplyError),
    /// A message that can't be sent.
    #[error(transparent)]
    Request(#[from] RequestError),
    /// A response that is none, or refuses the request.
    #[error(transparent)]
    Http(#[from] HttpError),
    /// The diagnostic log that was asked for.
    #[error("can't write a diagnostic log into {directory}: {error}")]
    Diagnostic {
        /// Where it was to be.
        directory: String,
        /// Why not.
        error: Arc<io::Error>,
    },
    /// A thread that can't be started.
    #[error("can't start a thread: {0}")]
    Thread(Arc<io::Error>),
    /// The number of the attempt in the environment is none.
    #[error("TESTINGPLATFORM_DOTNETTEST_ATTEMPTNUMBER={0:?} is no number above 0")]
    Attempt(String),
}

impl HostError {
    /// The exit code of an application that ends because of it.
    pub fn exit(&self) -> Exit {
        match self {
            Self::Rejected(_) | Self::Reply(ReplyError::Version(_)) => Exit::INCOMPATIBLE,
            Self::Attempt(_) => Exit::SETUP,
            Self::Http(HttpError::Endpoint { .. }) => Exit::USAGE,
            _ => Exit::ERROR,
        }
    }
}
