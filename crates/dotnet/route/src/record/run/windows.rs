//! Commands on Windows. What is typed at a console, all of its processes are told: there is nothing to pass on.

use std::process::ExitStatus;

use tokio::process::Child;

use super::Stop;

/// How a command has ended, in a number.
pub(super) fn number(status: ExitStatus) -> i64 {
    status.code().map_or(-1, i64::from)
}

/// The command has heard it too.
pub(super) fn pass_on(_child: &Child, _stop: Stop) {}

/// Whether what is typed reaches the command too.
pub fn is_in_foreground() -> bool {
    true
}
