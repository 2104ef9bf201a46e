//! The agent's clocks.
//!
//! Owns: reading the clock that `System.nanoTime` reads too, and a word in memory that moves each millisecond, for probes
//! that are content with that.

#![expect(unsafe_code, reason = "the standard library does not give the raw time of the monotonic clock")]

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

/// The ticker's word: nanoseconds. Probes read it by its address.
static TICKS: AtomicU64 = AtomicU64::new(0);

/// Nanoseconds of `CLOCK_MONOTONIC`, which is what `System.nanoTime` is on Linux (`os::javaTimeNanos` of `HotSpot`).
pub(crate) fn now() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the pointer is to a variable of ours.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut time) };
    let part = |value: i64| u64::try_from(value).unwrap_or(0);
    part(time.tv_sec) * 1_000_000_000 + part(time.tv_nsec)
}

/// Nanoseconds since 1970.
pub(crate) fn wall() -> u64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}

/// The address of the ticker's word.
pub(crate) fn ticks_address() -> u64 {
    (&raw const TICKS).addr() as u64
}

/// Sets the ticker's word.
pub(crate) fn set_ticks() {
    TICKS.store(now(), Ordering::Release);
}

/// Moves the ticker's word, until it is told to end.
pub(crate) fn tick(end: &AtomicBool) {
    while !end.load(Ordering::Relaxed) {
        set_ticks();
        std::thread::sleep(Duration::from_millis(1));
    }
}
