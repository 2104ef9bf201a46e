//! The processor time of this process, from its clock.

use std::time::Duration;

/// Returns the processor time of all threads so far.
pub(super) fn processor_time() -> Duration {
    let used = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    let nanoseconds = u32::try_from(used.tv_nsec).unwrap_or(0);
    Duration::new(u64::try_from(used.tv_sec).unwrap_or(0), nanoseconds)
}
