//! How much memory a session's events may take: threads take it in portions, the reader's task gives it back.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Instant;

/// The largest portion that a thread takes in advance.
const PORTION: usize = 32 << 10;
/// The reader's task is woken before its time for each so many bytes.
const WAKE_EVERY: usize = 1 << 20;

/// The memory of one session.
#[derive(Debug)]
pub(crate) struct Room {
    limit: usize,
    taken: AtomicUsize,
    /// How often something was given back: what waiting threads look at.
    given_back: Mutex<u64>,
    changed: Condvar,
}

/// What a thread has taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Taken {
    pub bytes: usize,
    /// It is time that the reader's task empties the buffers.
    pub wake: bool,
}

impl Room {
    pub(crate) fn new(limit: usize) -> Self {
        Self { limit, taken: AtomicUsize::new(0), given_back: Mutex::default(), changed: Condvar::new() }
    }

    /// Takes at least `least` bytes, and what makes a portion if there is so much.
    pub(crate) fn take(&self, least: usize) -> Option<Taken> {
        // So that some dozens of threads that have taken a portion each do not fill a small buffer.
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
                    return Some(Taken { bytes, wake: before / step != after / step });
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

    /// Wakes all that wait, for whatever reason they should look again.
    pub(crate) fn wake_all(&self) {
        *self.given_back.lock().unwrap_or_else(PoisonError::into_inner) += 1;
        self.changed.notify_all();
    }

    /// Number for [`wait`](Self::wait), to be asked before the last try.
    pub(crate) fn version(&self) -> u64 {
        *self.given_back.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until something was given back since `version`, or until `deadline`: `false`.
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
        let room = Room::new(1000);
        assert_eq!(room.take(1001), None);
        assert_eq!(room.take(900), Some(Taken { bytes: 900, wake: true }));
        assert_eq!(room.take(1).map(|taken| taken.bytes), Some(15), "a portion of a small buffer is small");
        assert_eq!(room.take(86), None);
        assert_eq!(room.take(85).map(|taken| taken.bytes), Some(85));
        assert_eq!(room.take(1), None);
        room.give_back(900);
        assert_eq!(room.take(500).map(|taken| taken.bytes), Some(500));
    }

    #[test]
    fn who_waits_is_woken_by_what_is_given_back() {
        let room = Room::new(10);
        room.take(10).unwrap();
        let version = room.version();
        assert!(!room.wait(version, Instant::now()), "nobody has given anything back");
        let far = Instant::now() + std::time::Duration::from_mins(5);
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| room.wait(version, far));
            room.give_back(5);
            assert!(waiting.join().unwrap());
        });
        assert!(room.wait(version, far), "before it waited");
    }
}
