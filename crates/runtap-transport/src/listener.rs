//! A listening socket that only its owner (and root) can reach, unless all are asked in, and whose file is gone when it
//! is dropped.

use std::ffi::{OsStr, OsString};
use std::io;
use std::path::{Path, PathBuf};

use thiserror::Error;

use crate::folder::Folder;
use crate::stream::{Peer, Stream};
use crate::{Endpoint, unix};

/// The backlog of .NET's own server.
const BACKLOG: i32 = 255;

/// How a [`Listener`] is bound.
#[derive(Debug, Clone, Copy, Default)]
#[non_exhaustive]
pub struct BindOptions {
    /// Replace a socket file that nobody listens on any more. Off: it is [`BindError::InUse`]. So is always the file of
    /// another user than ours and [`stale_of`](Self::stale_of), whose file is not ours to remove.
    pub replace_stale: bool,
    /// A user whose stale sockets are replaced, beside ours.
    pub stale_of: Option<u32>,
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
        let failed = |source| BindError::Io { path: path.clone(), source };
        let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
            return Err(failed(io::ErrorKind::NotFound.into()));
        };
        Self::bind_in(&Folder::open(parent).map_err(failed)?, name, options)
    }

    /// The same in a folder that is held already. What happens to the path of the folder meanwhile does not matter: the
    /// file is made in this one, and removed from it.
    ///
    /// # Errors
    /// See [`BindError`].
    pub fn bind_in(folder: &Folder, name: &OsStr, options: BindOptions) -> Result<Self, BindError> {
        let mut bound = unix::bind(folder, name, BACKLOG, options.everybody);
        if options.replace_stale && matches!(&bound, Err(e) if e.kind() == io::ErrorKind::AddrInUse) {
            // Between these two steps another process may take the name; then the second bind says so.
            if is_stale(folder, name, options) && folder.remove(name).is_ok() {
                bound = unix::bind(folder, name, BACKLOG, options.everybody);
            }
        }
        let listen = || -> io::Result<_> {
            let bound = bound?;
            let file = SocketFile::new(folder, name)?;
            Ok((tokio::net::UnixListener::from_std(bound)?, file))
        };
        let path = folder.path().join(name);
        match listen() {
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

    /// Whether processes of every user are let in.
    pub fn lets_everybody_in(&self) -> bool {
        self.everybody
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
            let (stream, peer) = self.accept_from_anybody().await?;
            if self.everybody || peer.uid == me || peer.uid == 0 {
                return Ok((stream, peer));
            }
        }
    }

    /// The next client, whoever it is: for callers that judge every [`Peer`] themselves. Cancel safe.
    ///
    /// # Errors
    /// As [`accept`](Self::accept).
    pub async fn accept_from_anybody(&self) -> io::Result<(Stream, Peer)> {
        loop {
            let (stream, _unnamed) = self.inner.accept().await?;
            let stream = Stream::from(stream);
            if let Ok(peer) = stream.peer() {
                return Ok((stream, peer));
            }
        }
    }
}

/// Whether a name is that of a socket which nobody listens on, and which is ours to replace.
fn is_stale(folder: &Folder, name: &OsStr, options: BindOptions) -> bool {
    let owner = unix::stale_owner(folder, name);
    let ours = Some(rustix::process::geteuid().as_raw());
    owner.is_some() && (owner == ours || owner == options.stale_of)
}

/// The file of a bound socket. Removed on drop, unless another file has taken its name: while the socket is open no other
/// file has the number of its own, even if that is deleted; afterwards a successor's file may have it.
#[derive(Debug)]
struct SocketFile {
    folder: Folder,
    name: OsString,
    path: PathBuf,
    identity: (u64, u64),
}

impl SocketFile {
    fn new(folder: &Folder, name: &OsStr) -> io::Result<Self> {
        let (folder, name) = (folder.clone(), name.to_owned());
        let identity = Self::identity(&folder, &name)?;
        Ok(Self { path: folder.path().join(&name), folder, name, identity })
    }

    fn remove(&self) {
        if Self::identity(&self.folder, &self.name).is_ok_and(|now| now == self.identity) {
            // Nothing sensible is left to do if that fails: the socket is stale then, and clients can tell.
            let _ = self.folder.remove(&self.name);
        }
    }

    fn identity(folder: &Folder, name: &OsStr) -> io::Result<(u64, u64)> {
        // Their types differ by system; only whether they are the same counts.
        #[allow(clippy::cast_sign_loss, clippy::unnecessary_cast, reason = "as the platform has it")]
        folder.stat(name).map(|stat| (stat.st_dev as u64, stat.st_ino as u64))
    }
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        self.remove();
    }
}
