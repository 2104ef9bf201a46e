//! A listening socket that by default only its owner and root can connect to. Its file is removed when the listener is
//! dropped, unless other users could then take its name.

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

/// The backlog that .NET's own server uses.
const BACKLOG: i32 = 255;

/// A listening Unix domain socket with mode 0600, or 0666 if all users may connect.
#[derive(Debug)]
pub struct Listener {
    // Dropped before the socket; see `SocketFile`.
    file: SocketFile,
    inner: tokio::net::UnixListener,
    everybody: bool,
}

impl Listener {
    /// Binds `path` and listens. Must be called within a tokio runtime with I/O. Fails if the path to the directory
    /// contains a symbolic link of another user, who could redirect it and so choose where to listen and which stale
    /// socket to replace.
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
            let reason = "a symbolic link on the path belongs to another user, who can redirect it";
            return Err(failed(io::Error::new(io::ErrorKind::PermissionDenied, reason)));
        }
        if options.keeps_name && folder.exposure() == Exposure::Open {
            return Self::bind_in(&folder.by_descriptor(), name, options);
        }
        Self::bind_in(&folder, name, options)
    }

    /// Binds and listens in an open directory. Renaming the directory does not matter: the socket file is created in
    /// this directory and removed from it.
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

    /// Creates a listener from a socket that another process bound at `path` and passed on with
    /// [`socket`](Self::socket).
    ///
    /// # Errors
    /// If the descriptor is not a listening Unix domain socket, or its file does not exist.
    pub fn passed_on(socket: OwnedFd, path: &Path, options: BindOptions) -> io::Result<Self> {
        #[cfg(not(target_vendor = "apple"))]
        if !rustix::net::sockopt::socket_acceptconn(&socket)? {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "the socket is not listening"));
        }
        let socket = UnixListener::from(socket);
        // Fails for sockets of other address families.
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

    /// Returns a copy of the socket for another process that will continue listening. Pending clients are accepted by
    /// either process. Call [`leave_file`](Self::leave_file) so that this process does not remove the file.
    ///
    /// # Errors
    /// If there are too many open files.
    pub fn socket(&self) -> io::Result<OwnedFd> {
        self.inner.as_fd().try_clone_to_owned()
    }

    /// Leaves the socket file to another process: it is not removed when the listener is dropped.
    pub fn leave_file(&self) {
        self.file.is_released.store(true, Ordering::Relaxed);
    }

    /// Returns what other users can do to the name of the socket.
    pub fn exposure(&self) -> Exposure {
        self.file.folder.exposure()
    }

    /// Returns the path of the socket.
    pub fn path(&self) -> &Path {
        &self.file.path
    }

    /// Returns the address for clients.
    pub fn endpoint(&self) -> Endpoint {
        Endpoint::unix(&self.file.path)
    }

    /// Returns whether processes of all users may connect.
    pub fn accepts_all_users(&self) -> bool {
        self.everybody
    }

    /// Removes the socket file now, if it is to be removed, so that no more clients can connect. Pending clients can
    /// still be accepted.
    pub fn remove_file(&self) {
        self.file.end();
    }

    /// Accepts the next client of the current user or root, or of any user if all may connect. The mode of the file
    /// keeps other users out; a client of theirs that holds a descriptor all the same is disconnected. Cancel safe.
    ///
    /// # Errors
    /// If `accept` fails. Being out of descriptors (`EMFILE`) is temporary.
    pub async fn accept(&self) -> io::Result<(Stream, Peer)> {
        let me = rustix::process::geteuid().as_raw();
        loop {
            let (stream, peer) = self.accept_unverified().await?;
            if self.everybody || peer.uid == me || peer.uid == 0 {
                return Ok((stream, peer));
            }
        }
    }

    /// Accepts the next client of any user, for callers that check the [`Peer`] themselves. Cancel safe.
    ///
    /// # Errors
    /// See [`accept`](Self::accept).
    pub async fn accept_unverified(&self) -> io::Result<(Stream, Peer)> {
        loop {
            let (stream, _unnamed) = self.inner.accept().await?;
            let stream = Stream::from(stream);
            if let Ok(peer) = stream.peer() {
                return Ok((stream, peer));
            }
        }
    }
}

/// Returns whether an entry is a stale socket that may be replaced.
fn is_stale(folder: &Folder, name: &OsStr, options: BindOptions) -> bool {
    let owner = unix::stale_owner(folder, name);
    let ours = Some(rustix::process::geteuid().as_raw());
    owner.is_some() && (owner == ours || owner == options.stale_of)
}

/// The file of a bound socket. Removed on drop, unless another file has replaced it. While the socket is open, its
/// inode number cannot be reused, even if the file was deleted; so the file must be dropped before the socket.
#[derive(Debug)]
struct SocketFile {
    folder: Folder,
    name: OsString,
    path: PathBuf,
    identity: (u64, u64),
    /// Whether the file stays if other users could otherwise take its name, and its new owner then.
    keeps_name: bool,
    new_owner: Option<u32>,
    is_released: AtomicBool,
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
            new_owner: options.stale_of.filter(|uid| *uid != ours),
            is_released: AtomicBool::new(false),
        })
    }

    fn end(&self) {
        let is_there = || Self::identity(&self.folder, &self.name).is_ok_and(|now| now == self.identity);
        if self.is_released.swap(true, Ordering::Relaxed) || !is_there() {
            return;
        }
        if !self.stays() {
            // On failure a stale socket remains, which clients can detect.
            let _ = self.folder.remove(&self.name);
        }
    }

    /// Returns whether the file stays to keep other users from taking its name.
    fn stays(&self) -> bool {
        // The file must belong to the user of the programs: owned by root it would be in their way, owned by a third
        // user it would not protect them.
        let inherited = || self.new_owner.is_none_or(|uid| self.folder.give(&self.name, uid).is_ok());
        self.keeps_name && self.folder.exposure() == Exposure::Shared && inherited()
    }

    fn identity(folder: &Folder, name: &OsStr) -> io::Result<(u64, u64)> {
        // The types differ between systems, but only equality matters.
        #[allow(clippy::cast_sign_loss, clippy::unnecessary_cast, reason = "as the platform has it")]
        folder.stat(name).map(|stat| (stat.st_dev as u64, stat.st_ino as u64))
    }
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        self.end();
    }
}
