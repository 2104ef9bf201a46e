//! How much a trace may hold: how many threads, and as long as there is [`Room`] for them and their samples.

use std::fmt;
use std::sync::Arc;

/// How many threads a trace has at most. Samples of further ones are counted, and left out: each thread takes some hundred bytes, and
/// a stream can tell of a new one in fifteen.
pub const MAX_THREADS: usize = 1 << 18;

/// So many samples, or frames, are added between two looks at the memory.
const BETWEEN: u64 = 1 << 12;

/// How many steps a trace may take that do not follow from the size of the stream: a made-up one can have each sample of a deep
/// stack named anew. A step is some nanoseconds; real recordings take less than a hundredth of these.
pub const MAX_STEPS: u64 = 1 << 31;

/// Whether there is room in memory for more, which the caller tells; by default always.
///
/// What is put together of a recording can take several times the memory of what was gathered. So it is not enough to
/// look while a stream is read.
#[derive(Clone)]
pub struct Room {
    is_there: Option<Arc<dyn Fn() -> bool + Send + Sync>>,
    /// How much is added before the next look.
    unasked: u64,
    /// How many steps are left.
    steps: u64,
    is_full: bool,
}

impl Default for Room {
    fn default() -> Self {
        Self { is_there: None, unasked: 0, steps: MAX_STEPS, is_full: false }
    }
}

impl Room {
    /// For fewer steps than [`MAX_STEPS`].
    #[must_use]
    pub fn with_steps(self, steps: u64) -> Self {
        Self { steps, ..self }
    }

    /// As long as `is_there` says so; it is asked now and then.
    pub fn while_there_is(is_there: impl Fn() -> bool + Send + Sync + 'static) -> Self {
        Self { is_there: Some(Arc::new(is_there)), ..Self::default() }
    }

    /// Whether one more sample has room. Once there is none, there will be none.
    #[inline]
    pub fn has_one(&mut self) -> bool {
        self.took(1, 0);
        !self.is_full
    }

    /// Tells how many frames were added, and how many steps it took ([`MAX_STEPS`]).
    #[inline]
    pub fn took(&mut self, frames: u64, steps: u64) {
        self.is_full |= steps > self.steps;
        self.steps = self.steps.saturating_sub(steps);
        if frames < self.unasked {
            self.unasked -= frames;
        } else if frames > 0 {
            self.unasked = BETWEEN;
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
    fn a_room_that_was_full_stays_full() {
        let mut always = Room::default();
        assert!((0..3 * BETWEEN).all(|_| always.has_one()));
        let asked = std::sync::atomic::AtomicU32::new(0);
        let mut room =
            Room::while_there_is(move || asked.fetch_add(1, std::sync::atomic::Ordering::Relaxed) != 1);
        let had = (0..3 * BETWEEN).filter(|_| room.has_one()).count();
        assert_eq!(u64::try_from(had).unwrap(), BETWEEN);
    }

    #[test]
    fn many_frames_at_once_and_many_steps_are_noticed() {
        let mut room = Room::while_there_is(|| false);
        room.took(0, 9);
        assert!(!room.is_full, "nothing was added");
        room.took(BETWEEN, 0);
        assert!(!room.has_one());
        let mut room = Room::default().with_steps(7);
        room.took(0, 7);
        assert!(room.has_one());
        room.took(0, 1);
        assert!(!room.has_one());
    }
}
