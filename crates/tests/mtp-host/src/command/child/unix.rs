//! A command in its own process group, supervised by a [reaper](runtap_os::reaper).

use std::ffi::OsString;
use std::io;
use std::process::{self, ExitStatus};

use runtap_os::reaper::{Control, ProcessReaper, SupervisedCommand};
use rustix::process::Signal;
use tokio::signal::unix::{SignalKind, signal};

/// A command to start.
pub(super) struct Command(ProcessReaper);

/// All processes that the command started.
#[derive(Debug)]
pub(super) struct Group(Control);

/// The reaper process.
pub(super) struct Process(SupervisedCommand);

impl Command {
    pub(super) fn new(reaper: &[OsString], words: &[OsString]) -> io::Result<Self> {
        ProcessReaper::new(reaper, words).map(Self)
    }

    pub(super) fn settings(&mut self) -> &mut process::Command {
        self.0.settings()
    }

    /// Starts the reaper, and waits until the reaper has started the command.
    pub(super) fn start(self) -> io::Result<(Group, Process)> {
        let kept = self.0.start()?;
        Ok((Group(kept.control()?), Process(kept)))
    }
}

impl Process {
    /// Waits until the reaper reports the exit status of the command. The reaper then exits.
    pub(super) fn wait(&mut self) -> io::Result<ExitStatus> {
        self.0.wait()
    }
}

impl Group {
    /// Waits for the exit of the reaper. The id of the group may be reused afterwards.
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

    /// Requests all processes to stop. Must not be called after [`reap`](Self::reap).
    pub(super) fn request_stop(&self) {
        // Before the signal, so that the reaper knows why the command exits.
        self.0.will_end();
        self.0.signal(Signal::TERM);
    }

    /// Makes the reaper terminate all processes.
    pub(super) fn kill(&self) {
        self.0.end();
    }
}

/// Starts listening for signals; the future is ready at the first signal.
pub(super) fn stop_signal() -> io::Result<impl Future<Output = ()> + Send> {
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
