//! The signal that terminated a command; always `None` on Windows, which has only exit codes.

use std::process::ExitStatus;

pub(in crate::cmd) fn signal_of(_status: ExitStatus) -> Option<i32> {
    None
}
