//! Unix domain sockets where the kernel lacks Linux's ways (macOS): no directory descriptor stands for a path, and the
//! mode of a socket's file is the umask's. The same functions as `unix`, which is Linux's.
//!
//! Nothing in it is foreign to Linux, so it is compiled and tested there too. On macOS it was never run.

use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use crate::ConnectFailure;

/// What fits into `sun_path` of macOS with the final NUL.
const LONGEST_PATH: usize = 103;

/// A full queue is a refusal here: it can't be told from a stale socket, and is not tried again.
pub(crate) async fn connect(
    path: &Path,
    timeout: Duration,
) -> Result<tokio::net::UnixStream, ConnectFailure> {
    check(path)?;
    match tokio::time::timeout(timeout, tokio::net::UnixStream::connect(path)).await {
        Ok(connected) => Ok(connected?),
        Err(_elapsed) => Err(ConnectFailure::Busy { waited: timeout }),
    }
}

/// The kernel answers at once; there is nothing to wait for.
pub(crate) fn connect_blocking(path: &Path, _timeout: Duration) -> Result<UnixStream, ConnectFailure> {
    check(path)?;
    Ok(UnixStream::connect(path)?)
}

/// Binds and listens, with the backlog of the standard library. The socket is bound in a directory that only we may
/// enter, and moved to its place when its mode is 0600, or 0666 for everybody: at no moment can others connect who are not
/// meant to.
pub(crate) fn bind(path: &Path, _backlog: i32, everybody: bool) -> io::Result<UnixListener> {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    check(path)?;
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let parent =
        path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or_else(|| Path::new("."));
    let private = parent.join(format!(".rt{}-{number}", std::process::id()));
    fs::DirBuilder::new().mode(0o700).create(&private)?;
    let bound = bind_in(&private, path, if everybody { 0o666 } else { 0o600 });
    // Empty by now, or with a socket that nobody listens on.
    let _ = fs::remove_dir_all(&private);
    bound
}

fn bind_in(private: &Path, path: &Path, mode: u32) -> io::Result<UnixListener> {
    let place = private.join("s");
    let listener = UnixListener::bind(&place)?;
    listener.set_nonblocking(true)?;
    fs::set_permissions(&place, fs::Permissions::from_mode(mode))?;
    // To rename would replace somebody else's socket.
    if fs::symlink_metadata(path).is_ok() {
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
            format!("the path is longer than the {LONGEST_PATH} bytes that a socket address holds"),
        )),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::os::unix::fs::FileTypeExt;

    use super::*;

    #[test]
    fn a_private_socket_takes_connections_and_leaves_nothing_beside_it() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("s.sock");
        let listener = bind(&path, 255, false).unwrap();
        let meta = fs::symlink_metadata(&path).unwrap();
        assert!(meta.file_type().is_socket());
        assert_eq!(meta.permissions().mode() & 0o777, 0o600);
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
        assert_eq!(bind(&path, 255, false).unwrap_err().kind(), io::ErrorKind::AddrInUse);
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);

        let mut near = connect_blocking(&path, Duration::ZERO).unwrap();
        let (mut far, _) = listener.accept().unwrap();
        far.set_nonblocking(false).unwrap();
        near.write_all(b"x").unwrap();
        drop(near);
        let mut text = String::new();
        far.read_to_string(&mut text).unwrap();
        assert_eq!(text, "x");
        drop(listener);
        let refused = connect_blocking(&path, Duration::ZERO).unwrap_err();
        assert!(matches!(refused, ConnectFailure::Refused), "{refused}");
    }

    #[tokio::test]
    async fn failures_are_told_apart() {
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
        let _listener = bind(&path, 1, false).unwrap();
        connect(&path, second).await.unwrap();
    }
}
