//! A listening socket that only its owner (and root) can reach, unless all are asked in, and whose file is gone when it
//! is dropped.

use std::fs;
use std::io;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use thiserror::Error;

use crate::stream::{Peer, Stream};
use crate::{ConnectFailure, Endpoint, unix};

/// The backlog of .NET's own server.
const BACKLOG: i32 = 255;

/// How a [`Listener`] is bound.
#[derive(Debug, Clone, Copy, Default)]
#[non_exhaustive]
pub struct BindOptions {
    /// Replace a socket file that nobody listens on any more. Off: it is [`BindError::InUse`].
    pub replace_stale: bool,
    /// Let processes of every user in. Who they are is for the caller to judge, by their [`Peer`].
    pub everybody: bool,
}

impl BindOptions {
    /// Replaces a stale socket file.
    #[must_use]
    pub fn replace_stale(mut self, yes: bool) -> Self {
        self.replace_stale = yes;
        self
    }

    /// Lets processes of every user in.
    #[must_use]
    pub fn everybody(mut self, yes: bool) -> Self {
        self.everybody = yes;
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

/// A listening Unix socket of mode 0600, or 0666 for everybody.
#[derive(Debug)]
pub struct Listener {
    // Before the socket, which is dropped after it: see SocketFile.
    file: SocketFile,
    inner: tokio::net::UnixListener,
    everybody: bool,
}

impl Listener {
    /// Binds `path` and listens on it. Needs a tokio runtime with I/O.
    ///
    /// # Errors
    /// See [`BindError`].
    pub fn bind(path: impl Into<PathBuf>, options: BindOptions) -> Result<Self, BindError> {
        let path = path.into();
        let mut bound = unix::bind(&path, BACKLOG, options.everybody);
        if options.replace_stale && matches!(&bound, Err(e) if e.kind() == io::ErrorKind::AddrInUse) {
            // Between these two steps another process may take the name; then the second bind says so.
            if is_stale(&path) && fs::remove_file(&path).is_ok() {
                bound = unix::bind(&path, BACKLOG, options.everybody);
            }
        }
        let listen = |path: &Path| -> io::Result<_> {
            let bound = bound?;
            let file = SocketFile::new(path)?;
            Ok((tokio::net::UnixListener::from_std(bound)?, file))
        };
        match listen(&path) {
            Ok((inner, file)) => Ok(Self { file, inner, everybody: options.everybody }),
            Err(error) if error.kind() == io::ErrorKind::AddrInUse => Err(BindError::InUse { path }),
            Err(source) => Err(BindError::Io { path, source }),
        }
    }

    /// The path of the socket.
    pub fn path(&self) -> &Path {
        &self.file.path
    }

    /// Where clients find it.
    pub fn endpoint(&self) -> Endpoint {
        Endpoint::unix(&self.file.path)
    }

    /// Removes the file now: nobody can dial in any more. Those who wait already still can be accepted.
    pub fn remove_file(&self) {
        self.file.remove();
    }

    /// The next client of our own user or root, or of any user if everybody is let in. Others can't get in by the
    /// file's mode; should one have got a descriptor all the same, it is hung up on. Cancel safe.
    ///
    /// # Errors
    /// Those of `accept`; being out of descriptors (EMFILE) is temporary.
    pub async fn accept(&self) -> io::Result<(Stream, Peer)> {
        let me = rustix::process::geteuid().as_raw();
        loop {
            let (stream, _unnamed) = self.inner.accept().await?;
            let stream = Stream::from(stream);
            let Ok(peer) = stream.peer() else { continue };
            if self.everybody || peer.uid == me || peer.uid == 0 {
                return Ok((stream, peer));
            }
        }
    }
}

/// Whether the socket file at `path` has nobody listening behind it.
fn is_stale(path: &Path) -> bool {
    matches!(unix::connect_blocking(path, Duration::ZERO), Err(ConnectFailure::Refused))
        && fs::symlink_metadata(path).is_ok_and(|meta| meta.file_type().is_socket())
}

/// The file of a bound socket. Removed on drop, unless another file has taken its name: while the socket is open no other
/// file has the number of its own, even if that is deleted; afterwards a successor's file may have it.
#[derive(Debug)]
struct SocketFile {
    path: PathBuf,
    identity: (u64, u64),
}

impl SocketFile {
    fn new(path: &Path) -> io::Result<Self> {
        // The working directory may change before the file has to be removed.
        let path = std::path::absolute(path)?;
        let identity = Self::identity(&path)?;
        Ok(Self { path, identity })
    }

    fn remove(&self) {
        if Self::identity(&self.path).is_ok_and(|now| now == self.identity) {
            // Nothing sensible is left to do if that fails: the socket is stale then, and clients can tell.
            let _ = fs::remove_file(&self.path);
        }
    }

    fn identity(path: &Path) -> io::Result<(u64, u64)> {
        fs::symlink_metadata(path).map(|meta| (meta.dev(), meta.ino()))
    }
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        self.remove();
    }
}
