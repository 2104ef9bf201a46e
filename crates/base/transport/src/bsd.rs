//! Unix domain sockets for kernels without Linux's features (macOS): paths cannot refer to a directory descriptor, and
//! the mode of a socket file is determined by the umask. The functions are those of `unix`, which is for Linux.
//!
//! The code is portable, so it is also compiled and tested on Linux. It has not been run on macOS.

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, FileTypeExt, MetadataExt, PermissionsExt};
use std::os::unix::net::{self, UnixListener};
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use tokio::net::UnixStream;

use crate::endpoint::ProcessEndpoint;
use crate::folder::Folder;
use crate::{ConnectFailure, Peer};

/// Size of macOS's `sun_path` without the terminating NUL, in bytes.
const LONGEST_PATH: usize = 103;

/// Connects to a path; the listener must belong to the current user or root.
pub(crate) async fn connect(path: &Path, timeout: Duration) -> Result<UnixStream, ConnectFailure> {
    let stream = connect_socket(path, timeout).await?;
    let peer = peer(&stream)?;
    let trusted = peer.uid == rustix::process::geteuid().as_raw() || peer.uid == 0;
    if trusted { Ok(stream) } else { Err(wrong_peer(peer, None)) }
}

/// Connects to a path without verifying which process listens there.
pub(crate) async fn connect_unverified(path: &Path, timeout: Duration) -> Result<UnixStream, ConnectFailure> {
    connect_socket(path, timeout).await
}

/// Connects to one of the sockets that may belong to a process; the listener must be that process.
pub(crate) async fn connect_to(
    process: &ProcessEndpoint,
    timeout: Duration,
) -> Result<UnixStream, ConnectFailure> {
    let wanted = process.pid;
    let mut failure = ConnectFailure::NotFound;
    for socket in &process.sockets {
        match connect_socket(&socket.path, timeout).await {
            Ok(stream) => match peer(&stream)? {
                Peer { pid: Some(pid), .. } if pid == wanted => return Ok(stream),
                Peer { pid: None, .. } => failure = ConnectFailure::UnknownPeer { wanted },
                peer => failure = wrong_peer(peer, Some(wanted)),
            },
            Err(error) => failure = error,
        }
    }
    Err(failure)
}

fn peer(stream: &UnixStream) -> io::Result<Peer> {
    let credentials = stream.peer_cred()?;
    let pid = credentials.pid().and_then(|pid| u32::try_from(pid).ok()).filter(|pid| *pid != 0);
    Ok(Peer { pid, uid: credentials.uid() })
}

/// User names are not looked up.
fn wrong_peer(peer: Peer, wanted: Option<u32>) -> ConnectFailure {
    ConnectFailure::WrongPeer { user: peer.uid.to_string(), peer, wanted }
}

/// On macOS a full queue is reported as a refusal, like a stale socket, and the connection is not retried.
async fn connect_socket(path: &Path, timeout: Duration) -> Result<UnixStream, ConnectFailure> {
    check(path)?;
    match tokio::time::timeout(timeout, UnixStream::connect(path)).await {
        Ok(connected) => Ok(connected?),
        Err(_elapsed) => Err(ConnectFailure::Busy { waited: timeout }),
    }
}

/// Connects without a time-out: the kernel answers at once.
fn connect_blocking(path: &Path) -> Result<net::UnixStream, ConnectFailure> {
    check(path)?;
    Ok(net::UnixStream::connect(path)?)
}

/// Binds and listens with the backlog of the standard library. The socket is bound in a private directory and renamed
/// into place when it has its final mode, 0600, or 0666 if every user may connect, so other users can never connect prematurely.
pub(crate) fn bind(folder: &Folder, name: &OsStr, backlog: i32, everybody: bool) -> io::Result<UnixListener> {
    // Renaming would replace an existing socket.
    let is_free = || fs::symlink_metadata(folder.path().join(name)).is_err();
    replace(folder, name, backlog, everybody, is_free)
}

/// Binds and replaces an existing file in one step. `is_free` is called right before; if it returns false, the name is
/// in use.
pub(crate) fn replace(
    folder: &Folder,
    name: &OsStr,
    _backlog: i32,
    everybody: bool,
    is_free: impl FnOnce() -> bool,
) -> io::Result<UnixListener> {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let path = &folder.path().join(name);
    check(path)?;
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let parent =
        path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or_else(|| Path::new("."));
    let private = parent.join(format!(".rt{}-{number}", std::process::id()));
    fs::DirBuilder::new().mode(0o700).create(&private)?;
    let bound = bind_in(&private, path, if everybody { 0o666 } else { 0o600 }, is_free);
    // The directory is empty, or contains a socket without a listener.
    let _ = fs::remove_dir_all(&private);
    bound
}

