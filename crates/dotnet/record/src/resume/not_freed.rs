//! Systems on which the ports that a process waits for can't be determined.

use std::ffi::OsString;
use std::time::Duration;

use runtap_discover::Process;

use super::{ResumeError, Resumption};

/// Does nothing: only the command over the process's own port is possible.
#[allow(clippy::unused_async, reason = "the same as on Linux")]
pub(super) async fn free(
    _process: &Process,
    _limit: Duration,
    _guard: Option<&[OsString]>,
    _tell: &(impl Fn(Resumption<'_>) + Clone + Send + Sync + 'static),
) -> Result<(), ResumeError> {
    Ok(())
}
