//! The socket: dialled until it is there, used only if its server is of our own user.

use std::io::{self, Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use runtap_mtp_proto::host::{Connection, Reply};
use rustix::net::RecvFlags;

use super::{ReplyLimit, shown};
use crate::HostError;

/// The pause before the second attempt; it doubles up to [`LONGEST`].
const SHORTEST: Duration = Duration::from_millis(1);
const LONGEST: Duration = Duration::from_millis(50);

#[derive(Debug)]
pub(crate) struct Pipe {
    stream: UnixStream,
    limit: ReplyLimit,
}

impl Pipe {
    pub(super) fn connect(path: &Path, patience: Duration) -> Result<Self, HostError> {
        let stream = dial(path, patience, &mut || false)?;
        Ok(Self { stream, limit: ReplyLimit::NONE })
    }

    pub(super) fn exchange(&mut self, frame: &[u8], connection: &mut Connection) -> Result<Reply, HostError> {
        // In one go: MTP 1.8 dies of a length that arrives in parts.
        let until = self.limit.until();
        self.stream.write_all(frame).map_err(lost)?;
        let mut buffer = [0; 4096];
        loop {
            if let Some(left) = until.left().map_err(lost)? {
                self.stream.set_read_timeout(Some(left)).map_err(lost)?;
            }
            let count = match self.stream.read(&mut buffer) {
                Ok(0) => {
                    connection.handle_eof()?;
                    return Err(HostError::Gone);
                }
                Ok(count) => count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(lost(error)),
            };
            if let Some(reply) = connection.handle_bytes(buffer.get(..count).unwrap_or_default())? {
                return Ok(reply);
            }
        }
    }

    /// How long the reply to a message may take.
    pub(super) fn set_limit(&mut self, limit: ReplyLimit) -> Result<(), HostError> {
        self.limit = limit;
        // What the last exchange has set.
        self.stream.set_read_timeout(None).map_err(lost)
    }

    pub(super) fn is_gone(&self) -> bool {
        let mut byte = [0_u8];
        let flags = RecvFlags::PEEK | RecvFlags::DONTWAIT;
        match rustix::net::recv(&self.stream, &mut byte[..], flags) {
            // Bytes that nobody has asked for are found with the next request.
            Ok((count, _)) => count == 0,
            Err(error) => error != rustix::io::Errno::AGAIN && error != rustix::io::Errno::INTR,
        }
    }
}

fn lost(error: io::Error) -> HostError {
    HostError::Lost(Arc::new(error))
}

/// Dials until somebody listens, for as long as `patience`, or until `is_over`.
pub(crate) fn dial(
    path: &Path,
    patience: Duration,
    is_over: &mut dyn FnMut() -> bool,
) -> Result<UnixStream, HostError> {
    let started = Instant::now();
    let mut pause = SHORTEST;
    loop {
        let error = match connect(path) {
            Ok(stream) => return check(&stream, path).map(|()| stream),
            Err(error) => error,
        };
        let is_absent = matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused);
        // A full backlog.
        let is_busy = error.kind() == io::ErrorKind::WouldBlock;
        let waited = started.elapsed();
        if !(is_absent || is_busy) || waited >= patience || is_over() {
            return Err(HostError::Connect { server: shown(path), waited, error: Arc::new(error) });
        }
        thread::sleep(pause.min(patience.saturating_sub(waited)));
        pause = (pause * 2).min(LONGEST);
    }
}

/// Does not wait for a place in a full backlog: nobody may ever accept.
#[cfg(target_os = "linux")]
fn connect(path: &Path) -> io::Result<UnixStream> {
    use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, connect, socket_with};
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    connect(&socket, &SocketAddrUnix::new(path)?)?;
    let stream = UnixStream::from(socket);
    stream.set_nonblocking(false)?;
    Ok(stream)
}

/// Elsewhere a full backlog refuses.
#[cfg(not(target_os = "linux"))]
fn connect(path: &Path) -> io::Result<UnixStream> {
    UnixStream::connect(path)
}

/// The platform's own hosts refuse a server of another user (.NET's `CurrentUserOnly`).
#[cfg(target_os = "linux")]
fn check(stream: &UnixStream, path: &Path) -> Result<(), HostError> {
    let peer = rustix::net::sockopt::socket_peercred(stream).map_err(|error| lost(error.into()))?;
    if peer.uid == rustix::process::geteuid() {
        return Ok(());
    }
    Err(HostError::NotOurUser { path: shown(path), uid: peer.uid.as_raw() })
}

/// Only Linux has a safe way to ask; elsewhere the directory of the socket has to be private.
#[cfg(not(target_os = "linux"))]
#[expect(clippy::unnecessary_wraps, reason = "Linux can refuse")]
fn check(_: &UnixStream, _: &Path) -> Result<(), HostError> {
    Ok(())
}
