//! The program's end: it starts a keeper, and hears from it how the command ended.

use std::ffi::{OsStr, OsString};
use std::io::{self, Write as _};
use std::net::Shutdown;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus};

use rustix::process::{Pid, Signal, kill_process_group};

/// A command with a keeper, not started yet.
#[derive(Debug)]
pub struct Keeper {
    command: Command,
    socket: UnixStream,
}

impl Keeper {
    /// The command `words` of a keeper: this program with the `arguments` by which it calls [`keep`](crate::reaper::keep).
    ///
    /// # Errors
    /// There is no socket, or the file of this program is unknown.
    pub fn new(
        arguments: &[OsString],
        words: impl IntoIterator<Item = impl AsRef<OsStr>>,
    ) -> io::Result<Self> {
        let (socket, theirs) = UnixStream::pair()?;
        let mut command = Command::new(own_program()?);
        command.args(arguments).args(words).stdin(OwnedFd::from(theirs)).process_group(0);
        Ok(Self { command, socket })
    }

    /// The environment, the directory and the outputs of the keeper, which the command inherits.
    pub fn settings(&mut self) -> &mut Command {
        &mut self.command
    }

    /// Starts the keeper, and waits until it has started the command.
    ///
    /// # Errors
    /// One of both can't be started.
    pub fn start(mut self) -> io::Result<Kept> {
        let mut process = self.command.spawn()?;
        // It has the other end of the socket, and so had this process until now.
        drop(self.command);
        let started = match told(&mut self.socket) {
            Ok(0) => told(&mut self.socket),
            Ok(errno) => Err(io::Error::from_raw_os_error(errno)),
            Err(error) => Err(error),
        };
        match started {
            Ok(pid) => Ok(Kept { process, socket: self.socket, pid: pid.cast_unsigned() }),
            Err(error) => {
                drop(self.socket);
                process.wait()?;
                Err(error)
            }
        }
    }
}

/// A command that was started.
#[derive(Debug)]
pub struct Kept {
    process: Child,
    socket: UnixStream,
    pid: u32,
}

impl Kept {
    /// The keeper; its outputs are those of the command.
    pub fn process(&mut self) -> &mut Child {
        &mut self.process
    }

    /// The keeper alone.
    pub fn into_process(self) -> Child {
        self.process
    }

    /// The process id of the command.
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// What can be done to the command.
    ///
    /// # Errors
    /// There are too many open files.
    pub fn control(&self) -> io::Result<Control> {
        Ok(Control { socket: self.socket.try_clone()?, group: Pid::from_child(&self.process) })
    }

    /// Waits for the end of the command. The keeper ends after that, and is to be reaped then.
    ///
    /// # Errors
    /// The keeper is gone without a word.
    pub fn wait(&mut self) -> io::Result<ExitStatus> {
        told(&mut self.socket).map(ExitStatus::from_raw)
    }
}

/// What can be done to a command, until its keeper is reaped.
#[derive(Debug)]
pub struct Control {
    socket: UnixStream,
    group: Pid,
}

impl Control {
    /// Tells the keeper that the command will be asked to end. When the command has ended, the keeper ends every process
    /// that the command has started.
    pub fn will_end(&self) {
        // It fails if the keeper is gone.
        let _ = (&self.socket).write_all(&[0]);
    }

    /// Sends a signal to the process group of the command, in which the keeper does not heed those that ask for an end.
    pub fn signal(&self, signal: Signal) {
        let _ = kill_process_group(self.group, signal);
    }

    /// Has the keeper end all of it.
    pub fn end(&self) {
        let _ = self.socket.shutdown(Shutdown::Write);
    }

    /// Waits for the end of the command, as [`Kept::wait`] does.
    ///
    /// # Errors
    /// The keeper is gone without a word.
    pub fn wait(&self) -> io::Result<ExitStatus> {
        told(&mut &self.socket).map(ExitStatus::from_raw)
    }
}

/// The next number that the keeper reports.
fn told(mut socket: impl io::Read) -> io::Result<i32> {
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
