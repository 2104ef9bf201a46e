//! Limits on the size of a trace: the number of threads, and the memory for samples.

use std::fmt;
use std::sync::Arc;

/// Maximum number of threads in a trace. Samples of further threads are counted and left out: each thread takes some
/// hundred bytes, while a stream can introduce one in fifteen.
pub const MAX_THREADS: usize = 1 << 18;

/// Number of samples or frames added between two checks of the memory.
const CHECK_INTERVAL: u64 = 1 << 12;

/// Maximum number of steps that are not bounded by the size of the stream: a crafted one can require a deep stack to be
/// resolved again for each sample. A step takes some nanoseconds; real recordings take less than a hundredth of the
/// maximum.
pub const MAX_STEPS: u64 = 1 << 31;

/// A memory limit that the caller checks; unlimited by default.
///
/// Processing a recording may take several times the memory of its data, so checking memory while reading the stream is
/// not sufficient.
#[derive(Clone)]
pub struct Room {
    is_there: Option<Arc<dyn Fn() -> bool + Send + Sync>>,
    /// Number of samples or frames until the next check.
    until_check: u64,
    /// Number of remaining steps.
    steps: u64,
    is_full: bool,
}

impl Default for Room {
    fn default() -> Self {
        Self { is_there: None, until_check: 0, steps: MAX_STEPS, is_full: false }
    }
}

impl Room {
    /// Sets the maximum number of steps, instead of [`MAX_STEPS`].
    #[must_use]
    pub fn with_steps(self, steps: u64) -> Self {
        Self { steps, ..self }
    }

    /// Creates a limit that is exhausted when `is_there` returns false. It is called occasionally.
    pub fn while_there_is(is_there: impl Fn() -> bool + Send + Sync + 'static) -> Self {
        Self { is_there: Some(Arc::new(is_there)), ..Self::default() }
    }

    /// Returns whether one more sample may be added. Once false, it stays false.
    #[inline]
    pub fn has_one(&mut self) -> bool {
        self.took(1, 0);
        !self.is_full
    }

    /// Records how many frames were added, and the steps that this took ([`MAX_STEPS`]).
    #[inline]
    pub fn took(&mut self, frames: u64, steps: u64) {
        self.is_full |= steps > self.steps;
        self.steps = self.steps.saturating_sub(steps);
        if frames < self.until_check {
            self.until_check -= frames;
        } else if frames > 0 {
            self.until_check = CHECK_INTERVAL;
            if let Some(is_there) = &self.is_there {
                self.is_full |= !is_there();
            }
        }
    }
}

impl fmt::Debug for Room {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Room").field("is_full", &self.is_full).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_exhausted_limit_stays_exhausted() {
        let mut always = Room::default();
        assert!((0..3 * CHECK_INTERVAL).all(|_| always.has_one()));
        let asked = std::sync::atomic::AtomicU32::new(0);
        let mut room =
            Room::while_there_is(move || asked.fetch_add(1, std::sync::atomic::Ordering::Relaxed) != 1);
        let had = (0..3 * CHECK_INTERVAL).filter(|_| room.has_one()).count();
        assert_eq!(u64::try_from(had).unwrap(), CHECK_INTERVAL);
    }

    #[test]
    fn many_frames_at_once_and_many_steps_are_detected() {
        let mut room = Room::while_there_is(|| false);
        room.took(0, 9);
        assert!(!room.is_full, "nothing was added");
        room.took(CHECK_INTERVAL, 0);
        assert!(!room.has_one());
        let mut room = Room::default().with_steps(7);
        room.took(0, 7);
        assert!(room.has_one());
        room.took(0, 1);
        assert!(!room.has_one());
    }
}
