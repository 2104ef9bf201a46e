//! Arguments as bytes, signals, and exit codes.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::os::unix::process::ExitStatusExt as _;
use std::process::{Child, ExitStatus};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process, waitid};

/// Sends signals to the application while it runs. Clones refer to the same application.
#[derive(Debug, Clone, Default)]
pub struct Signals(Arc<Mutex<ApplicationState>>);

/// The state of the application.
#[derive(Debug)]
enum ApplicationState {
    /// Not started yet; these signals are sent after the start.
    NotStarted(Vec<Signal>),
    Running(Pid),
    Exited,
}

impl Default for ApplicationState {
    fn default() -> Self {
        Self::NotStarted(Vec::new())
    }
}

impl Signals {
    /// Sends a signal: after the start if the application does not run yet, never after its end.
    pub fn send(&self, signal: i32) {
        let Some(signal) = Signal::from_named_raw(signal) else { return };
        match &mut *self.lock() {
            ApplicationState::NotStarted(signals) => signals.push(signal),
            // The process may have exited, but it is not reaped while this lock is held.
            ApplicationState::Running(pid) => drop(kill_process(*pid, signal)),
            ApplicationState::Exited => {}
        }
    }

    fn lock(&self) -> MutexGuard<'_, ApplicationState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Waits for the application to exit.
pub(super) fn wait(child: &mut Child, signals: &Signals) -> io::Result<ExitStatus> {
    let pid = Pid::from_child(child);
    if let ApplicationState::NotStarted(early) =
        std::mem::replace(&mut *signals.lock(), ApplicationState::Running(pid))
    {
        for signal in early {
            // The process may have exited.
            let _ = kill_process(pid, signal);
        }
    }
    let how = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
    while matches!(waitid(WaitId::Pid(pid), how), Err(rustix::io::Errno::INTR)) {}
    // From here on, no signal can reach a new process with the same id.
    let mut application = signals.lock();
    *application = ApplicationState::Exited;
    child.wait()
}

/// Returns the exit code; for a signal, its negated number.
pub(super) fn number(status: ExitStatus) -> Option<i64> {
    status.code().map(i64::from).or_else(|| status.signal().map(|signal| -i64::from(signal)))
}

/// Returns a word without its first `length` bytes.
pub(super) fn without_prefix(word: &OsStr, length: usize) -> OsString {
    OsStr::from_bytes(word.as_bytes().get(length..).unwrap_or_default()).to_owned()
}

/// Returns the first `length` bytes of a word.
pub(super) fn prefix(word: &OsStr, length: usize) -> OsString {
    OsString::from_vec(word.as_bytes().get(..length).unwrap_or_default().to_vec())
}
