//! The command that `trace -- COMMAND` starts: its environment, its input and output, the signals that are passed on
//! to it, and its end.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::future;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};

use anyhow::Context;
use runtap_diag::diagnostic_ports::LONGEST_ADDRESS;
use rustix::process::{Pid, Signal, geteuid, kill_process};
use tokio::process::{Child, Command};
use tokio::signal::unix::{self, SignalKind};

use super::job::Restore;
use super::signals::is_ignored;
use super::start::PORTS;

/// The older name of the variable, which runtimes read where the newer one is not set.
const OLD_PORTS: &str = "COMPlus_DiagnosticPorts";

/// What the command's input and output are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Io {
    /// Nobody sees what it writes.
    Hidden,
    Shown,
    /// Stdout carries a result of ours: what the command writes there goes to stderr.
    ShownOnStderr,
}

/// A command that runs.
#[derive(Debug)]
pub(super) struct Launched {
    child: Child,
    pid: Option<Pid>,
    signals: Vec<(Signal, Typed, unix::Signal)>,
}

/// Whether a terminal sends the signal to the command itself when its key is typed.
type Typed = bool;

impl Launched {
    /// Starts the command with `port` among its ports.
    pub(super) fn start(words: &[OsString], port: &Path, io: Io) -> anyhow::Result<Self> {
        let [program, arguments @ ..] = words else { anyhow::bail!("there is no command to start") };
        let mut command = Command::new(program);
        command.args(arguments).env(PORTS, ports(port, existing().as_deref()));
        let (stdout, stderr) = match io {
            Io::Hidden => (Stdio::null(), Stdio::null()),
            Io::Shown => (Stdio::inherit(), Stdio::inherit()),
            Io::ShownOnStderr => (io::stderr().into(), Stdio::inherit()),
        };
        // Before it is there: from its first moment every signal is passed on.
        let signals = listen()?;
        let child = command.stdout(stdout).stderr(stderr).spawn();
        let child = child.with_context(|| format!("can't start {}", program.to_string_lossy()))?;
        let pid = child.id().and_then(|pid| Pid::from_raw(i32::try_from(pid).ok()?));
        Ok(Self { child, pid, signals })
    }

    pub(super) fn pid(&self) -> Option<u32> {
        self.child.id()
    }

    /// Waits for its end and passes signals on to it meanwhile. Cancel safe.
    pub(super) async fn ended(&mut self) -> io::Result<ExitStatus> {
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
    pub(super) fn send(&self, signal: Signal) {
        // Its id is its own as long as it was not waited for.
        if let (Some(pid), Some(_)) = (self.pid, self.child.id()) {
            // One that has just ended needs no signal.
            let _ = kill_process(pid, signal);
        }
    }
}

/// The exit code that is passed on: the command's own, 128 + n for a signal.
pub(super) fn exit_code(status: ExitStatus) -> u8 {
    let code = status.code().or_else(|| status.signal().map(|signal| 128 + signal));
    code.and_then(|code| u8::try_from(code).ok()).unwrap_or(u8::MAX)
}

/// The value of the variable for ports without us; what has to be put back.
pub(super) fn restore() -> Option<Restore> {
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

/// Where ports of ours can be: in the temporary folder, unless its name is too long or has a meaning in the variable.
/// Root's commands run programs as other users too, who would wait for ever at a port that they can't get to: for them
/// a folder that is private comes last.
pub(super) fn port_paths() -> impl Iterator<Item = PathBuf> {
    let mut folders = [std::env::temp_dir(), PathBuf::from("/tmp"), PathBuf::from("/dev/shm")];
    if geteuid().is_root() {
        folders.sort_by_key(|folder| !is_reached_by_all(folder));
    }
    let fits = |path: &PathBuf| {
        let text = path.as_os_str().as_encoded_bytes();
        path.is_absolute() && text.len() <= LONGEST_ADDRESS && !text.iter().any(|b| matches!(b, b';' | b','))
    };
    let names = |folder: PathBuf| {
        (0..10).map(move |n| {
            let number = if n == 0 { String::new() } else { format!("-{n}") };
            folder.join(format!("runtap-{}{number}.socket", std::process::id()))
        })
    };
    folders.into_iter().filter_map(|folder| std::path::absolute(folder).ok()).flat_map(names).filter(fits)
}

/// Whether every user gets to what lies in a folder, as far as its mode and those of the folders above it tell.
fn is_reached_by_all(folder: &Path) -> bool {
    let may_pass =
        |folder: &Path| fs::metadata(folder).is_ok_and(|meta| meta.permissions().mode() & 0o001 != 0);
    fs::canonicalize(folder).is_ok_and(|folder| folder.ancestors().all(may_pass))
}

/// Whether a port is one of [`port_paths`], of us or of a runtap that is gone: nobody else is going to listen there.
pub(in crate::cmd) fn is_port_of_ours(port: &Path) -> bool {
    let name = port.file_name().and_then(OsStr::to_str);
    name.is_some_and(|name| name.starts_with("runtap-") && name.ends_with(".socket"))
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

    #[test]
    fn a_port_has_a_name_that_a_runtime_can_read() {
        let path = port_paths().next().unwrap();
        let text = path.to_str().unwrap();
        assert!(path.is_absolute() && text.len() <= LONGEST_ADDRESS && !text.contains([';', ',']), "{text}");
        assert!(port_paths().count() > 10);
    }

    #[test]
    fn a_private_folder_above_keeps_others_out() {
        let outer = tempfile::tempdir().unwrap();
        let inner = outer.path().join("inner");
        fs::create_dir(&inner).unwrap();
        let modes = |of_outer, of_inner| {
            fs::set_permissions(outer.path(), fs::Permissions::from_mode(of_outer)).unwrap();
            fs::set_permissions(&inner, fs::Permissions::from_mode(of_inner)).unwrap();
            is_reached_by_all(&inner)
        };
        // Whether others get to the temporary folder of this test is not known.
        let above = is_reached_by_all(outer.path().parent().unwrap());
        assert_eq!([modes(0o755, 0o711), modes(0o755, 0o750), modes(0o700, 0o755)], [above, false, false]);
        assert!(!is_reached_by_all(&inner.join("none")));
    }

    #[test]
    fn ports_of_ours_are_known_by_their_names() {
        assert!(port_paths().all(|port| is_port_of_ours(&port)));
        assert!(!is_port_of_ours(Path::new("/diag/port.socket")));
    }

    #[test]
    fn codes_and_signals_are_passed_on() {
        assert_eq!(exit_code(ExitStatus::from_raw(7 << 8)), 7);
        assert_eq!(exit_code(ExitStatus::from_raw(15)), 143);
        assert_eq!(exit_code(ExitStatus::from_raw(0)), 0);
    }
}
