//! The clock of time stamps. Reading it is a third of the cost of an event, so on Unix it is read directly.

/// The start value of the clock, so that times before a session can be represented.
const START: u64 = 1_000_000_000;

/// A monotonic clock.
#[derive(Debug)]
pub(crate) struct Clock {
    epoch: source::Time,
}

impl Clock {
    pub(crate) fn new() -> Self {
        Self { epoch: source::now() }
    }

    /// Returns the nanoseconds since one second before the clock was created.
    #[inline]
    pub(crate) fn now(&self) -> u64 {
        START.saturating_add(source::since(self.epoch))
    }
}

#[cfg(unix)]
mod source {
    use rustix::time::{ClockId, clock_gettime};

    /// Nanoseconds since an unspecified moment, such as the start of the system.
    pub(super) type Time = u64;

    #[inline]
    pub(super) fn now() -> Time {
        let time = clock_gettime(ClockId::Monotonic);
        // Neither field is negative for this clock.
        let [seconds, nanoseconds] = [time.tv_sec, time.tv_nsec].map(i64::cast_unsigned);
        seconds.wrapping_mul(1_000_000_000).wrapping_add(nanoseconds)
    }

    #[inline]
    pub(super) fn since(epoch: Time) -> u64 {
        now().saturating_sub(epoch)
    }
}

#[cfg(not(unix))]
mod source {
    use std::time::Instant;

    pub(super) type Time = Instant;

    pub(super) fn now() -> Time {
        Instant::now()
    }

    pub(super) fn since(epoch: Time) -> u64 {
        u64::try_from(epoch.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }
}
