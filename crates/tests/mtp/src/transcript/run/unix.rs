//! Words that are bytes, signals, and the end of an application.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::os::unix::process::ExitStatusExt as _;
use std::process::{Child, ExitStatus};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process, waitid};

/// Sends signals to the application while it runs. Clones reach the same one.
#[derive(Debug, Clone, Default)]
pub struct Signals(Arc<Mutex<Application>>);

/// How far it is.
#[derive(Debug)]
enum Application {
    /// It gets these when it runs.
    ToCome(Vec<Signal>),
    Runs(Pid),
    Over,
}

impl Default for Application {
    fn default() -> Self {
        Self::ToCome(Vec::new())
    }
}

impl Signals {
    /// Sends it this signal, at its start if it does not run yet; nothing once it has ended.
    pub fn send(&self, signal: i32) {
        let Some(signal) = Signal::from_named_raw(signal) else { return };
        match &mut *self.lock() {
            Application::ToCome(signals) => signals.push(signal),
            // It may have ended, and is not reaped before this lock is free.
            Application::Runs(pid) => drop(kill_process(*pid, signal)),
            Application::Over => {}
        }
    }

    fn lock(&self) -> MutexGuard<'_, Application> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Waits for its end.
pub(super) fn wait(child: &mut Child, signals: &Signals) -> io::Result<ExitStatus> {
    let pid = Pid::from_child(child);
    if let Application::ToCome(early) = std::mem::replace(&mut *signals.lock(), Application::Runs(pid)) {
        for signal in early {
            // As above.
            let _ = kill_process(pid, signal);
        }
    }
    let how = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
    while matches!(waitid(WaitId::Pid(pid), how), Err(rustix::io::Errno::INTR)) {}
    // No signal is sent to whoever has its number next.
    let mut application = signals.lock();
    *application = Application::Over;
    child.wait()
}

/// How it has ended, in a number: that of a signal is negative.
pub(super) fn number(status: ExitStatus) -> Option<i64> {
    status.code().map(i64::from).or_else(|| status.signal().map(|signal| -i64::from(signal)))
}

/// A word without its beginning.
pub(super) fn behind(word: &OsStr, length: usize) -> OsString {
    OsStr::from_bytes(word.as_bytes().get(length..).unwrap_or_default()).to_owned()
}

/// The beginning of a word.
pub(super) fn up_to(word: &OsStr, length: usize) -> OsString {
    OsString::from_vec(word.as_bytes().get(..length).unwrap_or_default().to_vec())
}
