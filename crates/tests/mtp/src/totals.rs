//! How many tests of a module or of a run passed, failed and so on.

use crate::event::State;

/// How many tests there were, by what became of them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Totals {
    /// As expected, flaky ones included.
    pub passed: u64,
    /// Assertions that did not hold.
    pub failed: u64,
    /// Not run on purpose.
    pub skipped: u64,
    /// Failed by something else.
    pub error: u64,
    /// Took too long.
    pub timeout: u64,
    /// Were stopped.
    pub cancelled: u64,
    /// Those that failed in any way, in quarantine: they do not count as failures.
    pub quarantined: u64,
    /// Passed after they had failed.
    pub flaky: u64,
    /// Results that later attempts have replaced.
    pub retried: u64,
}

impl Totals {
    /// All tests, each once.
    pub fn total(&self) -> u64 {
        self.passed + self.skipped + self.not_passed()
    }

    /// Those by which a run fails: what `dotnet test` calls failed.
    pub fn unsuccessful(&self) -> u64 {
        self.not_passed().saturating_sub(self.quarantined)
    }

    fn not_passed(&self) -> u64 {
        self.failed + self.error + self.timeout + self.cancelled
    }

    /// Adds those of another module.
    pub fn add(&mut self, other: &Self) {
        self.replace(&Self::default(), other);
    }

    /// Has the numbers of a part become others: what was counted `before` is contained.
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
