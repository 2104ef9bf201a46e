//! A diagnostics socket in the file system, and what its name says of whose it is. Refuses to look for sockets.

use std::fmt;
use std::path::PathBuf;

#[cfg(target_os = "linux")]
use crate::linux::{Location, ProcDir};
use crate::naming::SocketName;

/// A diagnostics socket in the file system.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Socket {
    /// What it is called from here. Below another process's root only an [`Endpoint`](crate::Endpoint) of the process dials
    /// it.
    pub path: PathBuf,
    /// What its file name says.
    pub name: SocketName,
    /// Whether it can belong to the process.
    pub state: SocketState,
    #[cfg(target_os = "linux")]
    pub(crate) at: Location,
}

impl Socket {
    /// A socket at a path of ours.
    pub fn new(path: impl Into<PathBuf>, name: SocketName, state: SocketState) -> Self {
        let path = path.into();
        Self {
            #[cfg(target_os = "linux")]
            at: Location::Ours(path.clone()),
            path,
            name,
            state,
        }
    }

    /// A socket where a process has it.
    #[cfg(target_os = "linux")]
    pub fn of_process(process: &ProcDir, at: Location, name: SocketName, state: SocketState) -> Self {
        Self { path: at.shown(process), at, name, state }
    }

    /// Where it is dialled.
    #[cfg(target_os = "linux")]
    pub fn location(&self) -> &Location {
        &self.at
    }

    /// Is dialled where the other one lies, and keeps its name.
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

    /// Whether it is worth dialling for the process whose id is in its name.
    pub fn may_be_its_own(&self) -> bool {
        matches!(self.state, SocketState::Matching | SocketState::Unknown)
    }
}

/// Whether a socket can belong to the process whose id is in its name. What is dialled first comes first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum SocketState {
    /// Its key is the process's start time.
    Matching,
    /// Its key can't be compared: a process of another time namespace.
    Unknown,
    /// That of a router, which stands for a runtime elsewhere. It says nothing of the process itself, and is dialled only
    /// by those who name its path.
    Router,
    /// Its key is another one: left behind by an earlier process of the same id.
    Stale,
}

impl fmt::Display for SocketState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Matching => "its own, by the time in its name",
            Self::Unknown => "perhaps its own: the time in its name can't be compared",
            Self::Router => "a router's",
            Self::Stale => "stale: left behind by an earlier process",
        })
    }
}
