//! Verifies the process that listens on a connected socket before any data is sent. The name of a socket proves
//! nothing: every user can create any name in `/tmp`.
//!
//! `SO_PEERCRED` returns the process id and the effective user at the time of `listen`. The id may have been reused
//! since; `SO_PEERPIDFD` (Linux 6.5) refers to the process itself.
//! Source: `unix(7)`, `pidfd_open(2)`.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::path::Path;

use nix::sys::socket::getsockopt;
use nix::sys::socket::sockopt::{PeerCredentials, PeerPidfd};

use super::process::{ProcDir, read, user_name};
use crate::naming::{SocketKind, SocketName};
use crate::{ConnectFailure, Peer};

/// The expected process at the other end of a connection.
#[derive(Debug)]
pub(crate) enum Expected {
    /// A process of the current user or root, or the process that the socket's file name refers to.
    OwnUser { name: Option<SocketName> },
    /// A specific process, which is running as long as its directory can be read.
    Process { pid: u32, start_time: u64, dir: ProcDir },
    /// Any process: nothing will be sent, or the caller verifies it.
    Any,
}

/// The state of the process at the other end, according to its pidfd.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Pidfd {
    /// It is running and has this id in `/proc`; 0 if it has none there.
    Alive(u32),
    /// It has exited, and another process holds its socket.
    Ended,
}

/// Returns the process at the other end of a connected socket.
///
/// # Errors
/// If the kernel does not report it.
pub(crate) fn peer(socket: BorrowedFd<'_>) -> io::Result<Peer> {
    let credentials = getsockopt(&socket, PeerCredentials)?;
    // The id is 0 if the process is in another pid namespace.
    let pid = u32::try_from(credentials.pid()).ok().filter(|pid| *pid != 0);
    Ok(Peer { pid, uid: credentials.uid() })
}

/// Checks that the expected process is at the other end of a connected socket.
///
/// # Errors
/// [`ConnectFailure::WrongPeer`] or [`ConnectFailure::UnknownPeer`]; `NotFound` if the process has exited.
pub(crate) fn check(socket: BorrowedFd<'_>, expected: &Expected) -> Result<(), ConnectFailure> {
    match expected {
        Expected::Any => Ok(()),
        Expected::OwnUser { name } => own_user(peer(socket)?, *name),
        Expected::Process { pid, start_time, dir } => {
            let (peer, exact) = (peer(socket)?, pidfd_of_peer(socket));
            let status = dir.status().filter(|_| dir.stat().is_some_and(|(_, start)| start == *start_time));
            // The process has exited meanwhile.
            let Some(status) = status else { return Err(ConnectFailure::NotFound) };
            // The real user is not accepted: a set-uid program (`sudo`) keeps that of its caller, who may have started
            // listening before.
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
    Err(wrong_peer(peer, None))
}

/// Returns whether a socket is named after the process that listens on it.
fn is_named(peer: Peer, name: SocketName) -> bool {
    let process = peer.pid.and_then(|pid| ProcDir::open(Path::new("/proc"), pid).ok());
    let told = process.and_then(|dir| Some((dir.status()?, dir.stat()?.1)));
    name.kind == SocketKind::Runtime
        && told.is_some_and(|(status, start)| {
            (status.ns_pid, start) == (name.pid, name.key) && status.effective_uid == peer.uid
        })
}

fn judge(peer: Peer, exact: Option<Pidfd>, wanted: u32, users: &[u32]) -> Result<(), ConnectFailure> {
    let mismatch = |pid| Err(wrong_peer(Peer { pid, ..peer }, Some(wanted)));
    // The process may have changed its user after `listen`, and the socket may have been inherited from another user.
    let is_its_user = users.contains(&peer.uid) || peer.uid == 0;
    match (exact, peer.pid) {
        (Some(Pidfd::Alive(pid)), _) if pid == wanted && is_its_user => Ok(()),
        (Some(Pidfd::Alive(0)), _) | (None, None) => Err(ConnectFailure::UnknownPeer { wanted }),
        (Some(Pidfd::Alive(pid)), _) => mismatch(Some(pid)),
        (Some(Pidfd::Ended), _) => mismatch(None),
        // The id now belongs to the expected process. If it was reused and its previous owner passed the socket on,
        // that owner had the same user.
        (None, Some(pid)) if pid == wanted && is_its_user => Ok(()),
        (None, pid) => mismatch(pid),
    }
}

fn wrong_peer(peer: Peer, wanted: Option<u32>) -> ConnectFailure {
    let passwd = read(Path::new("/etc/passwd")).unwrap_or_default();
    ConnectFailure::WrongPeer { user: user_name(&passwd, peer.uid), peer, wanted }
}

/// Returns the state of the peer. `None` if the kernel does not support this (before Linux 6.5).
fn pidfd_of_peer(socket: BorrowedFd<'_>) -> Option<Pidfd> {
    match getsockopt(&socket, PeerPidfd) {
        Ok(pidfd) => {
            let text = read(Path::new(&format!("/proc/self/fdinfo/{}", pidfd.as_raw_fd()))).ok()?;
            let text = str::from_utf8(&text).ok()?;
            let pid = text.lines().find_map(|line| line.strip_prefix("Pid:"))?.trim();
            // The id is -1 if the process has exited and was waited for.
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
    fn only_the_expected_process_is_trusted() {
        let judged = |peer, exact| judge(peer, exact, 42, &[1000, 33]);
        let right = peer_of(Some(42), 1000);
        for (peer, exact) in [
            (right, Some(Pidfd::Alive(42))),
            (right, None),
            (peer_of(Some(42), 33), None),
            // It started listening before it gave up root.
            (peer_of(Some(42), 0), None),
            // The id in the credentials is that of another pid namespace than `/proc` shows.
            (peer_of(Some(7), 1000), Some(Pidfd::Alive(42))),
            (peer_of(None, 1000), Some(Pidfd::Alive(42))),
        ] {
            assert!(judged(peer, exact).is_ok(), "{peer:?} {exact:?}");
        }
        for (peer, exact, pid) in [
            (peer_of(Some(77), 65_534), None, Some(77)),
            (peer_of(Some(77), 1000), Some(Pidfd::Alive(77)), Some(77)),
            // A reused id: of another user, or of a process known to have exited.
            (peer_of(Some(42), 65_534), None, Some(42)),
            // It started listening as another user.
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
    fn a_real_peer_is_identified_by_its_process() {
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
    fn a_path_is_trusted_by_user_or_by_its_name() {
        let me = std::process::id();
        let start = ProcDir::open(Path::new("/proc"), me).unwrap().stat().unwrap().1;
        let stranger = peer_of(Some(me), 4_000_000);
        assert!(own_user(peer_of(None, rustix::process::geteuid().as_raw()), None).is_ok());
        assert!(own_user(peer_of(None, 0), None).is_ok());
        let router = SocketName { kind: SocketKind::Router, ..SocketName::runtime(me, start) };
        for name in [
            None,
            // The name is right, but the listener's user is not that of the process.
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
