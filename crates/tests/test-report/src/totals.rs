//! Counting of results.
//!
//! A test counts once, by its last attempt; earlier attempts are `retried`; a failure in quarantine counts by its state
//! and is `quarantined` as well.

use serde::ser::SerializeStruct as _;
use serde::{Serialize, Serializer};

use crate::{TestOutcome, TestResult};

/// The numbers of tests by outcome.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Totals {
    /// Tests that passed, including flaky tests.
    pub passed: u64,
    /// Tests with a failed assertion.
    pub failed: u64,
    /// Skipped tests.
    pub skipped: u64,
    /// Tests that could not be executed, or failed for another reason.
    pub error: u64,
    /// Tests that timed out.
    pub timeout: u64,
    /// Tests that were canceled.
    pub cancelled: u64,
    /// Tests that passed after a failed attempt.
    pub flaky: u64,
    /// Earlier attempts. They are not tests, and not included in the number of tests.
    pub retried: u64,
    /// Failures in quarantine, which are also counted by their state. They do not make the run fail.
    pub quarantined: u64,
}

impl Serialize for Totals {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut totals = serializer.serialize_struct("Totals", 10)?;
        totals.serialize_field("total", &self.total())?;
        totals.serialize_field("passed", &self.passed)?;
        totals.serialize_field("failed", &self.failed)?;
        totals.serialize_field("skipped", &self.skipped)?;
        totals.serialize_field("error", &self.error)?;
        totals.serialize_field("timeout", &self.timeout)?;
        totals.serialize_field("cancelled", &self.cancelled)?;
        totals.serialize_field("flaky", &self.flaky)?;
        totals.serialize_field("retried", &self.retried)?;
        totals.serialize_field("quarantined", &self.quarantined)?;
        totals.end()
    }
}

impl Totals {
    /// Returns the number of tests.
    pub fn total(&self) -> u64 {
        self.passed + self.skipped + self.not_passed()
    }

    /// Returns the number of tests that make the run fail; `dotnet test` counts these as failed.
    pub fn failures(&self) -> u64 {
        self.not_passed().saturating_sub(self.quarantined)
    }

    fn not_passed(&self) -> u64 {
        self.failed + self.error + self.timeout + self.cancelled
    }

    /// Adds a result.
    pub fn add(&mut self, result: &TestResult) {
        *self.count_mut(result.state()) += 1;
        self.flaky += u64::from(result.is_flaky());
        self.retried += result.earlier.len() as u64;
        self.quarantined += u64::from(result.is_forgiven());
    }

    /// Removes a result that was added.
    pub(crate) fn remove(&mut self, result: &TestResult) {
        let mut counted = Self::default();
        counted.add(result);
        *self = self.minus(&counted);
    }

    /// Returns the sum of two totals.
    #[must_use]
    pub fn plus(self, other: &Self) -> Self {
        self.combined(other, |own, other| own + other)
    }

    /// Returns these totals without a part of them.
    #[must_use]
    pub fn minus(self, part: &Self) -> Self {
        self.combined(part, |own, part| own - part)
    }

    fn combined(self, other: &Self, with: fn(u64, u64) -> u64) -> Self {
        Self {
            passed: with(self.passed, other.passed),
            failed: with(self.failed, other.failed),
            skipped: with(self.skipped, other.skipped),
            error: with(self.error, other.error),
            timeout: with(self.timeout, other.timeout),
            cancelled: with(self.cancelled, other.cancelled),
            flaky: with(self.flaky, other.flaky),
            retried: with(self.retried, other.retried),
            quarantined: with(self.quarantined, other.quarantined),
        }
    }

    /// Returns the number of tests with this outcome.
    pub fn count_mut(&mut self, state: TestOutcome) -> &mut u64 {
        match state {
            TestOutcome::Passed => &mut self.passed,
            TestOutcome::Failed => &mut self.failed,
            TestOutcome::Skipped => &mut self.skipped,
            TestOutcome::Error => &mut self.error,
            TestOutcome::Timeout => &mut self.timeout,
            TestOutcome::Cancelled => &mut self.cancelled,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Attempt;

    fn result(states: &[TestOutcome], quarantined: bool) -> TestResult {
        let mut attempts = states.iter().map(|&state| Attempt { state, ..Attempt::default() });
        let last = attempts.next_back().unwrap();
        TestResult { last, earlier: attempts.collect(), quarantined, ..TestResult::default() }
    }

    #[test]
    fn a_test_counts_once_and_by_its_last_attempt() {
        let mut totals = Totals::default();
        for state in TestOutcome::ALL {
            totals.add(&result(&[state], false));
        }
        totals.add(&result(&[TestOutcome::Failed, TestOutcome::Timeout, TestOutcome::Passed], false));
        totals.add(&result(&[TestOutcome::Failed, TestOutcome::Failed], true));
        let expected = Totals {
            passed: 2,
            failed: 2,
            skipped: 1,
            error: 1,
            timeout: 1,
            cancelled: 1,
            flaky: 1,
            retried: 3,
            quarantined: 1,
        };
        assert_eq!(totals, expected);
        assert_eq!((totals.total(), totals.failures()), (8, 4));
        assert_eq!(totals.plus(&totals).retried, 6);
    }
}
