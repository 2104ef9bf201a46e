//! Counting: what became of each test after all its attempts, and which results are of one and the same row of it.

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

/// The results of one module. All results that a test has in one attempt count, each as a row of the test; a later attempt
/// replaces the rows of the one before.
///
/// Rows of two attempts belong together by their names, and where no name fits by their order.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    tests: ByUid<Test>,
    /// The number of rows of all tests.
    rows: usize,
    totals: Totals,
    settled: u64,
    /// Whether any test has had more than one attempt.
    repeated: bool,
}

/// What is to be known of a result that was counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Counted {
    /// The number of its row within the module, from 0 in the order of first appearance.
    pub row: usize,
    /// It has passed, after a failure of an earlier attempt.
    pub flaky: bool,
    /// Another attempt of the row counts: a later one that is there already, or a failure before an attempt that was skipped.
    pub outdated: bool,
}

/// The last result of a row.
#[derive(Debug, Clone, Copy)]
#[expect(clippy::struct_excessive_bools, reason = "facts that do not exclude each other")]
struct Row {
    index: usize,
    /// A hash of the display name.
    name: u32,
    state: State,
    quarantined: bool,
    /// It is a failure that counts, and nothing will change that.
    is_settled: bool,
    /// In which of the test's attempts it was last, counted from 0 on.
    attempt: u32,
    /// A later attempt in the same process has replaced it.
    superseded: bool,
    /// An attempt before has failed.
    has_failed: bool,
}

impl Row {
    /// Whether the next result may replace it: the last of so many attempts of its test has not done so.
    fn is_pending(&self, attempts: u32) -> bool {
        self.superseded || self.attempt < attempts
    }

    fn is_flaky(&self) -> bool {
        self.has_failed && self.state == State::Passed
    }
}

/// The last attempt of a test.
#[derive(Debug, Default)]
struct Test {
    /// The runner's attempt, and the number that the result itself has, both from 1 on.
    attempt: (u32, u32),
    /// How many attempts there were before.
    attempts: u32,
    row: Option<Row>,
    /// Further ones. Most tests have one row, so that this needs no memory of its own.
    more: Vec<Row>,
    /// No row before this one waits to be replaced.
    first_pending: usize,
}

/// So many rows of a test are compared by their names. Behind them, order decides.
const MOST_COMPARED: usize = 4096;

impl Test {
    fn rows(&mut self) -> impl Iterator<Item = &mut Row> {
        self.row.iter_mut().chain(&mut self.more)
    }

    fn get(&self, place: usize) -> Option<&Row> {
        if place == 0 { self.row.as_ref() } else { self.more.get(place - 1) }
    }

    fn get_mut(&mut self, place: usize) -> Option<&mut Row> {
        if place == 0 { self.row.as_mut() } else { self.more.get_mut(place - 1) }
    }

    /// The place of the row that a result with this name replaces. One that is `about` a row, by its name, never takes that
    /// row's place.
    fn replaced(&mut self, name: u32, about: Option<u32>, outdated: bool) -> Option<usize> {
        while self.get(self.first_pending).is_some_and(|row| !row.is_pending(self.attempts)) {
            self.first_pending += 1;
        }
        let start = if outdated { 0 } else { self.first_pending };
        let place = |wanted: &dyn Fn(&Row) -> bool| {
            let rows = (start..start + MOST_COMPARED).map_while(|place| Some((place, self.get(place)?)));
            let mut fit = rows.filter(|(_, row)| outdated || row.is_pending(self.attempts));
            fit.find(|(_, row)| wanted(row)).map(|(place, _)| place)
        };
        place(&|row| row.name == name).or_else(|| place(&|row| about != Some(row.name)))
    }
}

