//! A command in a job object, which ends all that it has started, also when we end without a word. No process has to watch
//! over it.

use std::ffi::OsString;
use std::io;
use std::os::windows::process::CommandExt as _;
use std::process::{self, ExitStatus, Stdio};

use runtap_os::windows::console::interrupt;
use runtap_os::windows::job::Job;
use tokio::signal::windows::{ctrl_break, ctrl_c, ctrl_close};

/// `CREATE_NEW_PROCESS_GROUP`: Ctrl-C at the console reaches only us.
const NEW_GROUP: u32 = 0x0000_0200;

/// What is going to be started.
pub(super) struct Command(process::Command);

/// All that the command has started.
#[derive(Debug)]
pub(super) struct Group {
    job: Job,
    pid: u32,
}

/// The command itself.
pub(super) struct Process(process::Child);

impl Command {
    pub(super) fn new(_keeper: &[OsString], words: &[OsString]) -> io::Result<Self> {
        let [program, arguments @ ..] = words else { return Err(io::ErrorKind::InvalidInput.into()) };
        let mut command = process::Command::new(program);
        command.args(arguments).stdin(Stdio::null()).creation_flags(NEW_GROUP);
        Ok(Self(command))
    }

    pub(super) fn settings(&mut self) -> &mut process::Command {
        &mut self.0
    }

    /// Starts it in a job.
    pub(super) fn start(mut self) -> io::Result<(Group, Process)> {
        let job = Job::new()?;
        let mut process = self.0.spawn()?;
        if let Err(error) = job.take_in(&process) {
            // One that has ended already is in no job, and its end is all there is to be known.
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
    /// Nobody else has the id of the process until then.
    pub(super) fn reap(&self, process: Process, status: io::Result<ExitStatus>) -> io::Result<ExitStatus> {
        // What it has left behind.
        self.end();
        drop(process);
        status
    }

    /// Asks all of it to end.
    pub(super) fn ask(&self) {
        // Without a console there is nobody to ask.
        let _ = interrupt(self.pid);
    }

    /// Ends all of it.
    pub(super) fn end(&self) {
        // It may have ended.
        let _ = self.job.end();
    }
}

/// Listens from now on; ready when somebody asks us to end.
pub(super) fn asked_to_end() -> io::Result<impl Future<Output = ()> + Send> {
    let (mut interrupt, mut stop, mut close) = (ctrl_c()?, ctrl_break()?, ctrl_close()?);
    Ok(async move {
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = stop.recv() => {}
            _ = close.recv() => {}
        }
    })
}
