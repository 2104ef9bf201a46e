//! Why there is no server.

use std::io;

use thiserror::Error;

/// A server that could not be started.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum StartError {
    /// The socket could not be made.
    #[error(transparent)]
    Bind(#[from] runtap_transport::BindError),
    /// The thread or its event loop could not be made.
    #[error("start the diagnostics server: {0}")]
    Io(#[from] io::Error),
    /// There is no start time of this process to name the socket after.
    #[error("start the diagnostics server: the start time of this process is unknown")]
    NoStartTime,
}
