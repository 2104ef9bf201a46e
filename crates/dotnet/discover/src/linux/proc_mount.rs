//! Whether the `/proc` that we see is one in which we can find anything: that of our pid namespace, and with the processes
//! of others in it. A program that was sent into the mounts of a container alone has that container's `/proc`.
//! Source: `proc(5)` (hidepid), `pid_namespaces(7)`.

use std::path::Path;

use runtap_transport::linux::ProcDir;
use rustix::io::Errno;
use rustix::process::{Pid, test_kill_process};
use thiserror::Error;

use super::System;

/// What is wrong with the `/proc` that we see.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ProcTrouble {
    /// There is none.
    #[error("no /proc is mounted here, and without it no process can be found")]
    NotMounted,
    /// It is that of a namespace that we are not in.
    #[error(
        "the /proc here is that of another pid namespace, which this program is not in: no process can be found"
    )]
    Foreign,
    /// It is that of a namespace around ours.
    #[error(
        "the /proc here is that of a pid namespace around ours: processes have the numbers that they have there"
    )]
    Outer,
}

impl ProcTrouble {
    /// Whether there is no use in going on.
    pub fn is_fatal(self) -> bool {
        self != Self::Outer
    }

    /// What to do about it.
    pub fn fix(self) -> &'static str {
        match self {
            Self::NotMounted => "mount it: mount -t proc proc /proc",
            Self::Foreign => {
                "enter the pid namespace too (nsenter --target PID --mount --pid), or look from outside: that needs no nsenter"
            }
            Self::Outer => "mount one for this namespace: unshare --mount-proc",
        }
    }
}

impl System {
    /// What is wrong with the `/proc` of the running system, if anything is.
    pub fn proc_trouble(&self) -> Option<ProcTrouble> {
        match std::fs::read_link(self.proc_root.join("self")) {
            Ok(me) if me == Path::new(&std::process::id().to_string()) => None,
            Ok(_) => Some(ProcTrouble::Outer),
            Err(_) if self.proc_root.join("version").exists() => Some(ProcTrouble::Foreign),
            Err(_) => Some(ProcTrouble::NotMounted),
        }
    }

    /// Whether a process of another user is there that `/proc` does not show us (`hidepid`).
    pub(super) fn is_hidden(&self, pid: u32) -> bool {
        let ours = self.proc_root == Path::new("/proc");
        let pid_to_ask = i32::try_from(pid).ok().and_then(Pid::from_raw);
        // Whoever may not be sent a signal exists.
        ours && pid_to_ask.is_some_and(|pid| test_kill_process(pid) == Err(Errno::PERM))
            && ProcDir::open(&self.proc_root, pid).ok().and_then(|dir| dir.status()).is_none()
    }

    /// What a list of processes lacks here, for people.
    pub fn blind_spot(&self) -> Option<String> {
        let text = "/proc shows us no process of other users (hidepid): root sees them";
        self.hides_others().then(|| text.to_owned())
    }

    /// Whether `/proc` shows us no process of other users.
    pub fn hides_others(&self) -> bool {
        // There is always one of this number, and it is seldom ours.
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
