//! A listening socket that only its owner (and root) can reach, unless all are asked in, and whose file is gone when it
//! is dropped, unless its name is to be kept from others.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use crate::bind::{BindError, BindOptions};
use crate::exposure::Exposure;
use crate::folder::Folder;
use crate::{Endpoint, unix};
use crate::{Peer, Stream};

/// The backlog of .NET's own server.
const BACKLOG: i32 = 255;

/// A listening Unix socket of mode 0600, or 0666 for everybody.
#[derive(Debug)]
pub struct Listener {
    // Before the socket, which is dropped after it: see SocketFile.
    file: SocketFile,
    inner: tokio::net::UnixListener,
    everybody: bool,
}

impl Listener {
    /// Binds `path` and listens on it. Needs a tokio runtime with I/O. No link of another user is followed to the folder: that
    /// user chooses then where we listen, and which stale socket we replace.
    ///
    /// # Errors
    /// See [`BindError`].
    pub fn bind(path: impl Into<PathBuf>, options: BindOptions) -> Result<Self, BindError> {
        let path = path.into();
        let failed = |source| BindError::Io { path: path.clone(), source };
        let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
            return Err(failed(io::ErrorKind::NotFound.into()));
        };
        let folder = Folder::open(parent).map_err(failed)?;
        if folder.is_behind_foreign_link() {
            let reason = "a link on the way there belongs to another user, who can lay it elsewhere";
            return Err(failed(io::Error::new(io::ErrorKind::PermissionDenied, reason)));
        }
        if options.keeps_name && folder.exposure() == Exposure::Open {
            return Self::bind_in(&folder.by_descriptor(), name, options);
        }
        Self::bind_in(&folder, name, options)
    }

    /// The same in a folder that is held already. What happens to the path of the folder meanwhile does not matter: the
    /// file is made in this one, and removed from it.
    ///
    /// # Errors
    /// See [`BindError`].
    pub fn bind_in(folder: &Folder, name: &OsStr, options: BindOptions) -> Result<Self, BindError> {
        let mut bound = unix::bind(folder, name, BACKLOG, options.everybody);
        if matches!(&bound, Err(e) if e.kind() == io::ErrorKind::AddrInUse) {
            let is_stale = || options.replace_stale && is_stale(folder, name, options);
            if is_stale() {
                bound = unix::replace(folder, name, BACKLOG, options.everybody, is_stale);
            }
        }
        let listen = || Self::on(bound?, folder, name, options);
        let path = folder.path().join(name);
        match listen() {
            Ok(listener) => Ok(listener),
            Err(error) if error.kind() == io::ErrorKind::AddrInUse => Err(BindError::InUse { path }),
            Err(source) => Err(BindError::Io { path, source }),
        }
    }

    /// Goes on listening on a socket that another process of ours has bound at `path`, and has passed on: see
    /// [`socket`](Self::socket).
    ///
    /// # Errors
    /// For a descriptor that is no such socket, or when its file is gone.
    pub fn passed_on(socket: OwnedFd, path: &Path, options: BindOptions) -> io::Result<Self> {
        #[cfg(not(target_vendor = "apple"))]
        if !rustix::net::sockopt::socket_acceptconn(&socket)? {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "the socket does not listen"));
        }
        let socket = UnixListener::from(socket);
        // Fails where it is none of this family.
        socket.local_addr()?;
        socket.set_nonblocking(true)?;
        let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
            return Err(io::ErrorKind::NotFound.into());
        };
        Self::on(socket, &Folder::open(parent)?, name, options)
    }

    fn on(socket: UnixListener, folder: &Folder, name: &OsStr, options: BindOptions) -> io::Result<Self> {
        let file = SocketFile::new(folder, name, options)?;
        Ok(Self { file, inner: tokio::net::UnixListener::from_std(socket)?, everybody: options.everybody })
    }

    /// The socket, for a process of ours that is to go on listening. Who waits there is served by one of both; the file
    /// is [left](Self::leave_file) to the other then.
    ///
    /// # Errors
    /// Without descriptors.
    pub fn socket(&self) -> io::Result<OwnedFd> {
        self.inner.as_fd().try_clone_to_owned()
    }

    /// The file is somebody else's to remove.
    pub fn leave_file(&self) {
        self.file.is_over.store(true, Ordering::Relaxed);
    }

    /// What other users can do to the name of the socket.
    pub fn exposure(&self) -> Exposure {
        self.file.folder.exposure()
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

    /// Removes the file now, if it is to be removed: nobody can dial in any more. Those who wait already still can be
    /// accepted.
    pub fn remove_file(&self) {
        self.file.end();
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
    /// Whether it stays where others could take its name, and whose it is then.
    keeps_name: bool,
    heir: Option<u32>,
    is_over: AtomicBool,
}

impl SocketFile {
    fn new(folder: &Folder, name: &OsStr, options: BindOptions) -> io::Result<Self> {
        let (folder, name) = (folder.clone(), name.to_owned());
        let identity = Self::identity(&folder, &name)?;
        let ours = rustix::process::geteuid().as_raw();
        Ok(Self {
            path: folder.path().join(&name),
            folder,
            name,
            identity,
            keeps_name: options.keeps_name,
            heir: options.stale_of.filter(|uid| *uid != ours),
            is_over: AtomicBool::new(false),
        })
    }

    fn end(&self) {
        let is_there = || Self::identity(&self.folder, &self.name).is_ok_and(|now| now == self.identity);
        if self.is_over.swap(true, Ordering::Relaxed) || !is_there() {
            return;
        }
        if !self.stays() {
            // Nothing sensible is left to do if that fails: the socket is stale then, and clients can tell.
            let _ = self.folder.remove(&self.name);
        }
    }

    /// Leaves the file where that keeps the name from others.
    fn stays(&self) -> bool {
        // As root's it would be in the way of its user, as another one's it would protect nobody.
        let inherited = || self.heir.is_none_or(|uid| self.folder.give(&self.name, uid).is_ok());
        self.keeps_name && self.folder.exposure() == Exposure::Shared && inherited()
    }

    fn identity(folder: &Folder, name: &OsStr) -> io::Result<(u64, u64)> {
        // Their types differ by system; only whether they are the same counts.
        #[allow(clippy::cast_sign_loss, clippy::unnecessary_cast, reason = "as the platform has it")]
        folder.stat(name).map(|stat| (stat.st_dev as u64, stat.st_ino as u64))
    }
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        self.end();
    }
}
