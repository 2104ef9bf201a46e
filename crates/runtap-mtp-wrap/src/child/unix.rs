//! A command with a [keeper](crate::keeper) and a process group of its own.

use std::ffi::OsString;
use std::io::{self, Read as _, Write as _};
use std::net::Shutdown;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::PathBuf;
use std::process::{self, ExitStatus};

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::signal::unix::{SignalKind, signal};

/// What is going to be started.
pub(super) struct Command {
    command: process::Command,
    /// To the keeper.
    socket: UnixStream,
}

/// All that the command has started.
#[derive(Debug)]
pub(super) struct Group {
    socket: UnixStream,
    id: Pid,
}

/// The keeper.
pub(super) struct Process {
    process: process::Child,
    socket: UnixStream,
}

impl Command {
    pub(super) fn new(keeper: &[OsString], words: &[OsString]) -> io::Result<Self> {
        let (socket, theirs) = UnixStream::pair()?;
        let mut command = process::Command::new(own_program()?);
        command.args(keeper).args(words).stdin(OwnedFd::from(theirs)).process_group(0);
        Ok(Self { command, socket })
    }

    pub(super) fn settings(&mut self) -> &mut process::Command {
        &mut self.command
    }

    /// Starts the keeper, and waits until that has started the command.
    pub(super) fn start(mut self) -> io::Result<(Group, Process)> {
        let process = self.command.spawn()?;
        // It has the other end of the socket, and so had we until now.
        drop(self.command);
        let group = Group { socket: self.socket.try_clone()?, id: Pid::from_child(&process) };
        match told(&mut self.socket)? {
            0 => Ok((group, Process { process, socket: self.socket })),
            errno => Err(io::Error::from_raw_os_error(errno)),
        }
    }
}

impl Process {
    /// What the keeper tells: how the command has ended. The keeper ends itself then.
    pub(super) fn wait(&mut self) -> io::Result<ExitStatus> {
        told(&mut self.socket).map(ExitStatus::from_raw)
    }
}

impl Group {
    /// Nobody else has its id until then.
    pub(super) fn reap(
        &self,
        mut process: Process,
        status: io::Result<ExitStatus>,
    ) -> io::Result<ExitStatus> {
        if status.is_err() {
            let _ = kill_process_group(self.id, Signal::KILL);
        }
        process.process.wait().and(status)
    }

    /// Asks all of it to end. Not to be called any more when the keeper was reaped.
    pub(super) fn ask(&self) {
        // First: the keeper knows then why the command ends. It fails if the keeper is gone.
        let _ = (&self.socket).write_all(&[0]);
        let _ = kill_process_group(self.id, Signal::TERM);
    }

    /// Has the keeper end all of it.
    pub(super) fn end(&self) {
        let _ = self.socket.shutdown(Shutdown::Write);
    }
}

/// The next number that the keeper tells.
fn told(socket: &mut UnixStream) -> io::Result<i32> {
    let mut bytes = [0; 4];
    match socket.read_exact(&mut bytes) {
        Ok(()) => Ok(i32::from_ne_bytes(bytes)),
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
            Err(io::Error::other("the process that keeps the command is gone"))
        }
        Err(error) => Err(error),
    }
}

/// Also when the file of the program was replaced meanwhile.
fn own_program() -> io::Result<PathBuf> {
    if cfg!(target_os = "linux") { Ok("/proc/self/exe".into()) } else { std::env::current_exe() }
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
