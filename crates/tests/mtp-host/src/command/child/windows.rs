//! A command in a job object, which terminates all processes that the command started, even when this process is
//! terminated. No reaper process is needed.

use std::ffi::OsString;
use std::io;
use std::os::windows::process::CommandExt as _;
use std::process::{self, ExitStatus, Stdio};

use runtap_os::windows::console::interrupt;
use runtap_os::windows::job::Job;
use tokio::signal::windows::{ctrl_break, ctrl_c, ctrl_close};

/// `CREATE_NEW_PROCESS_GROUP`: Ctrl-C at the console reaches only this process.
const NEW_GROUP: u32 = 0x0000_0200;

/// A command to start.
pub(super) struct Command(process::Command);

/// All processes that the command started.
#[derive(Debug)]
pub(super) struct Group {
    job: Job,
    pid: u32,
}

/// The process of the command.
pub(super) struct Process(process::Child);

impl Command {
    pub(super) fn new(_reaper: &[OsString], words: &[OsString]) -> io::Result<Self> {
        let [program, arguments @ ..] = words else { return Err(io::ErrorKind::InvalidInput.into()) };
        let mut command = process::Command::new(program);
        command.args(arguments).stdin(Stdio::null()).creation_flags(NEW_GROUP);
        Ok(Self(command))
    }

    pub(super) fn settings(&mut self) -> &mut process::Command {
        &mut self.0
    }

    /// Starts the command in a job.
    pub(super) fn start(mut self) -> io::Result<(Group, Process)> {
        let job = Job::new()?;
        let mut process = self.0.spawn()?;
        if let Err(error) = job.take_in(&process) {
            // A process that has already exited cannot be added to a job, and needs none.
            if process.try_wait()?.is_none() {
                process.kill()?;
                return Err(error);
            }
        }
        let pid = process.id();
        Ok((Group { job, pid }, Process(process)))
    }
}

impl Process {
    pub(super) fn wait(&mut self) -> io::Result<ExitStatus> {
        self.0.wait()
    }
}

impl Group {
    /// Terminates the remaining processes. The id of the process is not reused before this.
    pub(super) fn reap(&self, process: Process, status: io::Result<ExitStatus>) -> io::Result<ExitStatus> {
        // Processes that the command left behind.
        self.kill();
        drop(process);
        status
    }

    /// Requests all processes to stop.
    pub(super) fn request_stop(&self) {
        // Fails without a console.
        let _ = interrupt(self.pid);
    }

    /// Terminates all processes.
    pub(super) fn kill(&self) {
        // The processes may have exited already.
        let _ = self.job.end();
    }
}

/// Starts listening for console events; the future is ready when this process is requested to stop.
pub(super) fn stop_signal() -> io::Result<impl Future<Output = ()> + Send> {
    let (mut interrupt, mut stop, mut close) = (ctrl_c()?, ctrl_break()?, ctrl_close()?);
    Ok(async move {
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = stop.recv() => {}
            _ = close.recv() => {}
        }
    })
}
