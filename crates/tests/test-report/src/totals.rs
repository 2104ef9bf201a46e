//! Counting of results.
//!
//! A test counts once, by its last attempt; earlier attempts are `retried`; a failure in quarantine counts by its state
//! and is `forgiven` as well.

use serde::Serialize;

use crate::{State, TestResult};

/// The numbers of tests by outcome.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Totals {
    /// The number of tests.
    pub total: u64,
    /// Tests that passed, including flaky tests.
    pub passed: u64,
    /// Tests with a failed assertion.
    pub failed: u64,
    /// Skipped tests.
    pub skipped: u64,
    /// Tests that could not be executed.
    pub error: u64,
    /// Tests that timed out.
    pub timeout: u64,
    /// Tests that were canceled.
    pub cancelled: u64,
    /// Tests that passed after a failed attempt.
    pub flaky: u64,
    /// Earlier attempts. They are not tests, and not included in `total`.
    pub retried: u64,
    /// Failures in quarantine, which are also counted by their state.
    #[serde(rename = "quarantined")]
    pub forgiven: u64,
}

impl Totals {
    /// Adds a result.
    pub fn add(&mut self, result: &TestResult) {
        self.total += 1;
        *match result.state() {
            State::Passed => &mut self.passed,
            State::Failed => &mut self.failed,
            State::Skipped => &mut self.skipped,
            State::Error => &mut self.error,
            State::Timeout => &mut self.timeout,
            State::Cancelled => &mut self.cancelled,
        } += 1;
        self.flaky += u64::from(result.is_flaky());
        self.retried += result.earlier.len() as u64;
        self.forgiven += u64::from(result.is_forgiven());
    }

    /// Removes a result that was added.
    pub(crate) fn remove(&mut self, result: &TestResult) {
        let mut counted = Self::default();
        counted.add(result);
        self.total -= counted.total;
        self.passed -= counted.passed;
        self.failed -= counted.failed;
        self.skipped -= counted.skipped;
        self.error -= counted.error;
        self.timeout -= counted.timeout;
        self.cancelled -= counted.cancelled;
        self.flaky -= counted.flaky;
        self.retried -= counted.retried;
        self.forgiven -= counted.forgiven;
    }

    /// Returns the number of failures that are not in quarantine.
    pub fn failures(&self) -> u64 {
        self.failed + self.error + self.timeout + self.cancelled - self.forgiven
    }

    /// Returns the sum of two totals.
    #[must_use]
    pub fn plus(mut self, other: &Self) -> Self {
        self.total += other.total;
        self.passed += other.passed;
        self.failed += other.failed;
        self.skipped += other.skipped;
        self.error += other.error;
        self.timeout += other.timeout;
        self.cancelled += other.cancelled;
        self.flaky += other.flaky;
        self.retried += other.retried;
        self.forgiven += other.forgiven;
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Attempt;

    fn result(states: &[State], quarantined: bool) -> TestResult {
        let mut attempts = states.iter().map(|&state| Attempt { state, ..Attempt::default() });
        let last = attempts.next_back().unwrap();
        TestResult { last, earlier: attempts.collect(), quarantined, ..TestResult::default() }
    }

    #[test]
    fn a_test_counts_once_and_by_its_last_attempt() {
        let mut totals = Totals::default();
        for state in State::ALL {
            totals.add(&result(&[state], false));
        }
        totals.add(&result(&[State::Failed, State::Timeout, State::Passed], false));
        totals.add(&result(&[State::Failed, State::Failed], true));
        let expected = Totals {
            total: 8,
            passed: 2,
            failed: 2,
            skipped: 1,
            error: 1,
            timeout: 1,
            cancelled: 1,
            flaky: 1,
            retried: 3,
            forgiven: 1,
        };
        assert_eq!(totals, expected);
        assert_eq!(totals.failures(), 4);
        assert_eq!(totals.plus(&totals).retried, 6);
    }
}
