//! The slowest calls.
//!
//! Owns: [`Slow`], a log of bounded length: when it is full, the shortest call leaves it.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// A call of the log. Ordered by what it took.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Call {
    pub(crate) took: u64,
    pub(crate) entered: i64,
    pub(crate) thread: usize,
    pub(crate) method: u32,
    pub(crate) node: u32,
}

#[derive(Debug)]
pub(crate) struct Slow {
    calls: BinaryHeap<Reverse<Call>>,
    room: usize,
    threshold: u64,
}

impl Slow {
    /// A log of at most `room` calls that took `threshold` units of the clock at least.
    pub(crate) fn new(room: usize, threshold: u64) -> Self {
        let threshold = if room == 0 { u64::MAX } else { threshold.max(1) };
        Self { calls: BinaryHeap::new(), room, threshold }
    }

    /// What a call has to take to get in.
    #[inline]
    pub(crate) fn threshold(&self) -> u64 {
        self.threshold
    }

    #[cold]
    pub(crate) fn add(&mut self, took: u64, entered: i64, thread: usize, method: u32, node: u32) {
        if self.room == 0 {
            return;
        }
        self.calls.push(Reverse(Call { took, entered, thread, method, node }));
        if self.calls.len() > self.room {
            self.calls.pop();
        }
        if self.calls.len() == self.room
            && let Some(Reverse(shortest)) = self.calls.peek()
        {
            // Of equals the first stay.
            self.threshold = self.threshold.max(shortest.took.saturating_add(1));
        }
    }

    /// The longest first.
    pub(crate) fn calls(&self) -> Vec<Call> {
        let mut calls: Vec<Call> = self.calls.iter().map(|Reverse(call)| *call).collect();
        calls.sort_by_key(|call| (Reverse(call.took), call.entered));
        calls
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_stay() {
        let mut slow = Slow::new(3, 5);
        let mut kept = 0;
        for took in [5, 9, 4, 7, 6, 8, 9, 1] {
            if took >= slow.threshold() {
                slow.add(took, 0, 0, 0, 0);
                kept += 1;
            }
        }
        assert_eq!(slow.calls().iter().map(|call| call.took).collect::<Vec<_>>(), [9, 9, 8]);
        assert_eq!(kept, 6);
        assert_eq!(Slow::new(0, 0).threshold(), u64::MAX);
    }
}