impl Tally {
    /// Counts a result of the runner's `attempt`; `is_last`: if it is a failure, its test is not run again.
    pub(crate) fn count(&mut self, result: &TestResult, attempt: u32, is_last: bool) -> Counted {
        let TestResult { uid, state, superseded, quarantined, .. } = result;
        let (state, name) = (*state, self.tests.hash(&result.name));
        let about = subject(&result.name).map(|name| self.tests.hash(name));
        let key = (attempt, result.attempt);
        let test = self.tests.entry(uid);
        let outdated = key < test.attempt;
        if test.attempt < key {
            // All of its rows wait for this attempt.
            (test.attempts, test.first_pending) = (test.attempts + 1, 0);
            test.attempt = key;
        }
        let is_settled = state.is_failure() && !quarantined && is_last && !superseded;
        let new = Row {
            index: self.rows,
            name,
            state,
            quarantined: *quarantined,
            is_settled,
            attempt: test.attempts,
            superseded: *superseded,
            has_failed: false,
        };
        let place = test.replaced(name, about, outdated);
        let attempts = test.attempts;
        let Some(row) = place.and_then(|place| test.get_mut(place)) else {
            if test.row.is_none() {
                test.row = Some(new);
            } else {
                test.more.push(new);
            }
            self.rows += 1;
            enter(&mut self.totals, &mut self.settled, &new);
            return Counted { row: new.index, flaky: false, outdated: false };
        };
        self.repeated = true;
        self.totals.retried += 1;
        leave(&mut self.totals, &mut self.settled, row);
        if !outdated && state == State::Skipped && row.state.is_failure() {
            // Only an attempt that passes mends a failure; without a failure, nothing runs the test again.
            let is_settled = !row.quarantined;
            *row = Row { is_settled, attempt: attempts, superseded: false, ..*row };
            enter(&mut self.totals, &mut self.settled, row);
            return Counted { row: row.index, flaky: false, outdated: true };
        }
        if outdated && row.state == State::Skipped && state.is_failure() {
            *row = Row { index: row.index, attempt: row.attempt, ..new };
            enter(&mut self.totals, &mut self.settled, row);
            return Counted { row: row.index, flaky: false, outdated: false };
        }
        let has_failed = row.has_failed || if outdated { state } else { row.state }.is_failure();
        *row =
            if outdated { Row { has_failed, ..*row } } else { Row { index: row.index, has_failed, ..new } };
        enter(&mut self.totals, &mut self.settled, row);
        Counted { row: row.index, flaky: !outdated && row.is_flaky(), outdated }
    }

    /// No more results will come. A row that failed and that the test's last attempt does not have any more is an earlier
    /// attempt of the test's first row that passed, if nothing failed in that attempt: these rows, each with the row that it
    /// belongs to.
    pub(crate) fn settle(&mut self) -> Vec<(usize, usize)> {
        let mut merged = Vec::new();
        if !self.repeated {
            return merged;
        }
        for test in self.tests.values_mut().filter(|test| !test.more.is_empty()) {
            let attempts = test.attempts;
            let last = || test.row.iter().chain(&test.more).filter(|row| !row.is_pending(attempts));
            let passed = last().filter(|row| row.state == State::Passed);
            let Some(first) = passed.map(|row| row.index).min() else { continue };
            if last().any(|row| row.state.is_failure()) {
                continue;
            }
            let (totals, settled) = (&mut self.totals, &mut self.settled);
            let before = merged.len();
            for row in test.rows().filter(|row| row.is_pending(attempts) && row.state.is_failure()) {
                leave(totals, settled, row);
                totals.retried += 1;
                merged.push((row.index, first));
            }
            if merged.len() > before
                && let Some(row) = test.rows().find(|row| row.index == first)
            {
                leave(totals, settled, row);
                row.has_failed = true;
                enter(totals, settled, row);
            }
        }
        merged
    }

    /// The test is run again in this attempt, since its process ended while it was running: its rows wait for that.
    pub(crate) fn reopen(&mut self, uid: &str) {
        if self.has(uid) {
            let test = self.tests.entry(uid);
            (test.attempts, test.first_pending) = (test.attempts + 1, 0);
        }
    }

