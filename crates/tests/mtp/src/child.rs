//! A child process in its own process group, so that Ctrl-C on a terminal reaches only runtap. It is killed together
//! with all processes that it started.

#[cfg_attr(unix, path = "child/unix.rs")]
#[cfg_attr(windows, path = "child/windows.rs")]
mod system;

use std::ffi::OsString;
use std::io;
use std::process::{Child, ChildStderr, ChildStdout, Command, Stdio};
use std::thread::{self, JoinHandle};

use self::system::{Tree, exit_of};

/// The exit status of a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// The program exited with a code.
    Code(i32),
    /// The program was terminated by a signal.
    Signal(i32),
}

impl Exit {
    /// Returns the exit code as shells report it: 128 plus the signal number after a signal.
    pub fn code(self) -> i32 {
        match self {
            Self::Code(code) => code,
            Self::Signal(signal) => 128 + signal,
        }
    }
}

/// A running program. Its process id is not reused before [`reap`](Self::reap).
#[derive(Debug)]
pub(crate) struct Running {
    child: Child,
    /// The program and all processes that it started.
    tree: Tree,
}

impl Running {
    /// Starts the program with empty standard input.
    ///
    /// `mark` is the environment variable (`NAME=VALUE`) of the command by which its descendants are identified.
    /// `reaper` are the arguments with which this program becomes a reaper; empty for a program without a reaper.
    pub(crate) fn start(command: &mut Command, mark: String, reaper: &[OsString]) -> io::Result<Self> {
        let command = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let (child, tree) = Tree::start(command, mark, reaper)?;
        Ok(Self { child, tree })
    }

    /// Calls `supervise`. If that fails, for example because no thread can be started, kills the program, because it would
    /// never be stopped otherwise.
    pub(crate) fn supervised_by(
        mut self,
        supervise: impl FnOnce(&mut Self) -> io::Result<()>,
    ) -> io::Result<Self> {
        let Err(error) = supervise(&mut self) else { return Ok(self) };
        self.kill();
        // The original error is more important.
        let _ = self.reap();
        Err(error)
    }

    pub(crate) fn pid(&self) -> u32 {
        self.tree.pid()
    }

    /// Returns the output streams. `None` on later calls.
    pub(crate) fn outputs(&mut self) -> (Option<ChildStdout>, Option<ChildStderr>) {
        (self.child.stdout.take(), self.child.stderr.take())
    }

    /// Calls `ended` on a new thread when the program has exited. The program is not reaped then, so signals can still
    /// be sent.
    pub(crate) fn on_end(&self, ended: impl FnOnce() + Send + 'static) -> io::Result<JoinHandle<()>> {
        let wait = self.tree.waiting()?;
        thread::Builder::new().name("mtp-wait".into()).spawn(move || {
            wait();
            ended();
        })
    }

    /// Notifies the reaper, if there is one, that the program will be requested to stop. The reaper then also
    /// terminates all processes that the program started.
    pub(crate) fn announce_stop(&self) {
        self.tree.announce_stop();
    }

    /// Sends an interrupt to the process group.
    pub(crate) fn interrupt(&self) {
        self.tree.interrupt();
    }

    /// Kills the program and all processes that it started. Returns the number of killed processes outside of its
    /// group.
    pub(crate) fn kill(&self) -> usize {
        self.tree.kill()
    }

    /// Reaps the program and returns its exit status.
    pub(crate) fn reap(&mut self) -> io::Result<Exit> {
        Ok(exit_of(self.tree.reap(&mut self.child)?))
    }
}

#[cfg(all(test, unix))]
mod tests {
    use std::time::{Duration, Instant};

    use rustix::process::{Pid, test_kill_process};

    use super::*;

    #[test]
    fn a_process_without_supervision_is_killed() {
        let started = Instant::now();
        let mut sleep = Command::new("sleep");
        let running = Running::start(sleep.arg("60"), "RUNTAP_TEST_MARK=1".to_owned(), &[]).unwrap();
        let pid = Pid::from_raw(running.pid().cast_signed()).unwrap();
        running.supervised_by(|_| Err(io::Error::other("no thread"))).unwrap_err();
        assert!(test_kill_process(pid).is_err(), "the process still exists");
        assert!(started.elapsed() < Duration::from_secs(50));
    }

    #[test]
    fn a_supervised_process_continues() {
        let mut exit = Command::new("sh");
        let running =
            Running::start(exit.args(["-c", "exit 3"]), "RUNTAP_TEST_MARK=1".to_owned(), &[]).unwrap();
        let mut running = running.supervised_by(|_| Ok(())).unwrap();
        assert_eq!(running.reap().unwrap(), Exit::Code(3));
    }
}
