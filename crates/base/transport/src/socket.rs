//! A diagnostics socket, and whether it can belong to the process that its name refers to.

use std::fmt;
use std::path::PathBuf;

#[cfg(target_os = "linux")]
use crate::linux::{Location, ProcDir};
use crate::naming::SocketName;

/// A diagnostics socket in the file system.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Socket {
    /// Path for display. In another process's root, connect through an [`Endpoint`](crate::Endpoint) of the process
    /// instead.
    pub path: PathBuf,
    /// The parsed file name.
    pub name: SocketName,
    /// Whether the socket can belong to the process.
    pub state: SocketState,
    #[cfg(target_os = "linux")]
    pub(crate) at: Location,
}

impl Socket {
    /// Creates a socket from a path in the file system of this process.
    pub fn new(path: impl Into<PathBuf>, name: SocketName, state: SocketState) -> Self {
        let path = path.into();
        Self {
            #[cfg(target_os = "linux")]
            at: Location::Own(path.clone()),
            path,
            name,
            state,
        }
    }

    /// Creates a socket from a location relative to a process.
    #[cfg(target_os = "linux")]
    pub fn of_process(process: &ProcDir, at: Location, name: SocketName, state: SocketState) -> Self {
        Self { path: at.shown(process), at, name, state }
    }

    /// Returns the location that is used to connect.
    #[cfg(target_os = "linux")]
    pub fn location(&self) -> &Location {
        &self.at
    }

    /// Makes connections use the location of `other`. The name does not change.
    #[cfg(unix)]
    pub fn relocate(&mut self, other: Self) {
        #[cfg(target_os = "linux")]
        {
            self.at = other.at;
        }
        #[cfg(not(target_os = "linux"))]
        {
            self.path = other.path;
        }
    }

    /// Returns whether connecting may reach the process whose id is in the name.
    pub fn may_be_its_own(&self) -> bool {
        matches!(self.state, SocketState::Matching | SocketState::Unknown)
    }
}

/// Whether a socket can belong to the process whose id is in its name, in the order in which sockets are tried.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum SocketState {
    /// The key is the start time of the process.
    Matching,
    /// The key cannot be compared, because the process is in another time namespace.
    Unknown,
    /// A router's socket, which represents a runtime elsewhere. It does not belong to the process with that id and is
    /// used only if specified by its path.
    Router,
    /// The key differs: an earlier process with this id left the socket behind.
    Stale,
}

impl fmt::Display for SocketState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Matching => "matches the process's start time",
            Self::Unknown => "possibly current: the start time in its name cannot be compared",
            Self::Router => "belongs to a router",
            Self::Stale => "stale: left behind by an earlier process",
        })
    }
}
