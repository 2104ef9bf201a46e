//! The typical interval between two ticks of a thread.
//!
//! The runtime samples about once per millisecond, but a suspended machine or a long garbage collection causes gaps of
//! seconds, which do not affect the median.

/// Collects intervals between ticks for computing their median.
#[derive(Debug, Clone, Default)]
pub(crate) struct Period {
    intervals: Vec<u64>,
}

/// Maximum number of stored intervals: two seconds of 30 threads at 1 kHz. The period does not change during a session.
const MAX_INTERVALS: usize = 1 << 16;

/// The runtime's default period, for recordings in which no thread has two ticks.
pub(crate) const DEFAULT_NS: u64 = 1_000_000;

impl Period {
    #[inline]
    pub(crate) fn record(&mut self, interval_ns: u64) {
        // Ticks with equal times are duplicates.
        if interval_ns > 0 && self.intervals.len() < MAX_INTERVALS {
            self.intervals.push(interval_ns);
        }
    }

    /// Returns the number of stored intervals.
    pub(crate) fn len(&self) -> usize {
        self.intervals.len()
    }

    /// Returns whether the maximum number of intervals is stored.
    pub(crate) fn is_full(&self) -> bool {
        self.intervals.len() >= MAX_INTERVALS
    }

    /// Returns the stored intervals.
    pub(crate) fn intervals(&self) -> &[u64] {
        &self.intervals
    }

    /// Returns the median in nanoseconds, or the runtime's default of 1 ms if no thread has two ticks.
    pub(crate) fn median(self) -> u64 {
        self.known_median().unwrap_or(DEFAULT_NS)
    }

    /// Returns the median. `None` if no thread has two ticks.
    pub(crate) fn known_median(mut self) -> Option<u64> {
        let middle = self.intervals.len() / 2;
        (!self.intervals.is_empty()).then(|| *self.intervals.select_nth_unstable(middle).1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_ignores_gaps_and_doubles() {
        let mut period = Period::default();
        for interval in [0, 0, 0, 0, 990, 1000, 1010, 5_000_000, 1000] {
            period.record(interval);
        }
        assert_eq!(period.median(), 1000);
        assert_eq!(Period::default().median(), 1_000_000);
    }
}
