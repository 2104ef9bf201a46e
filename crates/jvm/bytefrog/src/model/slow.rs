//! A log of the slowest calls. When the log is full, a new call replaces the shortest one.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use runtap_model::order;

/// A call in the log. Calls are ordered by their duration.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct LoggedCall {
    pub(crate) took: u64,
    pub(crate) entered: i64,
    pub(crate) thread: usize,
    pub(crate) method: u32,
    pub(crate) node: u32,
}

#[derive(Debug)]
pub(crate) struct SlowCallLog {
    calls: BinaryHeap<Reverse<LoggedCall>>,
    capacity: usize,
    threshold: u64,
}

impl SlowCallLog {
    /// Creates a log of at most `capacity` calls that took at least `threshold` units of the clock.
    pub(crate) fn new(capacity: usize, threshold: u64) -> Self {
        let threshold = if capacity == 0 { u64::MAX } else { threshold.max(1) };
        Self { calls: BinaryHeap::new(), capacity, threshold }
    }

    /// Returns the duration from which a call is logged.
    #[inline]
    pub(crate) fn threshold(&self) -> u64 {
        self.threshold
    }

    #[cold]
    pub(crate) fn add(&mut self, took: u64, entered: i64, thread: usize, method: u32, node: u32) {
        if self.capacity == 0 {
            return;
        }
        self.calls.push(Reverse(LoggedCall { took, entered, thread, method, node }));
        if self.calls.len() > self.capacity {
            self.calls.pop();
        }
        if self.calls.len() == self.capacity
            && let Some(Reverse(shortest)) = self.calls.peek()
        {
            // Of calls with equal durations, the first are kept.
            self.threshold = self.threshold.max(shortest.took.saturating_add(1));
        }
    }

    /// Returns the calls, longest first.
    pub(crate) fn calls(&self) -> Vec<LoggedCall> {
        let mut calls: Vec<LoggedCall> = self.calls.iter().map(|Reverse(call)| *call).collect();
        order::sort_by_key(&mut calls, |call| (Reverse(call.took), call.entered));
        calls
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_calls_are_kept() {
        let mut slow = SlowCallLog::new(3, 5);
        let mut kept = 0;
        for took in [5, 9, 4, 7, 6, 8, 9, 1] {
            if took >= slow.threshold() {
                slow.add(took, 0, 0, 0, 0);
                kept += 1;
            }
        }
        assert_eq!(slow.calls().iter().map(|call| call.took).collect::<Vec<_>>(), [9, 9, 8]);
        assert_eq!(kept, 6);
        assert_eq!(SlowCallLog::new(0, 0).threshold(), u64::MAX);
    }
}
