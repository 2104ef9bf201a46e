//! The numbers of tests of a module or a run by outcome.

use crate::event::State;

/// The numbers of tests by outcome.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Totals {
    /// Tests that passed, including flaky tests.
    pub passed: u64,
    /// Tests with a failed assertion.
    pub failed: u64,
    /// Skipped tests.
    pub skipped: u64,
    /// Tests that failed for another reason.
    pub error: u64,
    /// Tests that timed out.
    pub timeout: u64,
    /// Tests that were canceled.
    pub cancelled: u64,
    /// Tests in quarantine that failed in any way; they do not count as failures.
    pub quarantined: u64,
    /// Tests that passed after they had failed.
    pub flaky: u64,
    /// Results that later attempts replaced.
    pub retried: u64,
}

impl Totals {
    /// Returns the number of tests.
    pub fn total(&self) -> u64 {
        self.passed + self.skipped + self.not_passed()
    }

    /// Returns the number of tests that make the run fail; `dotnet test` counts these as failed.
    pub fn unsuccessful(&self) -> u64 {
        self.not_passed().saturating_sub(self.quarantined)
    }

    fn not_passed(&self) -> u64 {
        self.failed + self.error + self.timeout + self.cancelled
    }

    /// Adds the totals of another module.
    pub fn add(&mut self, other: &Self) {
        self.replace(&Self::default(), other);
    }

    /// Replaces the totals of a part: subtracts `before`, which must be included, and adds `after`.
    pub(crate) fn replace(&mut self, before: &Self, after: &Self) {
        for state in State::ALL {
            let count = self.of(state);
            *count = *count + *after.clone().of(state) - *before.clone().of(state);
        }
        self.quarantined = self.quarantined + after.quarantined - before.quarantined;
        self.flaky = self.flaky + after.flaky - before.flaky;
        self.retried = self.retried + after.retried - before.retried;
    }

    pub(crate) fn of(&mut self, state: State) -> &mut u64 {
        match state {
            State::Passed => &mut self.passed,
            State::Failed => &mut self.failed,
            State::Skipped => &mut self.skipped,
            State::Error => &mut self.error,
            State::Timeout => &mut self.timeout,
            State::Cancelled => &mut self.cancelled,
        }
    }
}
