//! The agent's clocks.
//!
//! Owns: reading the clock that `System.nanoTime` also reads, and a word in memory that is updated each millisecond, for
//! probes for which that is precise enough.

#![expect(unsafe_code, reason = "the standard library does not expose the raw time of the monotonic clock")]

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

/// The ticker's word, in nanoseconds. Probes read it through its address.
static TICKS: AtomicU64 = AtomicU64::new(0);

/// Returns the nanoseconds of `CLOCK_MONOTONIC`, which `System.nanoTime` uses on Linux (`os::javaTimeNanos` of `HotSpot`).
pub(crate) fn now() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the pointer is to a local variable.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut time) };
    let part = |value: i64| u64::try_from(value).unwrap_or(0);
    part(time.tv_sec) * 1_000_000_000 + part(time.tv_nsec)
}

/// Returns the nanoseconds since 1970.
pub(crate) fn wall() -> u64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}

/// Returns the address of the ticker's word.
pub(crate) fn ticks_address() -> u64 {
    (&raw const TICKS).addr() as u64
}

/// Sets the ticker's word to the current time.
pub(crate) fn set_ticks() {
    TICKS.store(now(), Ordering::Release);
}

/// Updates the ticker's word each millisecond, until `end` is set.
pub(crate) fn tick(end: &AtomicBool) {
    while !end.load(Ordering::Relaxed) {
        set_ticks();
        std::thread::sleep(Duration::from_millis(1));
    }
}
