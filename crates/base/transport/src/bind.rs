//! How a listener is bound, and why it could not be.

use std::io;
use std::path::PathBuf;

use thiserror::Error;

/// How a [`Listener`](crate::Listener) is bound.
#[derive(Debug, Clone, Copy, Default)]
#[non_exhaustive]
pub struct BindOptions {
    /// Replace a socket file that nobody listens on any more. Off: it is [`BindError::InUse`]. So is always the file of
    /// another user than ours and [`stale_of`](Self::stale_of), whose file is not ours to remove.
    pub replace_stale: bool,
    /// A user whose stale sockets are replaced, beside ours.
    pub stale_of: Option<u32>,
    /// Let processes of every user in. Who they are is for the caller to judge, by their [`Peer`](crate::Peer).
    pub everybody: bool,
    /// Programs go on dialling the name when we are gone, and obey whoever listens there. So in a folder where others
    /// could take it then, but not while it is there ([`Exposure::Shared`](crate::Exposure::Shared)), the file stays, and is stale. That of a
    /// program of [`stale_of`](Self::stale_of) becomes that user's.
    pub keeps_name: bool,
}

impl BindOptions {
    /// Replaces a stale socket file.
    #[must_use]
    pub fn replace_stale(mut self, yes: bool) -> Self {
        self.replace_stale = yes;
        self
    }

    /// Replaces stale socket files of this user, too.
    #[must_use]
    pub fn stale_of(mut self, uid: u32) -> Self {
        (self.replace_stale, self.stale_of) = (true, Some(uid));
        self
    }

    /// Lets processes of every user in.
    #[must_use]
    pub fn everybody(mut self, yes: bool) -> Self {
        self.everybody = yes;
        self
    }

    /// Keeps the name from others also when we are gone.
    #[must_use]
    pub fn keeps_name(mut self, yes: bool) -> Self {
        self.keeps_name = yes;
        self
    }
}

/// A socket that could not be bound.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum BindError {
    /// The name is taken, by somebody who listens or by a file that is no stale socket.
    #[error("listen on {}: the name is in use", path.display())]
    InUse {
        /// The name.
        path: PathBuf,
    },
    /// Anything else.
    #[error("listen on {}: {source}", path.display())]
    Io {
        /// The name.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}
