//! Who listens on a socket that was dialled, and whether it is the one who is meant: asked of the kernel, before a byte
//! is sent. The name of a socket proves nothing: in `/tmp` everybody can make one of any name.
//!
//! `SO_PEERCRED` has the process id and the effective user of whoever began to listen. The number alone may be another
//! process's by now; `SO_PEERPIDFD` (Linux 6.5) has the process itself.
//! Source: `unix(7)`, `pidfd_open(2)`.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::path::Path;

use nix::sys::socket::getsockopt;
use nix::sys::socket::sockopt::{PeerCredentials, PeerPidfd};

use super::process::{ProcDir, read, user_name};
use crate::naming::{SocketKind, SocketName};
use crate::{ConnectFailure, Peer};

/// Who has to be at the other end.
#[derive(Debug)]
pub(crate) enum Expected {
    /// Our own user or root; else the process that the socket's file name says, which is what its path was given for.
    OwnUser { name: Option<SocketName> },
    /// This process, which is known to be alive as long as its folder can be read.
    Process { pid: u32, start_time: u64, dir: ProcDir },
    /// Anybody: nothing is going to be said, or the caller asks.
    Anybody,
}

/// What the kernel says of the process at the other end, apart from its number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Pidfd {
    /// It lives and has this number in our `/proc`; 0 if it has none there.
    Alive(u32),
    /// It has ended: somebody else has its socket.
    Ended,
}

/// Who is at the other end of a connected socket.
///
/// # Errors
/// When the kernel does not say.
pub(crate) fn peer(socket: BorrowedFd<'_>) -> io::Result<Peer> {
    let credentials = getsockopt(&socket, PeerCredentials)?;
    // 0: a process that has no number in our pid namespace.
    let pid = u32::try_from(credentials.pid()).ok().filter(|pid| *pid != 0);
    Ok(Peer { pid, uid: credentials.uid() })
}

/// Compares.
///
/// # Errors
/// [`ConnectFailure::WrongPeer`] and [`ConnectFailure::UnknownPeer`]; `NotFound` if the process has ended meanwhile.
pub(crate) fn check(socket: BorrowedFd<'_>, expected: &Expected) -> Result<(), ConnectFailure> {
    match expected {
        Expected::Anybody => Ok(()),
        Expected::OwnUser { name } => own_user(peer(socket)?, *name),
        Expected::Process { pid, start_time, dir } => {
            let (peer, exact) = (peer(socket)?, pidfd_of_peer(socket));
            let status = dir.status().filter(|_| dir.stat().is_some_and(|(_, start)| start == *start_time));
            // It was there a moment ago.
            let Some(status) = status else { return Err(ConnectFailure::NotFound) };
            // Not its real user: a program that was started with the rights of another (`sudo`) keeps that of whoever
            // started it, who may have begun to listen before.
            let [_real, effective, _saved, files] = status.uids;
            judge(peer, exact, *pid, &[effective, files])
        }
    }
}

fn own_user(peer: Peer, name: Option<SocketName>) -> Result<(), ConnectFailure> {
    let trusted = peer.uid == rustix::process::geteuid().as_raw() || peer.uid == 0;
    if trusted || name.is_some_and(|name| is_named(peer, name)) {
        return Ok(());
    }
    Err(wrong(peer, None))
}

/// Whether a socket has the name of the process that listens on it.
fn is_named(peer: Peer, name: SocketName) -> bool {
    let process = peer.pid.and_then(|pid| ProcDir::open(Path::new("/proc"), pid).ok());
    let told = process.and_then(|dir| Some((dir.status()?, dir.stat()?.1)));
    name.kind == SocketKind::Runtime
        && told.is_some_and(|(status, start)| {
            (status.ns_pid, start) == (name.pid, name.key) && status.effective_uid == peer.uid
        })
}

fn judge(peer: Peer, exact: Option<Pidfd>, wanted: u32, users: &[u32]) -> Result<(), ConnectFailure> {
    let wrong = |pid| Err(wrong(Peer { pid, ..peer }, Some(wanted)));
    // Who began to listen may have become another user since, and have left the socket to somebody before.
    let is_its_user = users.contains(&peer.uid) || peer.uid == 0;
    match (exact, peer.pid) {
        (Some(Pidfd::Alive(pid)), _) if pid == wanted && is_its_user => Ok(()),
        (Some(Pidfd::Alive(0)), _) | (None, None) => Err(ConnectFailure::UnknownPeer { wanted }),
        (Some(Pidfd::Alive(pid)), _) => wrong(Some(pid)),
        (Some(Pidfd::Ended), _) => wrong(None),
        // The number is the process's own now. Had another one had it that left its socket to somebody, that would be
        // one of the same user.
        (None, Some(pid)) if pid == wanted && is_its_user => Ok(()),
        (None, pid) => wrong(pid),
    }
}

fn wrong(peer: Peer, wanted: Option<u32>) -> ConnectFailure {
    let passwd = read(Path::new("/etc/passwd")).unwrap_or_default();
    ConnectFailure::WrongPeer { user: user_name(&passwd, peer.uid), peer, wanted }
}

