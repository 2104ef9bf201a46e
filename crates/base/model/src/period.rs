//! The typical distance between two ticks of a thread.
//!
//! The runtime promises one tick in a millisecond and keeps it roughly; a suspended machine or a long collection
//! leaves gaps of seconds. The median is not moved by either.

/// Collects distances between ticks, as many as are needed for a median that holds.
#[derive(Debug, Clone, Default)]
pub(crate) struct Period {
    intervals: Vec<u64>,
}

/// Two seconds of 30 threads at 1 kHz: the period does not change during a session, so more would tell no more.
const ENOUGH: usize = 1 << 16;

/// The runtime's own default, for a recording so short that no thread was seen twice.
pub(crate) const DEFAULT_NS: u64 = 1_000_000;

impl Period {
    #[inline]
    pub(crate) fn record(&mut self, interval_ns: u64) {
        // Two ticks at one time say nothing about the period.
        if interval_ns > 0 && self.intervals.len() < ENOUGH {
            self.intervals.push(interval_ns);
        }
    }

    /// Number of distances that are kept.
    pub(crate) fn len(&self) -> usize {
        self.intervals.len()
    }

    /// Whether more of them would not be kept.
    pub(crate) fn is_full(&self) -> bool {
        self.intervals.len() >= ENOUGH
    }

    /// What is kept.
    pub(crate) fn intervals(&self) -> &[u64] {
        &self.intervals
    }

    /// The median in nanoseconds, or the runtime's default of 1 ms if no thread has been seen twice.
    pub(crate) fn median(self) -> u64 {
        self.known_median().unwrap_or(DEFAULT_NS)
    }

    /// The median, if a thread has been seen twice.
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
