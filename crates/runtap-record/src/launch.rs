//! A command that is started to be recorded: its environment, its input and output, the signals that are passed on
//! to it, and its end.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::future;
use std::io;
use std::path::Path;
use std::process::{ExitStatus, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use tokio::process::{self, Child};
use tokio::signal::unix::{self, SignalKind};

use crate::Error;
use crate::start::PORTS;
use crate::stops::is_ignored;

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
    pid: Option<Pid>,
    signals: Vec<(Signal, Typed, unix::Signal)>,
}

/// Whether a terminal sends the signal to the command itself when its key is typed.
type Typed = bool;

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
        let signals = listen()?;
        let child = command.stdout(stdout).stderr(stderr).spawn();
        let child = child
            .map_err(|error| Error::Command { program: program.to_string_lossy().into_owned(), error })?;
        let pid = child.id().and_then(|pid| Pid::from_raw(i32::try_from(pid).ok()?));
        Ok(Self { child, pid, signals })
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
            let (signal, typed) = tokio::select! {
                status = self.child.wait() => return status,
                signal = next(&mut self.signals) => signal,
            };
            if !(typed && is_in_foreground()) {
                self.send(signal);
            }
        }
    }

    /// Sends it a signal, if it has not ended.
    pub(crate) fn send(&self, signal: Signal) {
        // Its id is its own as long as it was not waited for.
        if let (Some(pid), Some(_)) = (self.pid, self.child.id()) {
            // One that has just ended needs no signal.
            let _ = kill_process(pid, signal);
        }
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
    value.push(port);
    value.push(",suspend,connect");
    value
}

/// Every signal that is sent to a program to tell it something. A hang-up that is ignored stays so.
fn listen() -> io::Result<Vec<(Signal, Typed, unix::Signal)>> {
    let all = [
        (Signal::INT, true),
        (Signal::QUIT, true),
        (Signal::TERM, false),
        (Signal::HUP, false),
        (Signal::USR1, false),
        (Signal::USR2, false),
    ];
    let mut listening = Vec::new();
    for (signal, typed) in all {
        let kind = SignalKind::from_raw(signal.as_raw());
        if signal == Signal::HUP && is_ignored(kind) {
            continue;
        }
        listening.push((signal, typed, unix::signal(kind)?));
    }
    Ok(listening)
}

async fn next(signals: &mut [(Signal, Typed, unix::Signal)]) -> (Signal, Typed) {
    future::poll_fn(|cx| {
        for (signal, typed, stream) in signals.iter_mut() {
            if stream.poll_recv(cx).is_ready() {
                return std::task::Poll::Ready((*signal, *typed));
            }
        }
        std::task::Poll::Pending
    })
    .await
}

/// Whether we are in the foreground of a terminal: what is typed there reaches the command too.
fn is_in_foreground() -> bool {
    let Ok(terminal) = File::open("/dev/tty") else { return false };
    rustix::termios::tcgetpgrp(&terminal).is_ok_and(|group| group == rustix::process::getpgrp())
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
