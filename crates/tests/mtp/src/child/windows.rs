//! Job objects: all processes that a program starts belong to its job, and are terminated with it.

use std::ffi::OsString;
use std::io;
use std::os::windows::process::CommandExt as _;
use std::process::{Child, Command, ExitStatus};
use std::time::Duration;

use runtap_os::windows::console::interrupt;
use runtap_os::windows::job::Job;
use runtap_os::windows::process::Running as Process;

use super::Exit;

/// `CREATE_NEW_PROCESS_GROUP`: Ctrl-C at the console reaches only runtap.
const NEW_GROUP: u32 = 0x0000_0200;
const POLL_INTERVAL: Duration = Duration::from_secs(1);

/// A program in its own job, with all processes that it started.
#[derive(Debug)]
pub(super) struct Tree {
    pid: u32,
    job: Job,
}

impl Tree {
    /// Starts the program and adds it to the job immediately. Processes that it starts before are not in the job.
    pub(super) fn start(
        command: &mut Command,
        _mark: String,
        _reaper_arguments: &[OsString],
    ) -> io::Result<(Child, Self)> {
        let job = Job::new()?;
        let mut child = command.creation_flags(NEW_GROUP).spawn()?;
        if let Err(error) = job.take_in(&child) {
            let _ = child.kill();
            return Err(error);
        }
        let pid = child.id();
        Ok((child, Self { pid, job }))
    }

    /// Returns a function that blocks until the program has exited. The open child keeps its id from being reused.
    pub(super) fn waiting(&self) -> io::Result<impl FnOnce() + Send + 'static> {
        let process = Process::open(self.pid)?;
        Ok(move || while matches!(process.ends_within(POLL_INTERVAL), Ok(false)) {})
    }

    pub(super) fn pid(&self) -> u32 {
        self.pid
    }

    /// Does nothing: the job terminates the remaining processes.
    pub(super) fn announce_stop(&self) {}

    pub(super) fn interrupt(&self) {
        // Fails without a console.
        let _ = interrupt(self.pid);
    }

    pub(super) fn kill(&self) -> usize {
        // The processes may have exited already.
        let _ = self.job.end();
        0
    }

    /// Reaps the program and returns its exit status.
    pub(super) fn reap(&self, child: &mut Child) -> io::Result<ExitStatus> {
        child.wait()
    }
}

pub(super) fn exit_of(status: ExitStatus) -> Exit {
    Exit::Code(status.code().unwrap_or(-1))
}
