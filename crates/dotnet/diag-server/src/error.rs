//! Errors of starting a server.

use std::io;

use thiserror::Error;

/// An error of starting a server.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum StartError {
    /// The socket could not be created.
    #[error(transparent)]
    Bind(#[from] runtap_transport::BindError),
    /// The thread or its event loop could not be created.
    #[error("cannot start the diagnostics server: {0}")]
    Io(#[from] io::Error),
    /// The start time of this process, which is part of the socket's name, is unknown.
    #[error("cannot start the diagnostics server: the start time of this process is unknown")]
    NoStartTime,
}
