//! Where a peer can be dialled, and what can go wrong while dialling.
//!
//! Owns the name and the classification of errors; how the dialling is done is `unix`.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use thiserror::Error;

use crate::Stream;

/// The address of a peer. TCP will join; match with a wildcard.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Endpoint {
    /// A Unix domain socket in the file system. The path may be longer than `sun_path` (107 bytes) allows.
    Unix(PathBuf),
    /// A named pipe of Windows, by its name without `\\.\pipe\`. Elsewhere nobody is there.
    Pipe(String),
}

impl Endpoint {
    /// A Unix domain socket.
    pub fn unix(path: impl Into<PathBuf>) -> Self {
        Self::Unix(path.into())
    }

    /// A named pipe of Windows.
    pub fn pipe(name: impl Into<String>) -> Self {
        Self::Pipe(name.into())
    }

    /// The path in the file system, for endpoints that have one.
    pub fn path(&self) -> Option<&Path> {
        match self {
            Self::Unix(path) => Some(path),
            Self::Pipe(_) => None,
        }
    }

    /// Dials the peer. A queue that is full is tried again until `timeout` is over.
    ///
    /// # Errors
    /// See [`ConnectFailure`].
    pub async fn connect(&self, timeout: Duration) -> Result<Stream, ConnectError> {
        match self {
            #[cfg(unix)]
            Self::Unix(path) => crate::unix::connect(path, timeout).await.map(Stream::from),
            #[cfg(windows)]
            Self::Pipe(_) => crate::windows::connect(&self.to_string(), timeout).await.map(Stream::from),
            _ => unsupported(),
        }
        .map_err(|reason| ConnectError { endpoint: self.clone(), reason })
    }

    /// As [`connect`](Self::connect), for callers without an async runtime. The socket is in blocking mode.
    ///
    /// # Errors
    /// See [`ConnectFailure`].
    #[cfg(unix)]
    pub fn connect_blocking(
        &self,
        timeout: Duration,
    ) -> Result<std::os::unix::net::UnixStream, ConnectError> {
        match self {
            Self::Unix(path) => crate::unix::connect_blocking(path, timeout),
            Self::Pipe(_) => unsupported(),
        }
        .map_err(|reason| ConnectError { endpoint: self.clone(), reason })
    }
}

/// This system has no such thing.
fn unsupported<T>() -> Result<T, ConnectFailure> {
    Err(ConnectFailure::Io(io::ErrorKind::Unsupported.into()))
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unix(path) => path.display().fmt(f),
            Self::Pipe(name) => write!(f, r"\\.\pipe\{name}"),
        }
    }
}

/// A peer that could not be dialled.
#[derive(Debug, Error)]
#[error("connect to {endpoint}: {reason}")]
pub struct ConnectError {
    /// Who was dialled.
    pub endpoint: Endpoint,
    /// Why it failed.
    #[source]
    pub reason: ConnectFailure,
}

/// Why a peer could not be dialled.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ConnectFailure {
    /// There is no such socket (any more).
    #[error("there is no such socket")]
    NotFound,
    /// The file is there and nobody listens: its owner was killed. A file that is no socket gives this too.
    #[error("nobody listens on this socket (its owner is gone)")]
    Refused,
    /// The socket, or a directory on the way, belongs to somebody else.
    #[error("permission denied")]
    PermissionDenied,
    /// Somebody listens, but its queue of waiting clients stayed full.
    #[error("the queue of waiting clients stayed full for {} ms", waited.as_millis())]
    Busy {
        /// How long it was tried.
        waited: Duration,
    },
    /// Anything else.
    #[error("{0}")]
    Io(#[source] io::Error),
}

impl From<io::Error> for ConnectFailure {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => Self::NotFound,
            io::ErrorKind::ConnectionRefused => Self::Refused,
            io::ErrorKind::PermissionDenied => Self::PermissionDenied,
            _ => Self::Io(error),
        }
    }
}
