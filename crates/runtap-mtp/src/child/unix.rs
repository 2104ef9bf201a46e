//! Process groups and signals.

use std::io;
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::process::{Child, Command, ExitStatus};

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};

use super::Exit;
use crate::tree;

/// A program in a process group of its own, with what it has started.
#[derive(Debug)]
pub(super) struct Tree {
    pid: Pid,
    /// The variable that all processes of the program have inherited.
    mark: String,
}

impl Tree {
    pub(super) fn start(command: &mut Command, mark: String) -> io::Result<(Child, Self)> {
        let child = command.process_group(0).spawn()?;
        let pid = Pid::from_child(&child);
        Ok((child, Self { pid, mark }))
    }

    /// What returns when the program has ended. It is not reaped.
    #[expect(clippy::unnecessary_wraps, reason = "Windows can refuse")]
    pub(super) fn waiting(&self) -> io::Result<impl FnOnce() + Send + 'static> {
        let pid = self.pid;
        Ok(move || {
            let how = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
            while matches!(waitid(WaitId::Pid(pid), how), Err(rustix::io::Errno::INTR)) {}
        })
    }

    pub(super) fn interrupt(&self) {
        // It may have ended: then there is nobody to ask.
        let _ = kill_process_group(self.pid, Signal::INT);
    }

    pub(super) fn kill(&self) -> usize {
        let _ = kill_process_group(self.pid, Signal::KILL);
        tree::kill_marked(&self.mark)
    }
}

pub(super) fn exit_of(status: ExitStatus) -> Exit {
    match (status.code(), status.signal()) {
        (Some(code), _) => Exit::Code(code),
        (None, Some(signal)) => Exit::Signal(signal),
        (None, None) => Exit::Code(-1),
    }
}
