//! The side of the program: starts a reaper process, and receives the command's exit status from it.

use std::ffi::{OsStr, OsString};
use std::io::{self, Write as _};
use std::net::Shutdown;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus};

use rustix::process::{Pid, Signal, kill_process_group};

/// A command that has not been started yet, with its reaper process.
#[derive(Debug)]
pub struct ProcessReaper {
    command: Command,
    socket: UnixStream,
}

impl ProcessReaper {
    /// Creates the command line `words` with a reaper: this program, started with `arguments` that make it call
    /// [`run_reaper`](crate::reaper::run_reaper).
    ///
    /// # Errors
    /// If no socket can be created, or the path of this program is unknown.
    pub fn new(
        arguments: &[OsString],
        words: impl IntoIterator<Item = impl AsRef<OsStr>>,
    ) -> io::Result<Self> {
        let (socket, theirs) = UnixStream::pair()?;
        let mut command = Command::new(own_program()?);
        command.args(arguments).args(words).stdin(OwnedFd::from(theirs)).process_group(0);
        Ok(Self { command, socket })
    }

    /// Returns the command of the reaper, to set the environment, directory and outputs that the started command
    /// inherits.
    pub fn settings(&mut self) -> &mut Command {
        &mut self.command
    }

    /// Starts the reaper and waits until it has started the command.
    ///
    /// # Errors
    /// If the reaper or the command cannot be started.
    pub fn start(mut self) -> io::Result<SupervisedCommand> {
        let mut process = self.command.spawn()?;
        // The command holds the other end of the socket, which only the reaper may have now.
        drop(self.command);
        let started = match read_number(&mut self.socket) {
            Ok(0) => read_number(&mut self.socket),
            Ok(errno) => Err(io::Error::from_raw_os_error(errno)),
            Err(error) => Err(error),
        };
        match started {
            Ok(pid) => Ok(SupervisedCommand { process, socket: self.socket, pid: pid.cast_unsigned() }),
            Err(error) => {
                drop(self.socket);
                process.wait()?;
                Err(error)
            }
        }
    }
}

/// A running command with its reaper.
#[derive(Debug)]
pub struct SupervisedCommand {
    process: Child,
    socket: UnixStream,
    pid: u32,
}

impl SupervisedCommand {
    /// Returns the reaper process, whose outputs are those of the command.
    pub fn process(&mut self) -> &mut Child {
        &mut self.process
    }

    /// Returns the reaper process and drops the connection to it.
    pub fn into_process(self) -> Child {
        self.process
    }

    /// Returns the process id of the command.
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// Returns a handle for signaling, stopping and waiting for the command.
    ///
    /// # Errors
    /// If there are too many open files.
    pub fn control(&self) -> io::Result<Control> {
        Ok(Control { socket: self.socket.try_clone()?, group: Pid::from_child(&self.process) })
    }

    /// Waits for the command to exit. The reaper then exits too and must be waited for.
    ///
    /// # Errors
    /// If the reaper exited without reporting the exit status.
    pub fn wait(&mut self) -> io::Result<ExitStatus> {
        read_number(&mut self.socket).map(ExitStatus::from_raw)
    }
}

/// Controls a command. Must not be used after the reaper was waited for.
#[derive(Debug)]
pub struct Control {
    socket: UnixStream,
    group: Pid,
}

impl Control {
    /// Announces that the command will be asked to stop. When the command has exited, the reaper kills all processes
    /// that the command started.
    pub fn will_end(&self) {
        // Fails if the reaper has exited.
        let _ = (&self.socket).write_all(&[0]);
    }

    /// Sends a signal to the process group of the command. The reaper, which is in that group, ignores termination
    /// signals.
    pub fn signal(&self, signal: Signal) {
        let _ = kill_process_group(self.group, signal);
    }

    /// Makes the reaper kill the command and all processes that it started.
    pub fn end(&self) {
        let _ = self.socket.shutdown(Shutdown::Write);
    }

    /// Waits for the command to exit, like [`SupervisedCommand::wait`].
    ///
    /// # Errors
    /// If the reaper exited without reporting the exit status.
    pub fn wait(&self) -> io::Result<ExitStatus> {
        read_number(&mut &self.socket).map(ExitStatus::from_raw)
    }
}

/// Reads the next number that the reaper reports.
fn read_number(mut socket: impl io::Read) -> io::Result<i32> {
    let mut bytes = [0; 4];
    match socket.read_exact(&mut bytes) {
        Ok(()) => Ok(i32::from_ne_bytes(bytes)),
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
            Err(io::Error::other("the process that supervises the command has exited"))
        }
        Err(error) => Err(error),
    }
}

/// Returns a path of this program that stays valid if its file is replaced.
fn own_program() -> io::Result<PathBuf> {
    if cfg!(target_os = "linux") { Ok("/proc/self/exe".into()) } else { std::env::current_exe() }
}
