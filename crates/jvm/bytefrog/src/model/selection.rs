//! Selection of the part of a trace that is counted.
//!
//! Stacks are tracked through the whole trace. A call is counted, with its duration until its end, if it *begins*
//! in the selected part. So the callers of counted calls began in the part too, and no frame is invented at its
//! start.

use runtap_model::order;

/// A part of a trace.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Selection {
    /// The whole trace.
    #[default]
    All,
    /// Calls that begin in one of these half-open ranges of time, in nanoseconds of the agent's clock.
    Times(Vec<(i64, i64)>),
    /// Calls that begin in one of these half-open ranges of sequence IDs, which versions 1 to 4 have: exact where
    /// many events have the same millisecond.
    Sequences(Vec<(u64, u64)>),
}

/// Sorts ranges and removes empty ones; ranges that overlap or touch are merged.
pub fn in_order<T: Ord + Copy>(mut ranges: Vec<(T, T)>) -> Vec<(T, T)> {
    ranges.retain(|(from, until)| from < until);
    order::sort(&mut ranges);
    ranges.dedup_by(|next, kept| {
        let touch = next.0 <= kept.1;
        kept.1 = if touch { kept.1.max(next.1) } else { kept.1 };
        touch
    });
    ranges
}

/// Sorted ranges that do not overlap. If empty, nothing is selected.
#[derive(Debug, Clone)]
pub(crate) struct Ranges<T> {
    first: T,
    /// The end of the last range.
    end: T,
    all: Vec<(T, T)>,
}

impl<T: Ord + Copy + Default> Ranges<T> {
    pub(crate) fn new(ranges: Vec<(T, T)>) -> Self {
        let ranges = in_order(ranges);
        let bounds = ranges.first().zip(ranges.last()).map(|(first, last)| (first.0, last.1));
        let (first, end) = bounds.unwrap_or_default();
        Self { first, end, all: ranges }
    }

    #[inline]
    pub(crate) fn has(&self, at: T) -> bool {
        at >= self.first && at < self.end && (self.all.len() <= 1 || self.search(at))
    }

    #[cold]
    fn search(&self, at: T) -> bool {
        let next = self.all.partition_point(|(from, _)| *from <= at);
        next.checked_sub(1).and_then(|last| self.all.get(last)).is_some_and(|(_, until)| at < *until)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_point_in_one_of_the_ranges_is_in_all(ranges in prop::collection::vec((0..60i64, 0..60i64), 0..8), at in -1..61i64) {
            let expected = ranges.iter().any(|(from, until)| (*from..*until).contains(&at));
            prop_assert_eq!(Ranges::new(ranges).has(at), expected);
        }
    }
}
