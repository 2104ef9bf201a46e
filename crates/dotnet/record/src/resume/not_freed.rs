//! What waits for tools that are gone, where nothing shows for what a process waits.

use std::ffi::OsString;
use std::time::Duration;

use runtap_discover::Process;

use super::{ResumeError, Resumption};

/// The command over its own port was all that can be done.
#[allow(clippy::unused_async, reason = "the same as on Linux")]
pub(super) async fn free(
    _process: &Process,
    _limit: Duration,
    _guard: Option<&[OsString]>,
    _tell: &(impl Fn(Resumption<'_>) + Clone + Send + Sync + 'static),
) -> Result<(), ResumeError> {
    Ok(())
}
