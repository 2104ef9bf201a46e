//! The signal that terminated a command.

use std::os::unix::process::ExitStatusExt as _;
use std::process::ExitStatus;

pub(in crate::cmd) fn signal_of(status: ExitStatus) -> Option<i32> {
    status.signal()
}
