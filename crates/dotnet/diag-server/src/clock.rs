//! The clock of time stamps. It is read for every event, and that is a third of what an event costs: on Unix, directly.

/// The clock begins here, so that times before a session are possible.
const START: u64 = 1_000_000_000;

/// A clock that never goes back.
#[derive(Debug)]
pub(crate) struct Clock {
    epoch: source::Time,
}

impl Clock {
    pub(crate) fn new() -> Self {
        Self { epoch: source::now() }
    }

    /// Nanoseconds since a second before the clock was made.
    #[inline]
    pub(crate) fn now(&self) -> u64 {
        START.saturating_add(source::since(self.epoch))
    }
}

#[cfg(unix)]
mod source {
    use rustix::time::{ClockId, clock_gettime};

    /// Nanoseconds since the machine was started, or some other moment.
    pub(super) type Time = u64;

    #[inline]
    pub(super) fn now() -> Time {
        let time = clock_gettime(ClockId::Monotonic);
        // Neither is negative for this clock.
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
