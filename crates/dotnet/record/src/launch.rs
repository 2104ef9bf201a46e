//! A command that is started to be recorded: its environment, its input and output, the signals that are passed on
//! to it, and its end.

#[cfg_attr(unix, path = "launch/unix.rs")]
#[cfg_attr(windows, path = "launch/windows.rs")]
mod system;

use std::ffi::{OsStr, OsString};
use std::io;
use std::path::Path;
use std::process::{ExitStatus, Stdio};

use runtap_transport::naming::port_address;
use tokio::process::{self, Child};

use self::system::Signals;
use crate::Error;
use crate::start::PORTS;

/// The older name of the variable, which runtimes read where the newer one is not set.
const OLD_PORTS: &str = "COMPlus_DiagnosticPorts";

/// What the command's input and output are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Io {
    /// Nobody sees what it writes.
    Hidden,
    /// They are ours.
    Shown,
    /// Stdout carries a result of ours: what the command writes there goes to stderr.
    ShownOnStderr,
}

/// A command to start.
#[derive(Debug, Clone)]
pub struct Command {
    /// Program and arguments.
    pub words: Vec<OsString>,
    /// Where its output goes.
    pub io: Io,
    /// End it when the recording is over.
    pub kill: bool,
}

/// The value that a variable had, or that there was none.
#[derive(Debug, Clone)]
pub(crate) struct Restore {
    pub(crate) value: Option<String>,
}

/// A command that runs.
#[derive(Debug)]
pub struct Launched {
    child: Child,
    signals: Signals,
}

impl Launched {
    /// Starts the command with `port` among its ports.
    pub(crate) fn start(command: &Command, port: &Path) -> Result<Self, Error> {
        Self::start_with(command, [(PORTS, ports(port, existing().as_deref()))])
    }

    /// Starts a command with further variables.
    ///
    /// # Errors
    /// There is no such program, or it can't be started.
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
        // Before it is there: from its first moment every signal is passed on.
        let signals = Signals::listen()?;
        let child = command.stdout(stdout).stderr(stderr).spawn();
        let child = child
            .map_err(|error| Error::Command { program: program.to_string_lossy().into_owned(), error })?;
        Ok(Self { child, signals })
    }

    /// Its process id, while it runs.
    pub fn pid(&self) -> Option<u32> {
        self.child.id()
    }

    /// Waits for its end and passes signals on to it meanwhile. Cancel safe.
    ///
    /// # Errors
    /// It can't be waited for.
    pub async fn ended(&mut self) -> io::Result<ExitStatus> {
        loop {
            let signal = tokio::select! {
                status = self.child.wait() => return status,
                signal = self.signals.next() => signal,
            };
            signal.pass_on(&self.child);
        }
    }

    /// Asks it to end, if it has not ended.
    pub(crate) fn end(&mut self) {
        system::end(&mut self.child);
    }

    /// Ends it, if it has not ended.
    pub(crate) fn kill(&mut self) {
        // One that has just ended needs nothing.
        let _ = self.child.start_kill();
    }
}

/// The value of the variable for ports without us; what has to be put back.
pub(crate) fn restore() -> Option<Restore> {
    match std::env::var(PORTS) {
        Ok(value) => Some(Restore { value: Some(value) }),
        Err(std::env::VarError::NotPresent) => Some(Restore { value: None }),
        // It can't be said in the protocol.
        Err(std::env::VarError::NotUnicode(_)) => None,
    }
}

fn existing() -> Option<OsString> {
    std::env::var_os(PORTS).or_else(|| std::env::var_os(OLD_PORTS)).filter(|value| !value.is_empty())
}

/// The ports that were there, and ours.
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
    fn ports_that_are_there_are_kept() {
        let port = Path::new("/tmp/p");
        assert_eq!(ports(port, None), "/tmp/p,suspend,connect");
        let both = ports(port, Some(OsStr::new("/a,nosuspend")));
        assert_eq!(both, "/a,nosuspend;/tmp/p,suspend,connect");
        let parsed: Vec<_> = diagnostic_ports::parse(both.as_encoded_bytes()).collect();
        let (address, waits) = parsed.last().map(|port| (port.address, port.is_waited_for())).unwrap();
        assert_eq!((parsed.len(), address, waits), (2, &b"/tmp/p"[..], true));
    }
}
