//! A program as a child of ours: in a process group of its own, so that Ctrl-C on a terminal reaches only us; killed with
//! everything that it has started.

#[cfg_attr(unix, path = "child/unix.rs")]
#[cfg_attr(windows, path = "child/windows.rs")]
mod system;

use std::ffi::OsString;
use std::io;
use std::process::{Child, ChildStderr, ChildStdout, Command, Stdio};
use std::thread::{self, JoinHandle};

use self::system::{Tree, exit_of};

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
    /// It, and all that it has started.
    tree: Tree,
}

impl Running {
    /// Starts it with nothing to read.
    ///
    /// `mark` is `NAME=VALUE` of a variable of the command by which its descendants are known; `keeper` the arguments of this
    /// program by which it becomes a keeper, none for a program without one.
    pub(crate) fn start(command: &mut Command, mark: String, keeper: &[OsString]) -> io::Result<Self> {
        let command = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let (child, tree) = Tree::start(command, mark, keeper)?;
        Ok(Self { child, tree })
    }

    /// Has it attended to. If that fails, as where no thread can be had, nobody would ever end it: so it is ended now.
    pub(crate) fn attended(mut self, attend: impl FnOnce(&mut Self) -> io::Result<()>) -> io::Result<Self> {
        let Err(error) = attend(&mut self) else { return Ok(self) };
        self.kill();
        // Why it is not attended to is what matters.
        let _ = self.reap();
        Err(error)
    }

    pub(crate) fn pid(&self) -> u32 {
        self.tree.pid()
    }

    /// Its output, once.
    pub(crate) fn outputs(&mut self) -> (Option<ChildStdout>, Option<ChildStderr>) {
        (self.child.stdout.take(), self.child.stderr.take())
    }

    /// Calls `ended` on a thread as soon as the program has ended. It is not reaped: signals can still be sent.
    pub(crate) fn on_end(&self, ended: impl FnOnce() + Send + 'static) -> io::Result<JoinHandle<()>> {
        let wait = self.tree.waiting()?;
        thread::Builder::new().name("mtp-wait".into()).spawn(move || {
            wait();
            ended();
        })
    }

    /// Tells the keeper, if there is one, that the program will be asked to end: the keeper then also ends every process that
    /// the program has started.
    pub(crate) fn will_end(&self) {
        self.tree.will_end();
    }

    /// Asks its process group to end.
    pub(crate) fn interrupt(&self) {
        self.tree.interrupt();
    }

    /// Kills the program and everything that it has started. Returns how many processes were left beside its group.
    pub(crate) fn kill(&self) -> usize {
        self.tree.kill()
    }

    /// Takes note of its end.
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
    fn who_is_not_attended_to_is_ended() {
        let started = Instant::now();
        let mut sleep = Command::new("sleep");
        let running = Running::start(sleep.arg("60"), "RUNTAP_TEST_MARK=1".to_owned(), &[]).unwrap();
        let pid = Pid::from_raw(running.pid().cast_signed()).unwrap();
        running.attended(|_| Err(io::Error::other("no thread"))).unwrap_err();
        assert!(test_kill_process(pid).is_err(), "it is still there");
        assert!(started.elapsed() < Duration::from_secs(50));
    }

    #[test]
    fn who_is_attended_to_goes_on() {
        let mut exit = Command::new("sh");
        let running =
            Running::start(exit.args(["-c", "exit 3"]), "RUNTAP_TEST_MARK=1".to_owned(), &[]).unwrap();
        let mut running = running.attended(|_| Ok(())).unwrap();
        assert_eq!(running.reap().unwrap(), Exit::Code(3));
    }
}
