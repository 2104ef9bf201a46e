//! The processor time of this process, as Windows has it.

use std::time::Duration;

/// What all its threads have used so far, in the kernel too.
pub(super) fn processor_time() -> Duration {
    runtap_os::windows::process::processor_time(std::process::id()).unwrap_or_default()
}
