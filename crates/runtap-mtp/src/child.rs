//! A program as a child of ours: in a process group of its own, so that Ctrl-C on a terminal reaches only us; killed with
//! everything that it has started.

use std::io;
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::process::{Child, ChildStderr, ChildStdout, Command, Stdio};
use std::thread::{self, JoinHandle};

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};

use crate::tree;

/// How a program ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// With a code.
    Code(i32),
    /// By a signal.
    Signal(i32),
}

impl Exit {
    /// As shells count: 128 more than the number of a signal.
    pub fn code(self) -> i32 {
        match self {
            Self::Code(code) => code,
            Self::Signal(signal) => 128 + signal,
        }
    }
}

/// A running program. Its process id stays its own until [`reap`](Self::reap).
#[derive(Debug)]
pub(crate) struct Running {
    child: Child,
    pid: Pid,
    /// The variable that all processes of the program have inherited.
    mark: String,
}

impl Running {
    /// Starts it with nothing to read.
    ///
    /// `mark` is `NAME=VALUE` of a variable of the command by which its descendants are known.
    pub(crate) fn start(command: &mut Command, mark: String) -> io::Result<Self> {
        let command = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let child = command.process_group(0).spawn()?;
        let pid = Pid::from_child(&child);
        Ok(Self { child, pid, mark })
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Its output, once.
    pub(crate) fn outputs(&mut self) -> (Option<ChildStdout>, Option<ChildStderr>) {
        (self.child.stdout.take(), self.child.stderr.take())
    }

    /// Calls `ended` on a thread as soon as the program has ended. It is not reaped: signals can still be sent.
    pub(crate) fn on_end(&self, ended: impl FnOnce() + Send + 'static) -> io::Result<JoinHandle<()>> {
        let pid = self.pid;
        thread::Builder::new().name("mtp-wait".into()).spawn(move || {
            let how = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
            while matches!(waitid(WaitId::Pid(pid), how), Err(rustix::io::Errno::INTR)) {}
            ended();
        })
    }

    /// Asks its process group to end.
    pub(crate) fn interrupt(&self) {
        // It may have ended: then there is nobody to ask.
        let _ = kill_process_group(self.pid, Signal::INT);
    }

    /// Kills the program and everything that it has started. Returns how many processes were left beside its group.
    pub(crate) fn kill(&self) -> usize {
        let _ = kill_process_group(self.pid, Signal::KILL);
        tree::kill_marked(&self.mark)
    }

    /// Takes note of its end.
    pub(crate) fn reap(&mut self) -> io::Result<Exit> {
        let status = self.child.wait()?;
        Ok(match (status.code(), status.signal()) {
            (Some(code), _) => Exit::Code(code),
            (None, Some(signal)) => Exit::Signal(signal),
            (None, None) => Exit::Code(-1),
        })
    }
}
