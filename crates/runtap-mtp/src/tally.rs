//! Counting: what became of each test after all its attempts.

use crate::digest::ByUid;
use crate::event::{State, TestResult};

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

    fn of(&mut self, state: State) -> &mut u64 {
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

/// The results of one module. A test may have several of one attempt: those count, all of them; those of earlier attempts
/// don't.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    tests: ByUid<Attempt>,
    totals: Totals,
    settled: u64,
}

/// One result that counts.
#[derive(Debug, Clone, Copy)]
struct Counted {
    state: State,
    quarantined: bool,
    /// Nothing will run the test again.
    is_last: bool,
}

impl Counted {
    /// Whether it is a failure, and that is not to be changed.
    fn is_settled(self) -> bool {
        self.state.is_failure() && !self.quarantined && self.is_last
    }
}

/// The last attempt of a test.
#[derive(Debug, Default)]
struct Attempt {
    /// The runner's attempt, from 1 on.
    number: u32,
    /// Its result.
    result: Option<Counted>,
    /// Further ones: a test may have several names. Most have one, so that this needs no memory of its own.
    more: Vec<Counted>,
    /// An attempt before has failed.
    has_failed: bool,
}

impl Tally {
    /// Counts a result; `is_last`: if it is a failure, its test is not run again. Returns whether it makes its test flaky: it
    /// has passed, after a failure of an earlier attempt.
    pub(crate) fn count(&mut self, result: &TestResult, is_last: bool) -> bool {
        let TestResult { uid, attempt, state, superseded, quarantined, .. } = result;
        let (attempt, state) = (*attempt, *state);
        let test = self.tests.entry(uid);
        if test.number < attempt {
            let was_flaky = test.has_failed;
            for counted in test.result.take().into_iter().chain(std::mem::take(&mut test.more)) {
                let Counted { state, quarantined, .. } = counted;
                test.has_failed |= state.is_failure();
                self.settled -= u64::from(counted.is_settled());
                self.totals.flaky -= u64::from(was_flaky && state == State::Passed);
                *self.totals.of(state) -= 1;
                self.totals.quarantined -= u64::from(quarantined && state.is_failure());
                self.totals.retried += 1;
            }
            test.number = attempt;
        }
        if *superseded || attempt < test.number {
            // It is over already: by a later attempt in the same process, or in another one.
            test.has_failed |= state.is_failure();
            self.totals.retried += 1;
            return false;
        }
        let counted = Counted { state, quarantined: *quarantined, is_last };
        if test.result.is_none() {
            test.result = Some(counted);
        } else {
            test.more.push(counted);
        }
        self.settled += u64::from(counted.is_settled());
        *self.totals.of(state) += 1;
        self.totals.quarantined += u64::from(*quarantined && state.is_failure());
        let flaky = test.has_failed && state == State::Passed;
        self.totals.flaky += u64::from(flaky);
        flaky
    }

    pub(crate) fn totals(&self) -> Totals {
        self.totals
    }

    /// Failures that count and that no further attempt will change.
    pub(crate) fn settled(&self) -> u64 {
        self.settled
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn result(uid: &str, attempt: u32, state: State, superseded: bool) -> TestResult {
        TestResult { uid: uid.to_owned(), attempt, state, superseded, ..TestResult::default() }
    }

    #[test]
    fn failures_in_quarantine_do_not_count() {
        let mut tally = Tally::default();
        let quarantined = |it| TestResult { quarantined: true, ..it };
        tally.count(&quarantined(result("a", 1, State::Failed, false)), true);
        tally.count(&quarantined(result("b", 1, State::Timeout, false)), true);
        tally.count(&quarantined(result("c", 1, State::Passed, false)), true);
        let totals = tally.totals();
        assert_eq!((totals.total(), totals.unsuccessful(), totals.quarantined), (3, 0, 2));
        assert!(tally.count(&quarantined(result("a", 2, State::Passed, false)), true));
        let expected =
            Totals { passed: 2, timeout: 1, quarantined: 1, flaky: 1, retried: 1, ..Totals::default() };
        assert_eq!(tally.totals(), expected);
    }

    #[test]
    fn later_attempts_replace_earlier_ones() {
        let mut tally = Tally::default();
        assert!(!tally.count(&result("a", 1, State::Failed, false), true));
        assert!(!tally.count(&result("b", 1, State::Error, false), true));
        assert!(!tally.count(&result("c", 1, State::Passed, false), true));
        assert_eq!(tally.totals().total(), 3);
        assert!(tally.count(&result("a", 2, State::Passed, false), true));
        assert!(!tally.count(&result("b", 2, State::Timeout, false), true));
        let expected = Totals { passed: 2, timeout: 1, flaky: 1, retried: 2, ..Totals::default() };
        assert_eq!(tally.totals(), expected);
    }

    #[test]
    fn several_results_of_one_attempt_all_count() {
        let mut tally = Tally::default();
        for state in [State::Passed, State::Passed, State::Failed] {
            assert!(!tally.count(&result("a", 1, state, false), true));
        }
        assert_eq!((tally.totals().passed, tally.totals().failed), (2, 1));
        assert!(tally.count(&result("a", 2, State::Passed, false), true));
        assert_eq!(tally.totals(), Totals { passed: 1, flaky: 1, retried: 3, ..Totals::default() });
    }

    #[test]
    fn what_was_superseded_in_its_process_does_not_count() {
        let mut tally = Tally::default();
        assert!(!tally.count(&result("a", 1, State::Failed, true), true));
        assert!(tally.count(&result("a", 1, State::Passed, false), true));
        assert_eq!(tally.totals(), Totals { passed: 1, flaky: 1, retried: 1, ..Totals::default() });
    }

    #[test]
    fn a_failure_is_settled_when_no_attempt_is_left() {
        let mut tally = Tally::default();
        tally.count(&result("a", 1, State::Failed, false), false);
        tally.count(&result("b", 1, State::Error, false), true);
        tally.count(&TestResult { quarantined: true, ..result("c", 1, State::Failed, false) }, true);
        tally.count(&result("d", 1, State::Failed, true), true);
        tally.count(&result("d", 1, State::Passed, false), true);
        assert_eq!((tally.settled(), tally.totals().unsuccessful()), (1, 2));
        tally.count(&result("a", 2, State::Failed, false), true);
        assert_eq!(tally.settled(), 2);
        // The application itself runs it once more.
        tally.count(&result("a", 3, State::Passed, false), true);
        assert_eq!((tally.settled(), tally.totals().unsuccessful()), (1, 1));
    }
}
