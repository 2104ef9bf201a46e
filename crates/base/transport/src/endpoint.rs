//! Addresses of peers, and errors of connecting to them.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use thiserror::Error;

use crate::{Peer, Socket, Stream};

/// The address of a peer.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Endpoint {
    /// A Unix domain socket. The path may be longer than `sun_path` (107 bytes) permits.
    Unix(PathBuf),
    /// A Windows named pipe, by its name without `\\.\pipe\`. Unsupported on other systems.
    Pipe(String),
    /// The diagnostics socket of a process, which is opened in that process's file system and used only if that process
    /// listens on it.
    Process(Arc<ProcessEndpoint>),
    /// A peer that this process forwards connections to, for example on another machine.
    Bridge(Arc<crate::Bridge>),
}

/// The sockets that may belong to a process.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ProcessEndpoint {
    pub(crate) pid: u32,
    pub(crate) start_time: u64,
    /// In the order in which they are tried. Not empty.
    pub(crate) sockets: Vec<Socket>,
}

impl Endpoint {
    /// Creates the address of a Unix domain socket.
    pub fn unix(path: impl Into<PathBuf>) -> Self {
        Self::Unix(path.into())
    }

    /// Creates the address of a process from the sockets found for it. `None` if none of them may belong to it.
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

    /// Creates an address from a path specified by the user: a Unix domain socket or, on Windows, a named pipe with or
    /// without `\\.\pipe\`.
    pub fn local(path: &Path) -> Self {
        #[cfg(unix)]
        return Self::unix(path);
        #[cfg(not(unix))]
        {
            let text = path.to_string_lossy();
            Self::pipe(text.strip_prefix(r"\\.\pipe\").unwrap_or(&text))
        }
    }

    /// Creates the address of a Windows named pipe.
    pub fn pipe(name: impl Into<String>) -> Self {
        Self::Pipe(name.into())
    }

    /// Returns the path of the socket. `None` if the endpoint has no path.
    pub fn path(&self) -> Option<&Path> {
        match self {
            Self::Unix(path) => Some(path),
            Self::Process(process) => process.sockets.first().map(|socket| socket.path.as_path()),
            _ => None,
        }
    }

    /// Returns the id of the process, in the pid namespace of the caller. `None` if unknown.
    pub fn process_id(&self) -> Option<u32> {
        match self {
            Self::Process(process) => Some(process.pid),
            Self::Pipe(name) => crate::naming::parse_windows_pipe(name),
            _ => None,
        }
    }

    /// Returns whether the peer is reached through a bridge, so that the local kernel has no information about it.
    pub fn is_remote(&self) -> bool {
        matches!(self, Self::Bridge(_))
    }

    /// Connects to the peer. If its queue is full, retries until `timeout` has passed.
    ///
    /// Before any data can be sent, the kernel is asked which process listens. For a process address it must be that
    /// process. For a path it must belong to the current user or root, or be the process that the name of the socket
    /// refers to.
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

    /// Like [`connect`](Self::connect), without checking who listens at a path, for callers that check [`Stream::peer`]
    /// before they send anything.
    ///
    /// # Errors
    /// See [`ConnectFailure`].
    pub async fn connect_unverified(&self, timeout: Duration) -> Result<Stream, ConnectError> {
        match self {
            #[cfg(unix)]
            Self::Unix(path) => crate::unix::connect_unverified(path, timeout)
                .await
                .map(Stream::from)
                .map_err(|reason| ConnectError { endpoint: self.clone(), reason }),
            _ => self.connect(timeout).await,
        }
    }

    /// Like [`connect`](Self::connect), for callers without an async runtime. The returned socket is in blocking mode.
    /// Linux only.
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

/// Fails because the operating system does not support this kind of address.
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

/// An error that occurred while connecting to a peer.
#[derive(Debug, Error)]
#[error("connect to {endpoint}: {reason}")]
pub struct ConnectError {
    /// The address.
    pub endpoint: Endpoint,
    /// The reason.
    #[source]
    pub reason: ConnectFailure,
}

/// The reasons why connecting fails.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ConnectFailure {
    /// The socket does not exist (any more).
    #[error("the socket does not exist")]
    NotFound,
    /// No process listens on the socket: its owner was killed.
    #[error("no process is listening on this socket (its owner has exited)")]
    Refused,
    /// The socket or a directory on the path cannot be accessed by the current user.
    #[error("permission denied")]
    PermissionDenied,
    /// A process listens, but its queue of pending connections stayed full.
    #[error("the queue of pending connections stayed full for {} ms", waited.as_millis())]
    Busy {
        /// How long connecting was retried.
        waited: Duration,
    },
    /// The file is not a socket.
    #[error("the file is not a socket")]
    NoSocket,
    /// An unexpected process listens. Nothing was sent.
    #[error(
        "the process behind this socket is {} of user {user}, {}",
        match peer.pid { Some(pid) => format!("PID {pid}"), None => "one that has exited, or that is not visible from here,".to_owned() },
        match wanted { Some(pid) => format!("not {pid}"), None => "which is neither you nor root".to_owned() }
    )]
    WrongPeer {
        /// The process according to the kernel.
        peer: Peer,
        /// Name of its user, or the id if the name is unknown.
        user: String,
        /// The expected process; `None` if any process of the current user was acceptable.
        wanted: Option<u32>,
    },
    /// The kernel cannot identify the process, which is in another pid namespace. Nothing was sent.
    #[error(
        "the process behind this socket is not visible from here, so it cannot be verified to be {wanted}"
    )]
    UnknownPeer {
        /// The expected process.
        wanted: u32,
    },
    /// Any other I/O error.
    #[error("{0}")]
    Io(#[source] io::Error),
}

impl From<io::Error> for ConnectFailure {
    fn from(error: io::Error) -> Self {
        // Circular links, and paths that leave the directory that they must stay in.
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
