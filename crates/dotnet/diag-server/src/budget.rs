//! The memory limit of a session's events: threads reserve memory in portions, and the reader's task releases it.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Instant;

/// The largest portion that a thread reserves in advance.
const PORTION: usize = 32 << 10;
/// The reader's task is woken early after this many reserved bytes.
const WAKE_EVERY: usize = 1 << 20;

/// The memory of one session.
#[derive(Debug)]
pub(crate) struct MemoryBudget {
    limit: usize,
    taken: AtomicUsize,
    /// The number of releases, which waiting threads check.
    given_back: Mutex<u64>,
    changed: Condvar,
}

/// A reservation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Reservation {
    pub bytes: usize,
    /// Whether the reader's task should empty the buffers.
    pub wake: bool,
}

impl MemoryBudget {
    pub(crate) fn new(limit: usize) -> Self {
        Self { limit, taken: AtomicUsize::new(0), given_back: Mutex::default(), changed: Condvar::new() }
    }

    /// Reserves at least `least` bytes, and a portion if that much is available. `None` if there is not enough.
    pub(crate) fn take(&self, least: usize) -> Option<Reservation> {
        // Limit portions, so that dozens of threads with one each do not fill a small buffer.
        let portion = PORTION.min(self.limit / 64).max(least);
        let mut before = self.taken.load(Ordering::Relaxed);
        loop {
            let left = self.limit.saturating_sub(before);
            if left < least {
                return None;
            }
            let bytes = portion.min(left);
            let after = before + bytes;
            match self.taken.compare_exchange_weak(before, after, Ordering::Relaxed, Ordering::Relaxed) {
                Ok(_) => {
                    let step = WAKE_EVERY.min(self.limit / 4).max(1);
                    return Some(Reservation { bytes, wake: before / step != after / step });
                }
                Err(changed) => before = changed,
            }
        }
    }

    pub(crate) fn give_back(&self, bytes: usize) {
        if bytes == 0 {
            return;
        }
        self.taken.fetch_sub(bytes, Ordering::Relaxed);
        *self.given_back.lock().unwrap_or_else(PoisonError::into_inner) += 1;
        self.changed.notify_all();
    }

    /// Wakes all waiting threads, so that they check their condition again.
    pub(crate) fn wake_all(&self) {
        *self.given_back.lock().unwrap_or_else(PoisonError::into_inner) += 1;
        self.changed.notify_all();
    }

    /// Returns the version for [`wait`](Self::wait), to be read before the last attempt.
    pub(crate) fn version(&self) -> u64 {
        *self.given_back.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until memory was released since `version`. `false` if `deadline` has passed.
    pub(crate) fn wait(&self, version: u64, deadline: Instant) -> bool {
        let mut given_back = self.given_back.lock().unwrap_or_else(PoisonError::into_inner);
        while *given_back == version {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return false;
            }
            given_back =
                self.changed.wait_timeout(given_back, left).unwrap_or_else(PoisonError::into_inner).0;
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limit_holds_and_what_is_given_back_can_be_taken_again() {
        let room = MemoryBudget::new(1000);
        assert_eq!(room.take(1001), None);
        assert_eq!(room.take(900), Some(Reservation { bytes: 900, wake: true }));
        assert_eq!(room.take(1).map(|taken| taken.bytes), Some(15), "a portion of a small buffer is small");
        assert_eq!(room.take(86), None);
        assert_eq!(room.take(85).map(|taken| taken.bytes), Some(85));
        assert_eq!(room.take(1), None);
        room.give_back(900);
        assert_eq!(room.take(500).map(|taken| taken.bytes), Some(500));
    }

    #[test]
    fn waiting_threads_are_woken_by_a_release() {
        let room = MemoryBudget::new(10);
        room.take(10).unwrap();
        let version = room.version();
        assert!(!room.wait(version, Instant::now()), "nothing was released");
        let far = Instant::now() + std::time::Duration::from_mins(5);
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| room.wait(version, far));
            room.give_back(5);
            assert!(waiting.join().unwrap());
        });
        assert!(room.wait(version, far), "before it waited");
    }
}
