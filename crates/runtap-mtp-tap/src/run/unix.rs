//! Words that are bytes, signals, and the end of an application.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::os::unix::process::ExitStatusExt as _;
use std::process::{Child, ExitStatus};
use std::sync::{Arc, Mutex, PoisonError};

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process, waitid};

/// Sends signals to the application while it runs. Clones reach the same one.
#[derive(Debug, Clone, Default)]
pub struct Signals(Arc<Mutex<Option<Pid>>>);

impl Signals {
    /// Sends it this signal; nothing if it does not run.
    pub fn send(&self, signal: i32) {
        let running = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let (Some(pid), Some(signal)) = (*running, Signal::from_named_raw(signal)) {
            // It may have ended, and is not reaped before this lock is free.
            let _ = kill_process(pid, signal);
        }
    }
}

/// Waits for its end.
pub(super) fn wait(child: &mut Child, signals: &Signals) -> io::Result<ExitStatus> {
    let pid = Pid::from_child(child);
    let running = || signals.0.lock().unwrap_or_else(PoisonError::into_inner);
    *running() = Some(pid);
    let how = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
    while matches!(waitid(WaitId::Pid(pid), how), Err(rustix::io::Errno::INTR)) {}
    // No signal is sent to whoever has its number next.
    let mut none = running();
    *none = None;
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
