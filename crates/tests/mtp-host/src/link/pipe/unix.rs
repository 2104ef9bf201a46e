//! Unix domain sockets.

use std::io;
use std::path::Path;

use rustix::net::RecvFlags;

#[cfg(target_os = "linux")]
use super::{super::path_text, lost};
use crate::HostError;

pub(crate) use std::os::unix::net::UnixStream as Stream;

/// Connects without blocking on a full backlog, because the server may never accept.
#[cfg(target_os = "linux")]
pub(super) fn connect(path: &Path) -> io::Result<Stream> {
    use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, connect, socket_with};
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    connect(&socket, &SocketAddrUnix::new(path)?)?;
    let stream = Stream::from(socket);
    stream.set_nonblocking(false)?;
    Ok(stream)
}

/// On other systems, connecting fails if the backlog is full.
#[cfg(not(target_os = "linux"))]
pub(super) fn connect(path: &Path) -> io::Result<Stream> {
    Stream::connect(path)
}

pub(super) fn is_gone(stream: &Stream) -> bool {
    let mut byte = [0_u8];
    let flags = RecvFlags::PEEK | RecvFlags::DONTWAIT;
    match rustix::net::recv(stream, &mut byte[..], flags) {
        // Unsolicited bytes are detected with the next request.
        Ok((count, _)) => count == 0,
        Err(error) => error != rustix::io::Errno::AGAIN && error != rustix::io::Errno::INTR,
    }
}

/// Rejects a server of another user, like the platform's own hosts (.NET's `CurrentUserOnly`).
#[cfg(target_os = "linux")]
pub(super) fn check(stream: &Stream, path: &Path) -> Result<(), HostError> {
    let peer = rustix::net::sockopt::socket_peercred(stream).map_err(|error| lost(error.into()))?;
    if peer.uid == rustix::process::geteuid() {
        return Ok(());
    }
    Err(HostError::OtherUser { path: path_text(path), uid: peer.uid.as_raw() })
}

/// Accepts every server: only Linux has a safe way to check. On other systems the directory of the socket must be
/// private.
#[cfg(not(target_os = "linux"))]
#[expect(clippy::unnecessary_wraps, reason = "the Linux version can fail")]
pub(super) fn check(_: &Stream, _: &Path) -> Result<(), HostError> {
    Ok(())
}
