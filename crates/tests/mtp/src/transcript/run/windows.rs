//! Words that are text, and the end of an application. What is typed at a console reaches it too: there is nothing to send.

use std::ffi::{OsStr, OsString};
use std::io;
use std::process::{Child, ExitStatus};

/// Would send signals to the application: there are none.
#[derive(Debug, Clone, Default)]
pub struct Signals(());

impl Signals {
    /// Nothing.
    pub fn send(&self, _signal: i32) {}
}

/// Waits for its end.
pub(super) fn wait(child: &mut Child, _signals: &Signals) -> io::Result<ExitStatus> {
    child.wait()
}

/// How it has ended, in a number.
pub(super) fn number(status: ExitStatus) -> Option<i64> {
    status.code().map(i64::from)
}

/// A word without its beginning, which is ASCII.
pub(super) fn behind(word: &OsStr, length: usize) -> OsString {
    word.to_string_lossy().get(length..).unwrap_or_default().into()
}

/// The beginning of a word, which is ASCII.
pub(super) fn up_to(word: &OsStr, length: usize) -> OsString {
    word.to_string_lossy().get(..length).unwrap_or_default().into()
}
