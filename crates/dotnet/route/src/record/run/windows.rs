//! Commands on Windows. A console notifies all of its processes, so nothing needs to be forwarded.

use std::process::ExitStatus;

use tokio::process::Child;

use super::Stop;

/// Returns the exit code.
pub(super) fn number(status: ExitStatus) -> i64 {
    status.code().map_or(-1, i64::from)
}

/// Does nothing: the console has notified the command.
pub(super) fn pass_on(_child: &Child, _stop: Stop) {}

/// Returns `true`: console signals reach the command too.
pub fn is_in_foreground() -> bool {
    true
}
