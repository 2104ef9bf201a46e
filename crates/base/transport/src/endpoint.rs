//! Where a peer can be dialled, and what can go wrong while dialling.
//!
//! Owns the name and the classification of errors; how the dialling is done is `unix`.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use thiserror::Error;

use crate::{Peer, Socket, Stream};

/// The address of a peer. TCP will join; match with a wildcard.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Endpoint {
    /// A Unix domain socket in the file system. The path may be longer than `sun_path` (107 bytes) allows.
    Unix(PathBuf),
    /// A named pipe of Windows, by its name without `\\.\pipe\`. Elsewhere nobody is there.
    Pipe(String),
    /// The diagnostics socket of one process: dialled where that process has it, and used only if the process itself
    /// listens there.
    Process(Arc<ProcessEndpoint>),
    /// A peer of another machine, which this process brings near.
    Bridge(Arc<crate::Bridge>),
}

/// The sockets that may be those of one process.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ProcessEndpoint {
    pub(crate) pid: u32,
    pub(crate) start_time: u64,
    /// Those to try first come first. Not empty.
    pub(crate) sockets: Vec<Socket>,
}

impl Endpoint {
    /// A Unix domain socket.
    pub fn unix(path: impl Into<PathBuf>) -> Self {
        Self::Unix(path.into())
    }

    /// The sockets that may be those of a process, by what was found of it. `None` without any.
    pub fn of_process<'a>(
        pid: u32,
        start_time: u64,
        sockets: impl IntoIterator<Item = &'a Socket>,
    ) -> Option<Self> {
        let sockets: Vec<Socket> =
            sockets.into_iter().filter(|socket| socket.may_be_its_own()).cloned().collect();
        let process = ProcessEndpoint { pid, start_time, sockets };
        (!process.sockets.is_empty()).then(|| Self::Process(Arc::new(process)))
    }

    /// What a path that somebody has typed means here: a socket, or on Windows a named pipe, with or without
    /// `\\.\pipe\`.
    pub fn local(path: &Path) -> Self {
        #[cfg(unix)]
        return Self::unix(path);
        #[cfg(not(unix))]
        {
            let text = path.to_string_lossy();
            Self::pipe(text.strip_prefix(r"\\.\pipe\").unwrap_or(&text))
        }
    }

    /// A named pipe of Windows.
    pub fn pipe(name: impl Into<String>) -> Self {
        Self::Pipe(name.into())
    }

    /// The path in the file system, for endpoints that have one.
    pub fn path(&self) -> Option<&Path> {
        match self {
            Self::Unix(path) => Some(path),
            Self::Process(process) => process.sockets.first().map(|socket| socket.path.as_path()),
            _ => None,
        }
    }

    /// The process whose server it is, where that is known; its id in our pid namespace.
    pub fn process_id(&self) -> Option<u32> {
        match self {
            Self::Process(process) => Some(process.pid),
            Self::Pipe(name) => crate::naming::parse_windows_pipe(name),
            _ => None,
        }
    }

    /// Whether the peer is on another machine: what the kernel of this one says of it is not to be asked.
    pub fn is_remote(&self) -> bool {
        matches!(self, Self::Bridge(_))
    }

    /// Dials the peer. A queue that is full is tried again until `timeout` is over. Before anything can be sent the
    /// kernel is asked who listens: a process has to be the one that is meant; at a path it has to be our own user's or
    /// root's, or the very process that a runtime's socket is named after.
    ///
    /// # Errors
    /// See [`ConnectFailure`].
    pub async fn connect(&self, timeout: Duration) -> Result<Stream, ConnectError> {
        match self {
            #[cfg(unix)]
            Self::Unix(path) => crate::unix::connect(path, timeout).await.map(Stream::from),
            #[cfg(unix)]
            Self::Process(process) => crate::unix::connect_to(process, timeout).await.map(Stream::from),
            Self::Bridge(bridge) => bridge.connect(timeout).await,
            #[cfg(windows)]
            Self::Pipe(name) => crate::windows::connect(name, timeout).await,
            _ => unsupported(),
        }
        .map_err(|reason| ConnectError { endpoint: self.clone(), reason })
    }

    /// As [`connect`](Self::connect) to a path, whoever listens there: for those who ask [`Stream::peer`] themselves before
    /// they say anything.
    ///
    /// # Errors
    /// See [`ConnectFailure`].
    pub async fn connect_to_anybody(&self, timeout: Duration) -> Result<Stream, ConnectError> {
        match self {
            #[cfg(unix)]
            Self::Unix(path) => crate::unix::connect_to_anybody(path, timeout)
                .await
                .map(Stream::from)
                .map_err(|reason| ConnectError { endpoint: self.clone(), reason }),
            _ => self.connect(timeout).await,
        }
    }

    /// As [`connect`](Self::connect), for callers without an async runtime. The socket is in blocking mode. Linux only.
    ///
    /// # Errors
    /// See [`ConnectFailure`].
    #[cfg(target_os = "linux")]
    pub fn connect_blocking(
        &self,
        timeout: Duration,
    ) -> Result<std::os::unix::net::UnixStream, ConnectError> {
        match self {
            Self::Unix(path) => crate::unix::connect_blocking(path, timeout),
            Self::Process(process) => crate::unix::connect_blocking_to(process, timeout),
            Self::Pipe(_) | Self::Bridge(_) => unsupported(),
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
            Self::Pipe(name) => write!(f, r"\\.\pipe\{name}"),
            Self::Bridge(bridge) => f.write_str(bridge.name()),
            Self::Unix(_) | Self::Process(_) => self.path().unwrap_or_else(|| Path::new("")).display().fmt(f),
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
    /// The file is there and nobody listens: its owner was killed.
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
    /// What lies there is no socket.
    #[error("this is no socket")]
    NoSocket,
    /// Somebody else than was meant listens there. Nothing was sent.
    #[error(
        "the process behind this socket is {} of user {user}, {}",
        match peer.pid { Some(pid) => format!("PID {pid}"), None => "one that has ended, or that can't be seen from here,".to_owned() },
        match wanted { Some(pid) => format!("not {pid}"), None => "and neither ours nor root's".to_owned() }
    )]
    WrongPeer {
        /// Who it is, as the kernel has it.
        peer: Peer,
        /// The name of its user, else the number.
        user: String,
        /// The process that was meant; `None` where any of our own user's would have done.
        wanted: Option<u32>,
    },
    /// The kernel does not say who listens: a process of another pid namespace than ours. Nothing was sent.
    #[error("the process behind this socket can't be seen from here: nothing proves that it is {wanted}")]
    UnknownPeer {
        /// The process that was meant.
        wanted: u32,
    },
    /// Anything else.
    #[error("{0}")]
    Io(#[source] io::Error),
}

impl From<io::Error> for ConnectFailure {
    fn from(error: io::Error) -> Self {
        // A path that leads round in a circle, or out of where it has to stay.
        #[cfg(unix)]
        if let Some(rustix::io::Errno::LOOP | rustix::io::Errno::XDEV) =
            rustix::io::Errno::from_io_error(&error)
        {
            return Self::NotFound;
        }
        match error.kind() {
            io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => Self::NotFound,
            io::ErrorKind::ConnectionRefused => Self::Refused,
            io::ErrorKind::PermissionDenied => Self::PermissionDenied,
            _ => Self::Io(error),
        }
    }
}
