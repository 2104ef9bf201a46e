//! The process at the other end of a connection, as reported by the kernel: its owner, and its id in its own namespace.

use runtap_os::my_uid;
use runtap_transport::Peer;

use super::admission::Standing;

/// The most ancestors to check: more than any build tool creates.
const MAX_ANCESTORS: usize = 64;

/// Returns the relation of a process to this one. Descendants of this process are kin, whatever their user; if the parent
/// of a process has exited, its ancestry is unknown.
pub(super) fn standing(peer: Peer) -> Standing {
    if is_trusted(peer) || peer.pid.is_some_and(|pid| is_descendant(pid, peer.uid)) {
        Standing::Kin
    } else {
        Standing::Guest
    }
}

/// Returns whether a process belongs to this process's user or to root.
pub(super) fn is_trusted(peer: Peer) -> bool {
    peer.uid == 0 || peer.uid == my_uid()
}

/// Returns the process id in its own pid namespace, which the process must claim. `None` if unknown.
pub(super) fn own_pid(pid: u32) -> Option<u32> {
    // There is one namespace only.
    if cfg!(windows) { Some(pid) } else { Status::of(pid)?.own_pid }
}

/// Returns the real user of process `pid`, even if it runs with the rights of another user. `None` if unknown.
pub fn user_of(pid: u32) -> Option<u32> {
    Status::of(pid).map(|status| status.real_uid)
}

/// Returns whether a process of this user is a descendant of this process. The user is compared because the process may
/// have exited and its id may have been reused: a foreign process gains nothing by that.
fn is_descendant(pid: u32, uid: u32) -> bool {
    let us = std::process::id();
    let Some(mut status) = Status::of(pid).filter(|status| status.uid == uid) else { return false };
    for _ in 0..MAX_ANCESTORS {
        if status.parent == us {
            return true;
        }
        match Status::of(status.parent) {
            Some(above) => status = above,
            None => return false,
        }
    }
    false
}

/// Fields of `/proc/PID/status`.
#[derive(Debug, PartialEq, Eq)]
struct Status {
    parent: u32,
    /// The effective user.
    uid: u32,
    real_uid: u32,
    own_pid: Option<u32>,
}

impl Status {
    #[cfg(target_os = "linux")]
    fn of(pid: u32) -> Option<Self> {
        Self::parse(&std::fs::read(format!("/proc/{pid}/status")).ok()?)
    }

    #[cfg(not(target_os = "linux"))]
    fn of(_pid: u32) -> Option<Self> {
        None
    }

    /// The name in the first line may contain any byte except a line break.
    #[cfg(any(target_os = "linux", test))]
    fn parse(text: &[u8]) -> Option<Self> {
        let fields = |name: &str| {
            let mut lines = text.split(|byte| *byte == b'\n');
            let rest = lines.find_map(|line| line.strip_prefix(name.as_bytes()))?;
            Some(str::from_utf8(rest).ok()?.split_ascii_whitespace())
        };
        Some(Self {
            parent: fields("PPid:")?.next()?.parse().ok()?,
            uid: fields("Uid:")?.nth(1)?.parse().ok()?,
            real_uid: fields("Uid:")?.next()?.parse().ok()?,
            own_pid: fields("NSpid:").and_then(|mut pids| pids.next_back()?.parse().ok()),
        })
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::process::{Command, Stdio};

    use rustix::process::{geteuid, getuid};

    use super::*;

    #[test]
    fn the_lines_of_a_status() {
        let text = b"Name:\tPPid: 1 Uid:\xff\nUmask:\t0022\nPid:\t42\nPPid:\t7\nUid:\t1\t2\t3\t4\nNSpid:\t42\t6\t5\n";
        assert_eq!(Status::parse(text), Some(Status { parent: 7, uid: 2, real_uid: 1, own_pid: Some(5) }));
        assert_eq!(Status::parse(b"PPid:\t7\nUid:\t1\t2\n").map(|status| status.own_pid), Some(None));
        assert_eq!(Status::parse(b"PPid:\t7\nUid:\t1\n"), None);
        assert_eq!(Status::parse(b""), None);
    }

    #[test]
    fn descendants_are_kin_whatever_their_user() {
        let mut child = Command::new("cat").stdin(Stdio::piped()).spawn().unwrap();
        let uid = geteuid().as_raw();
        assert!(is_descendant(child.id(), uid));
        assert!(!is_descendant(child.id(), uid + 1), "its id was reused");
        assert!(!is_descendant(std::process::id(), uid) && !is_descendant(1, 0));
        assert_eq!((own_pid(child.id()), user_of(child.id())), (Some(child.id()), Some(getuid().as_raw())));
        assert_eq!(standing(Peer { pid: Some(child.id()), uid: uid + 1 }), Standing::Guest);
        assert_eq!(standing(Peer { pid: None, uid }), Standing::Kin);
        assert_eq!(standing(Peer { pid: None, uid: 0 }), Standing::Kin);
        assert_eq!(standing(Peer { pid: None, uid: uid + 1 }), Standing::Guest);
        drop(child.stdin.take());
        child.wait().unwrap();
    }
}
