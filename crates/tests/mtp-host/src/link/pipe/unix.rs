//! Sockets of Unix.

use std::io;
use std::path::Path;

use rustix::net::RecvFlags;

#[cfg(target_os = "linux")]
use super::{super::shown, lost};
use crate::HostError;

pub(crate) use std::os::unix::net::UnixStream as Stream;

/// Does not wait for a place in a full backlog: nobody may ever accept.
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

/// Elsewhere a full backlog refuses.
#[cfg(not(target_os = "linux"))]
pub(super) fn connect(path: &Path) -> io::Result<Stream> {
    Stream::connect(path)
}

pub(super) fn is_gone(stream: &Stream) -> bool {
    let mut byte = [0_u8];
    let flags = RecvFlags::PEEK | RecvFlags::DONTWAIT;
    match rustix::net::recv(stream, &mut byte[..], flags) {
        // Bytes that nobody has asked for are found with the next request.
        Ok((count, _)) => count == 0,
        Err(error) => error != rustix::io::Errno::AGAIN && error != rustix::io::Errno::INTR,
    }
}

/// The platform's own hosts refuse a server of another user (.NET's `CurrentUserOnly`).
#[cfg(target_os = "linux")]
pub(super) fn check(stream: &Stream, path: &Path) -> Result<(), HostError> {
    let peer = rustix::net::sockopt::socket_peercred(stream).map_err(|error| lost(error.into()))?;
    if peer.uid == rustix::process::geteuid() {
        return Ok(());
    }
    Err(HostError::NotOurUser { path: shown(path), uid: peer.uid.as_raw() })
}

/// Only Linux has a safe way to ask; elsewhere the directory of the socket has to be private.
#[cfg(not(target_os = "linux"))]
#[expect(clippy::unnecessary_wraps, reason = "Linux can refuse")]
pub(super) fn check(_: &Stream, _: &Path) -> Result<(), HostError> {
    Ok(())
}