    /// Whether a test has a result.
    pub(crate) fn has(&self, uid: &str) -> bool {
        self.tests.contains(uid)
    }

    pub(crate) fn totals(&self) -> Totals {
        self.totals
    }

    /// Failures that count and that no further attempt will change.
    pub(crate) fn settled(&self) -> u64 {
        self.settled
    }
}

/// The name of the row that a further row of its test is about: xunit.v3 has `[Test Cleanup Failure (NAME)]`, which may come
/// before the result of the test itself.
fn subject(name: &str) -> Option<&str> {
    let (_, subject) = name.strip_prefix('[')?.strip_suffix(")]")?.split_once(" (")?;
    Some(subject)
}

/// Counts what a row is.
fn enter(totals: &mut Totals, settled: &mut u64, row: &Row) {
    *totals.of(row.state) += 1;
    totals.quarantined += u64::from(row.quarantined && row.state.is_failure());
    totals.flaky += u64::from(row.is_flaky());
    *settled += u64::from(row.is_settled);
}

/// Takes back what [`enter`] has counted.
fn leave(totals: &mut Totals, settled: &mut u64, row: &Row) {
    *totals.of(row.state) -= 1;
    totals.quarantined -= u64::from(row.quarantined && row.state.is_failure());
    totals.flaky -= u64::from(row.is_flaky());
    *settled -= u64::from(row.is_settled);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Counts it as a result of the runner's attempt with the same number. Returns whether it makes its test flaky.
    fn count(tally: &mut Tally, result: &TestResult, is_last: bool) -> bool {
        tally.count(result, result.attempt, is_last).flaky
    }

    fn result(uid: &str, attempt: u32, state: State, superseded: bool) -> TestResult {
        TestResult { uid: uid.to_owned(), attempt, state, superseded, ..TestResult::default() }
    }

    #[test]
    fn failures_in_quarantine_do_not_count() {
        let mut tally = Tally::default();
        let quarantined = |it| TestResult { quarantined: true, ..it };
        count(&mut tally, &quarantined(result("a", 1, State::Failed, false)), true);
        count(&mut tally, &quarantined(result("b", 1, State::Timeout, false)), true);
        count(&mut tally, &quarantined(result("c", 1, State::Passed, false)), true);
        let totals = tally.totals();
        assert_eq!((totals.total(), totals.unsuccessful(), totals.quarantined), (3, 0, 2));
        assert!(count(&mut tally, &quarantined(result("a", 2, State::Passed, false)), true));
        let expected =
            Totals { passed: 2, timeout: 1, quarantined: 1, flaky: 1, retried: 1, ..Totals::default() };
        assert_eq!(tally.totals(), expected);
    }

    #[test]
    fn later_attempts_replace_earlier_ones() {
        let mut tally = Tally::default();
        assert!(!count(&mut tally, &result("a", 1, State::Failed, false), true));
        assert!(!count(&mut tally, &result("b", 1, State::Error, false), true));
        assert!(!count(&mut tally, &result("c", 1, State::Passed, false), true));
        assert_eq!(tally.totals().total(), 3);
        assert!(count(&mut tally, &result("a", 2, State::Passed, false), true));
        assert!(!count(&mut tally, &result("b", 2, State::Timeout, false), true));
        let expected = Totals { passed: 2, timeout: 1, flaky: 1, retried: 2, ..Totals::default() };
        assert_eq!(tally.totals(), expected);
    }

    #[test]
    fn several_results_of_one_attempt_all_count() {
        let mut tally = Tally::default();
        for state in [State::Passed, State::Passed, State::Failed] {
            assert!(!count(&mut tally, &result("a", 1, state, false), true));
        }
        assert_eq!((tally.totals().passed, tally.totals().failed), (2, 1));
    }

    fn row(name: &str, attempt: u32, state: State) -> TestResult {
        TestResult { name: name.to_owned(), ..result("a", attempt, state, false) }
    }

    #[test]
    fn a_later_attempt_replaces_rows_by_name_and_order() {
        use State::{Failed, Passed};

        let mut tally = Tally::default();
        let mut rows = |all: &[(&str, State)], attempt| -> Vec<usize> {
            all.iter()
                .map(|(name, state)| tally.count(&row(name, attempt, *state), attempt, true).row)
                .collect()
        };
        assert_eq!(rows(&[("x", Failed), ("x", Passed), ("y", Passed)], 1), [0, 1, 2]);
        assert_eq!(rows(&[("y", Passed), ("x", Failed), ("x", Passed)], 2), [2, 0, 1]);
        assert_eq!(rows(&[("x", Passed), ("z", Passed), ("y", Failed), ("w", Passed)], 3), [0, 1, 2, 3]);
        let expected = Totals { passed: 3, failed: 1, flaky: 1, retried: 6, ..Totals::default() };
        assert_eq!((tally.totals(), tally.settle()), (expected, vec![]));
    }

    /// With a look at all rows for each, these would take minutes.
    #[test]
    fn a_test_may_have_any_number_of_rows() {
        const ROWS: usize = 200_000;

        let mut tally = Tally::default();
        for attempt in 1..=2 {
            for number in 0..ROWS {
                let counted =
                    tally.count(&row(&format!("row {number}"), attempt, State::Failed), attempt, true);
                assert_eq!(counted.row, number);
            }
        }
        // Attempts that end with each result.
        for attempt in 3..100_000 {
            assert_eq!(tally.count(&row("row 0", attempt, State::Failed), attempt, true).row, 0);
        }
        assert_eq!(tally.totals().total(), 200_000);
    }

    #[test]
    fn a_failed_row_that_a_passed_attempt_lacks_is_an_earlier_attempt() {
        let mut tally = Tally::default();
        count(&mut tally, &row("T", 1, State::Timeout), false);
        count(&mut tally, &row("clean-up of T", 1, State::Error), false);
        assert!(count(&mut tally, &row("T", 2, State::Passed), true));
        assert_eq!(tally.settle(), [(1, 0)]);
        assert_eq!(tally.totals(), Totals { passed: 1, flaky: 1, retried: 2, ..Totals::default() });
        // As long as the test fails, nothing is known to have become better.
        let mut tally = Tally::default();
        for (name, state) in [("x", State::Passed), ("y", State::Failed), ("z", State::Failed)] {
            count(&mut tally, &row(name, 1, state), false);
        }
        count(&mut tally, &row("y", 2, State::Failed), true);
        assert_eq!((tally.settle(), tally.totals().failed, tally.totals().total()), (vec![], 2, 3));
    }

    #[test]
    fn a_skipped_attempt_mends_no_failure() {
        use State::{Failed, Passed, Skipped};

        let mut tally = Tally::default();
        count(&mut tally, &result("a", 1, Failed, false), false);
        let skipped = tally.count(&result("a", 2, Skipped, false), 2, false);
        assert_eq!(skipped, Counted { row: 0, flaky: false, outdated: true });
        let expected = Totals { failed: 1, retried: 1, ..Totals::default() };
        assert_eq!((tally.totals(), tally.settled()), (expected, 1));
        // One that passes does, also after that.
        assert!(count(&mut tally, &result("a", 3, Passed, false), true));
        assert_eq!((tally.totals().flaky, tally.totals().failed, tally.settled()), (1, 0, 0));
        // The results may come in any order.
        let mut tally = Tally::default();
        tally.count(&result("a", 2, Skipped, false), 2, true);
        let late = tally.count(&result("a", 1, Failed, false), 1, true);
        assert_eq!(late, Counted { row: 0, flaky: false, outdated: false });
        assert_eq!((tally.totals().failed, tally.totals().skipped, tally.settled()), (1, 0, 1));
    }

    #[test]
    fn a_failed_row_that_a_skipped_attempt_lacks_remains() {
        let mut tally = Tally::default();
        count(&mut tally, &row("T", 1, State::Passed), false);
        count(&mut tally, &row("clean-up of T", 1, State::Failed), false);
        count(&mut tally, &row("T", 2, State::Skipped), true);
        assert_eq!((tally.settle(), tally.totals().failed, tally.totals().skipped), (vec![], 1, 1));
        // Of several rows, the skipped one has failed.
        let mut tally = Tally::default();
        count(&mut tally, &row("x", 1, State::Passed), false);
        count(&mut tally, &row("y", 1, State::Failed), false);
        count(&mut tally, &row("x", 2, State::Passed), true);
        count(&mut tally, &row("y", 2, State::Skipped), true);
        assert_eq!((tally.settle(), tally.totals().failed, tally.totals().passed), (vec![], 1, 1));
    }

    #[test]
    fn a_failed_clean_up_never_takes_the_place_of_its_test() {
        let mut tally = Tally::default();
        let mut row = |name, attempt, state| tally.count(&row(name, attempt, state), attempt, true).row;
        assert_eq!(row("T(a: (1))", 1, State::Failed), 0);
        assert_eq!(row("[Test Cleanup Failure (T(a: (1)))]", 2, State::Failed), 1, "it comes first");
        assert_eq!(row("T(a: (1))", 2, State::Failed), 0);
        // In the next attempt, both are there, in either order; another name still goes by order.
        assert_eq!(row("[Test Cleanup Failure (T(a: (1)))]", 3, State::Failed), 1);
        assert_eq!(row("T(a: (2))", 3, State::Passed), 0);
        assert_eq!((tally.totals().total(), tally.totals().failed), (2, 1));
    }

    #[test]
    fn attempts_of_the_application_itself_begin_anew_in_each_process() {
        let mut tally = Tally::default();
        for attempt in 1..=3 {
            tally.count(&result("a", attempt, State::Failed, attempt < 3), 1, false);
        }
        assert_eq!((tally.totals().total(), tally.totals().failed), (1, 1));
        tally.count(&result("a", 2, State::Failed, true), 2, true);
        assert!(tally.count(&result("a", 2, State::Passed, false), 2, true).flaky);
        let late = tally.count(&result("a", 1, State::Failed, false), 1, false);
        assert_eq!(late, Counted { row: 0, flaky: false, outdated: true });
        assert_eq!(tally.totals(), Totals { passed: 1, flaky: 1, retried: 5, ..Totals::default() });
    }

    #[test]
    fn what_was_superseded_in_its_process_does_not_count() {
        let mut tally = Tally::default();
        assert!(!count(&mut tally, &result("a", 1, State::Failed, true), true));
        assert!(count(&mut tally, &result("a", 1, State::Passed, false), true));
        assert_eq!(tally.totals(), Totals { passed: 1, flaky: 1, retried: 1, ..Totals::default() });
    }

    #[test]
    fn a_failure_is_settled_when_no_attempt_is_left() {
        let mut tally = Tally::default();
        count(&mut tally, &result("a", 1, State::Failed, false), false);
        count(&mut tally, &result("b", 1, State::Error, false), true);
        count(&mut tally, &TestResult { quarantined: true, ..result("c", 1, State::Failed, false) }, true);
        count(&mut tally, &result("d", 1, State::Failed, true), true);
        count(&mut tally, &result("d", 1, State::Passed, false), true);
        assert_eq!((tally.settled(), tally.totals().unsuccessful()), (1, 2));
        count(&mut tally, &result("a", 2, State::Failed, false), true);
        assert_eq!(tally.settled(), 2);
        // The application itself runs it once more.
        count(&mut tally, &result("a", 3, State::Passed, false), true);
        assert_eq!((tally.settled(), tally.totals().unsuccessful()), (1, 1));
    }
}