/// `None` where the kernel can't tell: before Linux 6.5.
fn pidfd_of_peer(socket: BorrowedFd<'_>) -> Option<Pidfd> {
    match getsockopt(&socket, PeerPidfd) {
        Ok(pidfd) => {
            let text = read(Path::new(&format!("/proc/self/fdinfo/{}", pidfd.as_raw_fd()))).ok()?;
            let text = str::from_utf8(&text).ok()?;
            let pid = text.lines().find_map(|line| line.strip_prefix("Pid:"))?.trim();
            // -1: it has ended and was waited for.
            Some(pid.parse().map_or(Pidfd::Ended, Pidfd::Alive))
        }
        Err(nix::errno::Errno::ESRCH) => Some(Pidfd::Ended),
        Err(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd;
    use std::os::unix::net::{UnixListener, UnixStream};

    use super::*;

    const fn peer_of(pid: Option<u32>, uid: u32) -> Peer {
        Peer { pid, uid }
    }

    #[test]
    fn only_the_process_itself_is_believed() {
        let judged = |peer, exact| judge(peer, exact, 42, &[1000, 33]);
        let right = peer_of(Some(42), 1000);
        for (peer, exact) in [
            (right, Some(Pidfd::Alive(42))),
            (right, None),
            (peer_of(Some(42), 33), None),
            // It began to listen before it gave up being root.
            (peer_of(Some(42), 0), None),
            // The number that the credentials have is that of another pid namespace than the one of our /proc.
            (peer_of(Some(7), 1000), Some(Pidfd::Alive(42))),
            (peer_of(None, 1000), Some(Pidfd::Alive(42))),
        ] {
            assert!(judged(peer, exact).is_ok(), "{peer:?} {exact:?}");
        }
        for (peer, exact, pid) in [
            (peer_of(Some(77), 65_534), None, Some(77)),
            (peer_of(Some(77), 1000), Some(Pidfd::Alive(77)), Some(77)),
            // A number that was used again: of somebody else, or known to have ended.
            (peer_of(Some(42), 65_534), None, Some(42)),
            // It listened as somebody else before it ran with the rights of its user now.
            (peer_of(Some(42), 65_534), Some(Pidfd::Alive(42)), Some(42)),
            (right, Some(Pidfd::Ended), None),
            (right, Some(Pidfd::Alive(77)), Some(77)),
        ] {
            let error = judged(peer, exact).unwrap_err();
            let told =
                matches!(&error, ConnectFailure::WrongPeer { peer, wanted: Some(42), .. } if peer.pid == pid);
            assert!(told, "{peer:?} {exact:?}: {error}");
        }
        for (pid, exact) in [(None, None), (None, Some(Pidfd::Alive(0))), (Some(42), Some(Pidfd::Alive(0)))] {
            let error = judged(peer_of(pid, 1000), exact).unwrap_err();
            assert!(matches!(error, ConnectFailure::UnknownPeer { wanted: 42 }), "{error}");
        }
    }

    #[test]
    fn a_real_peer_is_known_by_its_process() {
        let dir = tempfile::tempdir().unwrap();
        let listener = UnixListener::bind(dir.path().join("s")).unwrap();
        let stream = UnixStream::connect(dir.path().join("s")).unwrap();
        let me = std::process::id();
        let (socket, own) = (stream.as_fd(), ProcDir::open(Path::new("/proc"), me).unwrap());
        let uid = rustix::process::geteuid().as_raw();
        assert_eq!(peer(socket).unwrap(), peer_of(Some(me), uid));
        assert!(matches!(pidfd_of_peer(socket), None | Some(Pidfd::Alive(_))));
        if let Some(Pidfd::Alive(pid)) = pidfd_of_peer(socket) {
            assert_eq!(pid, me);
        }
        let start_time = own.stat().unwrap().1;
        let expected = |pid, start_time| Expected::Process { pid, start_time, dir: own.clone() };
        assert!(check(socket, &expected(me, start_time)).is_ok());
        let error = check(socket, &expected(me, start_time + 1)).unwrap_err();
        assert!(matches!(error, ConnectFailure::NotFound), "{error}");
        let error = check(socket, &expected(1, start_time)).unwrap_err();
        let text = error.to_string();
        assert!(text.starts_with(&format!("the process behind this socket is PID {me} of user ")), "{text}");
        assert!(text.ends_with(", not 1"), "{text}");
        drop(listener);
    }

    #[test]
    fn a_path_is_trusted_by_user_or_by_the_name_in_it() {
        let me = std::process::id();
        let start = ProcDir::open(Path::new("/proc"), me).unwrap().stat().unwrap().1;
        let stranger = peer_of(Some(me), 4_000_000);
        assert!(own_user(peer_of(None, rustix::process::geteuid().as_raw()), None).is_ok());
        assert!(own_user(peer_of(None, 0), None).is_ok());
        let router = SocketName { kind: SocketKind::Router, ..SocketName::runtime(me, start) };
        for name in [
            None,
            // Its name is right, and it is not the user's who listens: it may have been somebody else's before.
            Some(SocketName::runtime(me, start)),
            Some(SocketName::runtime(me, start + 1)),
            Some(SocketName::runtime(1, start)),
            Some(router),
        ] {
            let error = own_user(stranger, name).unwrap_err();
            assert!(error.to_string().contains("PID"), "{error}");
        }
    }
}
