//! Commands and signals on Unix.

use std::fs::File;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;

use rustix::process::{Pid, Signal};
use tokio::process::Child;

use super::Stop;

/// Returns the exit code; for a signal, its negated number.
pub(super) fn number(status: ExitStatus) -> i64 {
    let signal = || status.signal().map(|signal| -i64::from(signal));
    status.code().map(i64::from).or_else(signal).unwrap_or(-1)
}

/// Forwards a signal to the command, unless the terminal has sent it to the command as well.
pub(super) fn pass_on(child: &Child, stop: Stop) {
    let typed = stop.signal == Some(Signal::INT.as_raw()) && is_in_foreground();
    let pid = child.id().and_then(|pid| Pid::from_raw(i32::try_from(pid).ok()?));
    let signal = stop.signal.and_then(Signal::from_named_raw).unwrap_or(Signal::TERM);
    if let (Some(pid), false) = (pid, typed) {
        // The process may have just exited.
        let _ = rustix::process::kill_process(pid, signal);
    }
}

/// Returns whether this process is in the foreground of a terminal, whose signals reach the command too.
pub fn is_in_foreground() -> bool {
    let Ok(terminal) = File::open("/dev/tty") else { return false };
    rustix::termios::tcgetpgrp(&terminal).is_ok_and(|group| group == rustix::process::getpgrp())
}
