//! A command with a [keeper](runtap_os::reaper) and a process group of its own.

use std::ffi::OsString;
use std::io;
use std::process::{self, ExitStatus};

use runtap_os::reaper::{Control, ProcessReaper, SupervisedCommand};
use rustix::process::Signal;
use tokio::signal::unix::{SignalKind, signal};

/// What is going to be started.
pub(super) struct Command(ProcessReaper);

/// All that the command has started.
#[derive(Debug)]
pub(super) struct Group(Control);

/// The keeper.
pub(super) struct Process(SupervisedCommand);

impl Command {
    pub(super) fn new(keeper: &[OsString], words: &[OsString]) -> io::Result<Self> {
        ProcessReaper::new(keeper, words).map(Self)
    }

    pub(super) fn settings(&mut self) -> &mut process::Command {
        self.0.settings()
    }

    /// Starts the keeper, and waits until that has started the command.
    pub(super) fn start(self) -> io::Result<(Group, Process)> {
        let kept = self.0.start()?;
        Ok((Group(kept.control()?), Process(kept)))
    }
}

impl Process {
    /// Waits until the keeper reports how the command has ended. The keeper ends itself then.
    pub(super) fn wait(&mut self) -> io::Result<ExitStatus> {
        self.0.wait()
    }
}

impl Group {
    /// The id of the group is free after that.
    pub(super) fn reap(
        &self,
        mut process: Process,
        status: io::Result<ExitStatus>,
    ) -> io::Result<ExitStatus> {
        if status.is_err() {
            self.0.signal(Signal::KILL);
        }
        process.0.process().wait().and(status)
    }

    /// Asks all of it to end. Not to be called any more when the keeper was reaped.
    pub(super) fn ask(&self) {
        // Before the signal: the keeper knows then why the command ends.
        self.0.will_end();
        self.0.signal(Signal::TERM);
    }

    /// Has the keeper end all of it.
    pub(super) fn end(&self) {
        self.0.end();
    }
}

/// Listens from now on; ready at the first signal.
pub(super) fn asked_to_end() -> io::Result<impl Future<Output = ()> + Send> {
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    let mut hang_up = signal(SignalKind::hangup())?;
    Ok(async move {
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
            _ = hang_up.recv() => {}
        }
    })
}
