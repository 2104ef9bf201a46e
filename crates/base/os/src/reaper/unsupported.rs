//! Placeholder for Windows, where a job object kills the processes that a command started.

use std::ffi::OsString;
use std::io;

/// Fails, because Windows needs no reaper.
///
/// # Errors
/// Always.
pub fn run_reaper(_command_line: &[OsString], _leaves_group: bool) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}
