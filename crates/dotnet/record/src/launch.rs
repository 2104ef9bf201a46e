//! Launches a command to be recorded: its environment, its input and output, signals that are forwarded to it, and its exit.

#[cfg_attr(unix, path = "launch/unix.rs")]
#[cfg_attr(windows, path = "launch/windows.rs")]
mod system;

use std::ffi::{OsStr, OsString};
use std::io;
use std::path::Path;
use std::process::{ExitStatus, Stdio};

use runtap_transport::naming::{PORTS, port_address};
use tokio::process::{self, Child};

use self::system::Signals;
use crate::Error;

/// The older name of the variable, which runtimes read if the newer one is not set.
const OLD_PORTS: &str = "COMPlus_DiagnosticPorts";

/// The standard output and error of a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Io {
    /// The output is discarded.
    Hidden,
    /// The output is inherited.
    Shown,
    /// Standard output is used for a result, so the command's standard output is redirected to standard error.
    ShownOnStderr,
}

/// A command to launch.
#[derive(Debug, Clone)]
pub struct Command {
    /// The program and its arguments.
    pub words: Vec<OsString>,
    /// Its standard output and error.
    pub io: Io,
    /// Whether to terminate it when the recording ends.
    pub kill: bool,
}

/// The previous value of a variable. `None` if it was not set.
#[derive(Debug, Clone)]
pub(crate) struct Restore {
    pub(crate) value: Option<String>,
}

/// A launched command.
#[derive(Debug)]
pub struct Launched {
    child: Child,
    signals: Signals,
}

impl Launched {
    /// Starts the command with `port` added to its ports.
    pub(crate) fn start(command: &Command, port: &Path) -> Result<Self, Error> {
        Self::start_with(command, [(PORTS, ports(port, existing().as_deref()))])
    }

    /// Starts a command with additional variables.
    ///
    /// # Errors
    /// Returns an error if the program does not exist or can't be started.
    pub fn start_with<'a>(
        command: &Command,
        variables: impl IntoIterator<Item = (&'a str, OsString)>,
    ) -> Result<Self, Error> {
        let Command { words, io, .. } = command;
        let [program, arguments @ ..] = &words[..] else { return Err(Error::NoCommand) };
        let mut command = process::Command::new(program);
        command.args(arguments).envs(variables);
        let (stdout, stderr) = match io {
            Io::Hidden => (Stdio::null(), Stdio::null()),
            Io::Shown => (Stdio::inherit(), Stdio::inherit()),
            Io::ShownOnStderr => (io::stderr().into(), Stdio::inherit()),
        };
        // Listen before the start, so that no signal is lost.
        let signals = Signals::listen()?;
        let child = command.stdout(stdout).stderr(stderr).spawn();
        let child = child
            .map_err(|error| Error::Command { program: program.to_string_lossy().into_owned(), error })?;
        Ok(Self { child, signals })
    }

    /// Returns the process id while the command runs.
    pub fn pid(&self) -> Option<u32> {
        self.child.id()
    }

    /// Waits until the command exits, and forwards signals meanwhile. Cancel safe.
    ///
    /// # Errors
    /// Returns an error if the exit status can't be read.
    pub async fn ended(&mut self) -> io::Result<ExitStatus> {
        loop {
            let signal = tokio::select! {
                status = self.child.wait() => return status,
                signal = self.signals.next() => signal,
            };
            signal.pass_on(&self.child);
        }
    }

    /// Requests the command to exit, if it has not exited.
    pub(crate) fn end(&mut self) {
        system::end(&mut self.child);
    }

    /// Kills the command, if it has not exited.
    pub(crate) fn kill(&mut self) {
        // A command that has just exited needs no signal.
        let _ = self.child.start_kill();
    }
}

/// Returns the value of the variable for ports that must be restored. `None` if it can't be sent.
pub(crate) fn restore() -> Option<Restore> {
    match std::env::var(PORTS) {
        Ok(value) => Some(Restore { value: Some(value) }),
        Err(std::env::VarError::NotPresent) => Some(Restore { value: None }),
        // The protocol requires Unicode.
        Err(std::env::VarError::NotUnicode(_)) => None,
    }
}

fn existing() -> Option<OsString> {
    std::env::var_os(PORTS).or_else(|| std::env::var_os(OLD_PORTS)).filter(|value| !value.is_empty())
}

/// Appends the port to the existing ports.
fn ports(port: &Path, existing: Option<&OsStr>) -> OsString {
    let mut value = existing.map_or_else(OsString::new, |existing| {
        let mut value = existing.to_owned();
        value.push(";");
        value
    });
    value.push(port_address(port));
    value.push(",suspend,connect");
    value
}

#[cfg(test)]
mod tests {
    use runtap_diag::diagnostic_ports;

    use super::*;

    #[test]
    fn existing_ports_are_kept() {
        let port = Path::new("/tmp/p");
        assert_eq!(ports(port, None), "/tmp/p,suspend,connect");
        let both = ports(port, Some(OsStr::new("/a,nosuspend")));
        assert_eq!(both, "/a,nosuspend;/tmp/p,suspend,connect");
        let parsed: Vec<_> = diagnostic_ports::parse(both.as_encoded_bytes()).collect();
        let (address, waits) = parsed.last().map(|port| (port.address, port.is_waited_for())).unwrap();
        assert_eq!((parsed.len(), address, waits), (2, &b"/tmp/p"[..], true));
    }
}
