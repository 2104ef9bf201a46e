//! Job objects: whatever a program starts is in its job, and ends with that.

use std::ffi::OsString;
use std::io;
use std::os::windows::process::CommandExt as _;
use std::process::{Child, Command, ExitStatus};
use std::time::Duration;

use runtap_os::windows::console::interrupt;
use runtap_os::windows::job::Job;
use runtap_os::windows::process::Running as Process;

use super::Exit;

/// `CREATE_NEW_PROCESS_GROUP`: Ctrl-C at the console reaches only us.
const NEW_GROUP: u32 = 0x0000_0200;
const A_WHILE: Duration = Duration::from_secs(1);

/// A program in a job of its own, with what it has started.
#[derive(Debug)]
pub(super) struct Tree {
    pid: u32,
    job: Job,
}

impl Tree {
    /// What the program starts before it is in the job is not: it is put there at its first moment.
    pub(super) fn start(
        command: &mut Command,
        _mark: String,
        _keeper: &[OsString],
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

    /// What returns when the program has ended. Its id is not another one's by then: the child is open.
    pub(super) fn waiting(&self) -> io::Result<impl FnOnce() + Send + 'static> {
        let process = Process::open(self.pid)?;
        Ok(move || while matches!(process.ends_within(A_WHILE), Ok(false)) {})
    }

    pub(super) fn pid(&self) -> u32 {
        self.pid
    }

    /// The job ends what is left.
    pub(super) fn will_end(&self) {}

    pub(super) fn interrupt(&self) {
        // Without a console there is nobody to ask.
        let _ = interrupt(self.pid);
    }

    pub(super) fn kill(&self) -> usize {
        // It may have ended.
        let _ = self.job.end();
        0
    }

    /// Takes note of the end of the program.
    pub(super) fn reap(&self, child: &mut Child) -> io::Result<ExitStatus> {
        child.wait()
    }
}

pub(super) fn exit_of(status: ExitStatus) -> Exit {
    Exit::Code(status.code().unwrap_or(-1))
}
