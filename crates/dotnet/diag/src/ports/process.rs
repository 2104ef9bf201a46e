//! What the kernel says of the process at the other end of a connection: whose it is, and what it calls itself. Looks
//! only; who is let in is `admission`'s.

use runtap_os::my_uid;
use runtap_transport::Peer;

use super::admission::Standing;

/// Steps from a process up to us. Nobody's build tool is as deep.
const DEEPEST: usize = 64;

/// What a process is to us. Below us is whoever we have started, and what that has started, whatever its user: where
/// its parent has ended, that is not known any more.
pub(super) fn standing(peer: Peer) -> Standing {
    if is_trusted(peer) || peer.pid.is_some_and(|pid| is_below_us(pid, peer.uid)) {
        Standing::Kin
    } else {
        Standing::Guest
    }
}

/// Whether it is a process of our own user or of root.
pub(super) fn is_trusted(peer: Peer) -> bool {
    peer.uid == 0 || peer.uid == my_uid()
}

/// The process id in its own pid namespace: what it has to call itself. `None` where that can't be seen.
pub(super) fn own_pid(pid: u32) -> Option<u32> {
    // There is one namespace only.
    if cfg!(windows) { Some(pid) } else { Status::of(pid)?.own_pid }
}

/// The user who has started process `pid`, also where it runs with another one's rights; `None` where that can't be seen.
pub fn user_of(pid: u32) -> Option<u32> {
    Status::of(pid).map(|status| status.real_uid)
}

/// Whether a process of this user is below us. The user is compared because the process that has connected may be gone
/// and its id be another one's by now: a foreign one gains nothing by that.
fn is_below_us(pid: u32, uid: u32) -> bool {
    let us = std::process::id();
    let Some(mut status) = Status::of(pid).filter(|status| status.uid == uid) else { return false };
    for _ in 0..DEEPEST {
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

/// Lines of `/proc/PID/status`.
#[derive(Debug, PartialEq, Eq)]
struct Status {
    parent: u32,
    /// The effective one.
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

    /// The name in the first line may hold anything but a line break.
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
    fn those_below_us_are_kin_whoever_they_are() {
        let mut child = Command::new("cat").stdin(Stdio::piped()).spawn().unwrap();
        let uid = geteuid().as_raw();
        assert!(is_below_us(child.id(), uid));
        assert!(!is_below_us(child.id(), uid + 1), "its id is another one's by now");
        assert!(!is_below_us(std::process::id(), uid) && !is_below_us(1, 0));
        assert_eq!((own_pid(child.id()), user_of(child.id())), (Some(child.id()), Some(getuid().as_raw())));
        assert_eq!(standing(Peer { pid: Some(child.id()), uid: uid + 1 }), Standing::Guest);
        assert_eq!(standing(Peer { pid: None, uid }), Standing::Kin);
        assert_eq!(standing(Peer { pid: None, uid: 0 }), Standing::Kin);
        assert_eq!(standing(Peer { pid: None, uid: uid + 1 }), Standing::Guest);
        drop(child.stdin.take());
        child.wait().unwrap();
    }
}
