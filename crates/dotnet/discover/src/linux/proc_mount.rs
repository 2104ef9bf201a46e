//! Checks whether processes can be found in the mounted `/proc`: it must be that of this process's PID namespace, and show the processes of
//! other users. A program that was started only in the mount namespace of a container sees that container's `/proc`. Source:
//! `proc(5)` (hidepid), `pid_namespaces(7)`.

use std::path::Path;

use runtap_transport::linux::ProcDir;
use rustix::io::Errno;
use rustix::process::{Pid, test_kill_process};
use thiserror::Error;

use super::System;

/// A problem with the mounted `/proc`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ProcTrouble {
    /// No `/proc` is mounted.
    #[error("no /proc is mounted here, so no processes can be found")]
    NotMounted,
    /// `/proc` belongs to a PID namespace that does not contain this process.
    #[error("the /proc here belongs to another PID namespace, so no processes can be found")]
    Foreign,
    /// `/proc` belongs to an outer PID namespace.
    #[error("the /proc here belongs to an outer PID namespace: process ids are those of that namespace")]
    Outer,
}

impl ProcTrouble {
    /// Whether no processes can be found because of it.
    pub fn is_fatal(self) -> bool {
        self != Self::Outer
    }

    /// Returns how to fix it.
    pub fn fix(self) -> &'static str {
        match self {
            Self::NotMounted => "mount it: mount -t proc proc /proc",
            Self::Foreign => {
                "enter the PID namespace too (nsenter --target PID --mount --pid), or run runtap outside, which needs no nsenter"
            }
            Self::Outer => "mount one for this namespace: unshare --mount-proc",
        }
    }
}

impl System {
    /// Returns the problem with the mounted `/proc`, if any.
    pub fn proc_trouble(&self) -> Option<ProcTrouble> {
        match std::fs::read_link(self.proc_root.join("self")) {
            Ok(me) if me == Path::new(&std::process::id().to_string()) => None,
            Ok(_) => Some(ProcTrouble::Outer),
            Err(_) if self.proc_root.join("version").exists() => Some(ProcTrouble::Foreign),
            Err(_) => Some(ProcTrouble::NotMounted),
        }
    }

    /// Whether the process exists and belongs to another user, but `/proc` hides it (`hidepid`).
    pub(super) fn is_hidden(&self, pid: u32) -> bool {
        let ours = self.proc_root == Path::new("/proc");
        let pid_to_ask = i32::try_from(pid).ok().and_then(Pid::from_raw);
        // EPERM shows that the process exists.
        ours && pid_to_ask.is_some_and(|pid| test_kill_process(pid) == Err(Errno::PERM))
            && ProcDir::open(&self.proc_root, pid).ok().and_then(|dir| dir.status()).is_none()
    }

    /// Describes what is missing in a list of processes here.
    pub fn blind_spot(&self) -> Option<String> {
        let text = "/proc hides the processes of other users (hidepid); run as root to list them";
        self.hides_others().then(|| text.to_owned())
    }

    /// Whether `/proc` hides the processes of other users.
    pub fn hides_others(&self) -> bool {
        // Process 1 always exists and rarely belongs to the current user.
        self.is_hidden(1)
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn whose_proc_it_is() {
        let root = tempfile::tempdir().unwrap();
        let proc = root.path().join("proc");
        fs::create_dir(&proc).unwrap();
        let told = || System::at(root.path(), 0).proc_trouble();
        assert_eq!(told(), Some(ProcTrouble::NotMounted));
        fs::write(proc.join("version"), "").unwrap();
        assert_eq!(told(), Some(ProcTrouble::Foreign));
        symlink("4194305", proc.join("self")).unwrap();
        assert_eq!(told(), Some(ProcTrouble::Outer));
        assert_eq!(System::current().proc_trouble(), None);
    }
}
