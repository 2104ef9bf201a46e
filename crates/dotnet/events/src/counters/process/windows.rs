//! The processor time of this process on Windows.

use std::time::Duration;

/// Returns the processor time of all threads so far, including kernel time.
pub(super) fn processor_time() -> Duration {
    runtap_os::windows::process::processor_time(std::process::id()).unwrap_or_default()
}
