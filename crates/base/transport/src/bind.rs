//! Options and errors of binding a listener.

use std::io;
use std::path::PathBuf;

use thiserror::Error;

/// Options for binding a [`Listener`](crate::Listener).
#[derive(Debug, Clone, Copy, Default)]
#[non_exhaustive]
pub struct BindOptions {
    /// Whether to replace a stale socket file, one that no process listens on. Otherwise, and for socket files of users
    /// other than the current one and [`stale_of`](Self::stale_of), binding fails with [`BindError::InUse`].
    pub replace_stale: bool,
    /// Another user whose stale socket files are replaced.
    pub stale_of: Option<u32>,
    /// Whether processes of all users may connect. The caller must check their [`Peer`](crate::Peer).
    pub everybody: bool,
    /// Whether to keep the socket file when the listener is dropped, if other users could then create one with its name
    /// but cannot replace it while it exists ([`Exposure::Shared`](crate::Exposure::Shared)). Programs keep connecting
    /// to the name and trust any listener. The ownership of a file for a program of [`stale_of`](Self::stale_of) is
    /// given to that user.
    pub keeps_name: bool,
}

impl BindOptions {
    /// Sets whether to replace a stale socket file.
    #[must_use]
    pub fn replace_stale(mut self, yes: bool) -> Self {
        self.replace_stale = yes;
        self
    }

    /// Also replaces stale socket files of this user.
    #[must_use]
    pub fn stale_of(mut self, uid: u32) -> Self {
        (self.replace_stale, self.stale_of) = (true, Some(uid));
        self
    }

    /// Sets whether processes of all users may connect.
    #[must_use]
    pub fn everybody(mut self, yes: bool) -> Self {
        self.everybody = yes;
        self
    }

    /// Sets whether the socket file stays when the listener is dropped.
    #[must_use]
    pub fn keeps_name(mut self, yes: bool) -> Self {
        self.keeps_name = yes;
        self
    }
}

/// An error that occurred while binding a socket.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum BindError {
    /// The name is in use by a listener or by a file that is not a stale socket.
    #[error("listen on {}: the name is in use", path.display())]
    InUse {
        /// The path.
        path: PathBuf,
    },
    /// Any other I/O error.
    #[error("listen on {}: {source}", path.display())]
    Io {
        /// The path.
        path: PathBuf,
        /// The error.
        source: io::Error,
    },
}
