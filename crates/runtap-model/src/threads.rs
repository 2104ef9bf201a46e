//! How much a trace may hold: how many threads, and as long as there is [`Room`] for them and their samples.

use std::fmt;
use std::sync::Arc;

/// How many threads a trace has at most. Samples of further ones are counted, and left out: each thread takes some hundred bytes, and
/// a stream can tell of a new one in fifteen.
pub const MAX_THREADS: usize = 1 << 18;

/// So many samples are added between two looks at the memory.
const BETWEEN: u32 = 1 << 12;

/// Whether there is room in memory for more, which the caller tells; by default always.
///
/// What is put together of a recording can take several times the memory of what was gathered. So it is not enough to
/// look while a stream is read.
#[derive(Clone, Default)]
pub struct Room {
    is_there: Option<Arc<dyn Fn() -> bool + Send + Sync>>,
    asked: u32,
    is_full: bool,
}

impl Room {
    /// As long as `is_there` says so; it is asked now and then.
    pub fn while_there_is(is_there: impl Fn() -> bool + Send + Sync + 'static) -> Self {
        Self { is_there: Some(Arc::new(is_there)), ..Self::default() }
    }

    /// Whether one more sample has room. Once there is none, there will be none.
    #[inline]
    pub fn has_one(&mut self) -> bool {
        self.asked = self.asked.wrapping_add(1);
        if self.asked % BETWEEN == 1
            && let Some(is_there) = &self.is_there
        {
            self.is_full |= !is_there();
        }
        !self.is_full
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
        assert_eq!(had, BETWEEN as usize);
    }
}
