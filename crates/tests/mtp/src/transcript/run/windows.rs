//! Arguments as text, and exit codes. Console input reaches the application as well, so no signals are sent.

use std::ffi::{OsStr, OsString};
use std::io;
use std::process::{Child, ExitStatus};

/// The counterpart of sending signals on Unix, which does nothing.
#[derive(Debug, Clone, Default)]
pub struct Signals(());

impl Signals {
    /// Does nothing.
    pub fn send(&self, _signal: i32) {}
}

/// Waits for the application to exit.
pub(super) fn wait(child: &mut Child, _signals: &Signals) -> io::Result<ExitStatus> {
    child.wait()
}

/// Returns the exit code.
pub(super) fn number(status: ExitStatus) -> Option<i64> {
    status.code().map(i64::from)
}

/// Returns a word without its first `length` bytes, which are ASCII.
pub(super) fn without_prefix(word: &OsStr, length: usize) -> OsString {
    word.to_string_lossy().get(length..).unwrap_or_default().into()
}

/// Returns the first `length` bytes of a word, which are ASCII.
pub(super) fn prefix(word: &OsStr, length: usize) -> OsString {
    word.to_string_lossy().get(..length).unwrap_or_default().into()
}