/// Returns the owner of a socket file if no process listens on the socket.
pub(crate) fn stale_owner(folder: &Folder, name: &OsStr) -> Option<u32> {
    let path = folder.path().join(name);
    let meta = fs::symlink_metadata(&path).ok().filter(|meta| meta.file_type().is_socket())?;
    matches!(connect_blocking(&path), Err(ConnectFailure::Refused)).then(|| meta.uid())
}

fn bind_in(
    private: &Path,
    path: &Path,
    mode: u32,
    is_free: impl FnOnce() -> bool,
) -> io::Result<UnixListener> {
    let place = private.join("s");
    let listener = UnixListener::bind(&place)?;
    listener.set_nonblocking(true)?;
    fs::set_permissions(&place, fs::Permissions::from_mode(mode))?;
    if !is_free() {
        return Err(io::ErrorKind::AddrInUse.into());
    }
    fs::rename(&place, path)?;
    Ok(listener)
}

fn check(path: &Path) -> io::Result<()> {
    match path.as_os_str().as_bytes().len() {
        0 => Err(io::ErrorKind::NotFound.into()),
        length if length > LONGEST_PATH => Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            format!("the path is longer than {LONGEST_PATH} bytes, the maximum for a socket"),
        )),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::os::unix::fs::FileTypeExt;

    use super::*;
    use crate::naming::SocketName;
    use crate::{Socket, SocketState};

    #[test]
    fn a_private_socket_accepts_connections_and_leaves_no_other_file() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("s");
        let folder = Folder::open(dir.path()).unwrap();
        let bind = || bind(&folder, "s".as_ref(), 255, false);
        let listener = bind().unwrap();
        let meta = fs::symlink_metadata(&path).unwrap();
        assert!(meta.file_type().is_socket());
        assert_eq!(meta.permissions().mode() & 0o777, 0o600);
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
        assert_eq!(bind().unwrap_err().kind(), io::ErrorKind::AddrInUse);
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);

        let mut near = connect_blocking(&path).unwrap();
        let (mut far, _) = listener.accept().unwrap();
        far.set_nonblocking(false).unwrap();
        near.write_all(b"x").unwrap();
        drop(near);
        let mut text = String::new();
        far.read_to_string(&mut text).unwrap();
        assert_eq!(text, "x");
        assert_eq!(stale_owner(&folder, "s".as_ref()), None);
        drop(listener);
        let refused = connect_blocking(&path).unwrap_err();
        assert!(matches!(refused, ConnectFailure::Refused), "{refused}");
        assert_eq!(stale_owner(&folder, "s".as_ref()), Some(meta.uid()));
    }

    #[tokio::test]
    async fn failures_are_distinguished() {
        let dir = tempfile::tempdir().unwrap();
        let second = Duration::from_secs(1);
        let missing = connect(&dir.path().join("none"), second).await.unwrap_err();
        assert!(matches!(missing, ConnectFailure::NotFound), "{missing}");
        let nameless = connect(Path::new(""), second).await.unwrap_err();
        assert!(matches!(nameless, ConnectFailure::NotFound), "{nameless}");
        let long = dir.path().join("x".repeat(LONGEST_PATH));
        let told = connect(&long, second).await.unwrap_err();
        assert!(told.to_string().contains("longer"), "{told}");
        let path = dir.path().join("s");
        let _listener = bind(&Folder::open(dir.path()).unwrap(), "s".as_ref(), 1, false).unwrap();
        connect(&path, second).await.unwrap();
        connect_unverified(&path, second).await.unwrap();
    }

    #[tokio::test]
    async fn only_the_expected_process_is_trusted() {
        let dir = tempfile::tempdir().unwrap();
        let name = SocketName::runtime(std::process::id(), 1).to_string();
        let _listener = bind(&Folder::open(dir.path()).unwrap(), name.as_ref(), 1, false).unwrap();
        let connect = async |pid| {
            let socket =
                Socket::new(dir.path().join(&name), SocketName::runtime(pid, 1), SocketState::Matching);
            let process = ProcessEndpoint { pid, start_time: 1, sockets: vec![socket] };
            connect_to(&process, Duration::from_secs(1)).await
        };
        connect(std::process::id()).await.unwrap();
        let told = connect(1).await.unwrap_err();
        assert!(matches!(told, ConnectFailure::WrongPeer { wanted: Some(1), .. }), "{told}");
    }
}
