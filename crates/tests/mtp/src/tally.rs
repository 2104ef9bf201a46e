//! Counting of results: the outcome of each test after all attempts, and the matching of results to rows of tests.

mod rows;

pub(crate) use self::rows::subject;
use self::rows::{Row, Test};
use crate::digest::UidMap;
use crate::event::Totals;
use crate::event::{TestOutcome, TestResult};

/// The results of one module. All results of a test in one attempt count, each as a row of the test. A later attempt
/// replaces the rows of the previous one.
///
/// Rows of two processes are matched by name, or by order if no name matches. The processes are two attempts of the
/// runner, or of an application that starts a process for each attempt. Repetitions within a process are matched by
/// [`Test::replaced`].
#[derive(Debug, Default)]
pub(crate) struct Tally {
    tests: UidMap<Test>,
    /// The number of rows of all tests.
    rows: usize,
    totals: Totals,
    settled: u64,
    /// Whether any test has had more than one attempt.
    repeated: bool,
}

/// The properties of a counted result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Counted {
    /// The number of the result's row within the module, from 0 in the order of first appearance.
    pub row: usize,
    /// Whether the test passed after an earlier attempt failed.
    pub flaky: bool,
    /// Whether another attempt of the row takes precedence: a later attempt that was reported earlier, or a failure
    /// before an attempt that was skipped or whose failure is in quarantine.
    pub outdated: bool,
}

impl Tally {
    /// Counts a result of the runner's `attempt`. `is_last` is whether the test is not run again if it failed.
    pub(crate) fn count(&mut self, result: &TestResult, attempt: u32, is_last: bool) -> Counted {
        let TestResult { uid, superseded, quarantined, .. } = result;
        let (state, name) = (result.execution.state, self.tests.hash(&result.name));
        let about = subject(&result.name).map(|name| self.tests.hash(name));
        let test = self.tests.entry(uid);
        let host_attempt =
            result.host_attempt.unwrap_or(if attempt == test.attempt { test.host_attempt } else { 1 });
        let (this, last) = ((attempt, host_attempt), (test.attempt, test.host_attempt));
        let outdated = this < last;
        if last < this {
            // All rows of the test are pending for this process.
            (test.process, test.first_pending) = (test.process + 1, 0);
            (test.attempt, test.host_attempt) = this;
        }
        let is_settled = state.is_failure() && !quarantined && is_last && !superseded;
        let new = Row {
            index: self.rows,
            name,
            about,
            state,
            quarantined: *quarantined,
            is_settled,
            process: test.process,
            attempt: result.attempt,
            superseded: *superseded,
            has_failed: false,
        };
        let place = test.replaced(&new, outdated);
        let Some(row) = place.and_then(|place| test.get_mut(place)) else {
            if test.row.is_none() {
                test.row = Some(new);
            } else {
                test.more.push(new);
            }
            self.rows += 1;
            add_row(&mut self.totals, &mut self.settled, &new);
            return Counted { row: new.index, flaky: false, outdated: false };
        };
        self.repeated = true;
        self.totals.retried += 1;
        remove_row(&mut self.totals, &mut self.settled, row);
        let mends_nothing =
            state == TestOutcome::Skipped || state.is_failure() && *quarantined && !row.quarantined;
        if !outdated && mends_nothing && row.state.is_failure() {
            // Only a passed attempt resolves a failure. Without a failure that counts, the test is not run again.
            let is_settled = !row.quarantined;
            let Row { process, attempt, .. } = new;
            *row = Row { is_settled, process, attempt, superseded: false, ..*row };
            add_row(&mut self.totals, &mut self.settled, row);
            return Counted { row: row.index, flaky: false, outdated: true };
        }
        if outdated && row.state == TestOutcome::Skipped && state.is_failure() {
            *row = Row { index: row.index, process: row.process, attempt: row.attempt, ..new };
            add_row(&mut self.totals, &mut self.settled, row);
            return Counted { row: row.index, flaky: false, outdated: false };
        }
        let has_failed = row.has_failed || if outdated { state } else { row.state }.is_failure();
        *row =
            if outdated { Row { has_failed, ..*row } } else { Row { index: row.index, has_failed, ..new } };
        add_row(&mut self.totals, &mut self.settled, row);
        Counted { row: row.index, flaky: !outdated && row.is_flaky(), outdated }
    }

    /// Merges rows after the last result. A failed row that is about another row (its clean-up) and is missing in the
    /// test's last attempt is an earlier attempt of that row, if that row has passed. Returns pairs of such rows and
    /// the rows that they belong to. Within a process, this requires that the process marked the row as superseded,
    /// because other rows may be about the passed attempt. Other missing rows are unchanged, because their failures
    /// were not resolved.
    pub(crate) fn settle(&mut self) -> Vec<(usize, usize)> {
        let mut merged = Vec::new();
        if !self.repeated {
            return merged;
        }
        let (totals, settled) = (&mut self.totals, &mut self.settled);
        for test in self.tests.values_mut().filter(|test| !test.more.is_empty()) {
            let process = test.process;
            let is_missing =
                |row: &Row| row.about.is_some() && row.state.is_failure() && row.is_pending(process);
            let missing: Vec<Row> = test.rows().filter(|row| is_missing(row)).map(|row| *row).collect();
            for gone in missing {
                let is_subject = |row: &&mut Row| {
                    Some(row.name) == gone.about
                        && row.state == TestOutcome::Passed
                        && !row.is_pending(process)
                };
                let Some(subject) = test.rows().find(is_subject) else { continue };
                remove_row(totals, settled, subject);
                subject.has_failed = true;
                add_row(totals, settled, subject);
                merged.push((gone.index, subject.index));
                remove_row(totals, settled, &gone);
                totals.retried += 1;
            }
        }
        merged
    }

    /// Makes the rows of the test pending, because the test is run again in this attempt after its process exited while
    /// it was running.
    pub(crate) fn reopen(&mut self, uid: &str) {
        if self.has(uid) {
            let test = self.tests.entry(uid);
            (test.process, test.first_pending) = (test.process + 1, 0);
        }
    }

    /// Returns whether a test has a result.
    pub(crate) fn has(&self, uid: &str) -> bool {
        self.tests.contains(uid)
    }

    /// Returns whether the last attempt of a row of the test failed.
    pub(crate) fn has_failed(&self, uid: &str) -> bool {
        self.has_row(uid, |row| row.state.is_failure())
    }

    /// Returns whether the last attempt of a row of the test failed and is not in quarantine.
    pub(crate) fn fails(&self, uid: &str) -> bool {
        self.has_row(uid, |row| row.state.is_failure() && !row.quarantined)
    }

    fn has_row(&self, uid: &str, is_it: impl Fn(&Row) -> bool) -> bool {
        self.tests.get(uid).is_some_and(|test| test.row.iter().chain(&test.more).any(is_it))
    }

    /// Returns the runner's last attempt of the test, or 0 if the test has no result.
    pub(crate) fn attempt(&self, uid: &str) -> u32 {
        self.tests.get(uid).map_or(0, |test| test.attempt)
    }

    pub(crate) fn totals(&self) -> Totals {
        self.totals
    }

    /// Returns the number of failures that count and that no further attempt will change.
    pub(crate) fn settled(&self) -> u64 {
        self.settled
    }
}

/// Adds a row to the totals.
fn add_row(totals: &mut Totals, settled: &mut u64, row: &Row) {
    *totals.count_mut(row.state) += 1;
    totals.quarantined += u64::from(row.quarantined && row.state.is_failure());
    totals.flaky += u64::from(row.is_flaky());
    *settled += u64::from(row.is_settled);
}

/// Removes a row from the totals.
fn remove_row(totals: &mut Totals, settled: &mut u64, row: &Row) {
    *totals.count_mut(row.state) -= 1;
    totals.quarantined -= u64::from(row.quarantined && row.state.is_failure());
    totals.flaky -= u64::from(row.is_flaky());
    *settled -= u64::from(row.is_settled);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::Attempt;

    /// Counts a result of the runner's attempt with the same number. Returns whether the test is flaky.
    fn count(tally: &mut Tally, result: &TestResult, is_last: bool) -> bool {
        tally.count(result, result.attempt, is_last).flaky
    }

    fn result(uid: &str, attempt: u32, state: TestOutcome, superseded: bool) -> TestResult {
        let execution = Attempt { state, ..Attempt::default() };
        TestResult { uid: uid.to_owned(), attempt, execution, superseded, ..TestResult::default() }
    }

    #[test]
    fn failures_in_quarantine_do_not_count() {
        let mut tally = Tally::default();
        let quarantined = |it| TestResult { quarantined: true, ..it };
        count(&mut tally, &quarantined(result("a", 1, TestOutcome::Failed, false)), true);
        count(&mut tally, &quarantined(result("b", 1, TestOutcome::Timeout, false)), true);
        count(&mut tally, &quarantined(result("c", 1, TestOutcome::Passed, false)), true);
        let totals = tally.totals();
        assert_eq!((totals.total(), totals.failures(), totals.quarantined), (3, 0, 2));
        assert!(count(&mut tally, &quarantined(result("a", 2, TestOutcome::Passed, false)), true));
        let expected =
            Totals { passed: 2, timeout: 1, quarantined: 1, flaky: 1, retried: 1, ..Totals::default() };
        assert_eq!(tally.totals(), expected);
    }

    #[test]
    fn a_failure_in_quarantine_does_not_resolve_others() {
        let mut tally = Tally::default();
        let named = |name: &str, it| TestResult { name: name.to_owned(), ..it };
        let known =
            TestResult { quarantined: true, ..named("known", result("a", 2, TestOutcome::Failed, false)) };
        count(&mut tally, &named("row", result("a", 1, TestOutcome::Failed, false)), true);
        assert!(tally.count(&known, 2, true).outdated);
        assert_eq!((tally.totals().failures(), tally.totals().total(), tally.settled()), (1, 1, 1));
        // A row that was in quarantine before stays there.
        count(&mut tally, &TestResult { uid: "b".to_owned(), attempt: 1, ..known.clone() }, true);
        assert!(!tally.count(&TestResult { uid: "b".to_owned(), ..known }, 2, true).outdated);
        assert_eq!((tally.totals().failures(), tally.totals().quarantined), (1, 1));
    }

    #[test]
    fn later_attempts_replace_earlier_ones() {
        let mut tally = Tally::default();
        assert!(!count(&mut tally, &result("a", 1, TestOutcome::Failed, false), true));
        assert!(!count(&mut tally, &result("b", 1, TestOutcome::Error, false), true));
        assert!(!count(&mut tally, &result("c", 1, TestOutcome::Passed, false), true));
        assert_eq!(tally.totals().total(), 3);
        assert!(count(&mut tally, &result("a", 2, TestOutcome::Passed, false), true));
        assert!(!count(&mut tally, &result("b", 2, TestOutcome::Timeout, false), true));
        let expected = Totals { passed: 2, timeout: 1, flaky: 1, retried: 2, ..Totals::default() };
        assert_eq!(tally.totals(), expected);
    }

    #[test]
    fn several_results_of_one_attempt_all_count() {
        let mut tally = Tally::default();
        for state in [TestOutcome::Passed, TestOutcome::Passed, TestOutcome::Failed] {
            assert!(!count(&mut tally, &result("a", 1, state, false), true));
        }
        assert_eq!((tally.totals().passed, tally.totals().failed), (2, 1));
    }

    fn row(name: &str, attempt: u32, state: TestOutcome) -> TestResult {
        TestResult { name: name.to_owned(), ..result("a", attempt, state, false) }
    }

    #[test]
    fn a_later_attempt_replaces_rows_by_name_and_order() {
        use TestOutcome::{Failed, Passed};

        let mut tally = Tally::default();
        let mut rows = |all: &[(&str, TestOutcome)], attempt| -> Vec<usize> {
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

    /// With a linear search for each result, this would take minutes.
    #[test]
    fn a_test_may_have_any_number_of_rows() {
        const ROWS: usize = 200_000;

        let mut tally = Tally::default();
        for attempt in 1..=2 {
            for number in 0..ROWS {
                let counted =
                    tally.count(&row(&format!("row {number}"), attempt, TestOutcome::Failed), attempt, true);
                assert_eq!(counted.row, number);
            }
        }
        // Attempts with one result each.
        for attempt in 3..100_000 {
            assert_eq!(tally.count(&row("row 0", attempt, TestOutcome::Failed), attempt, true).row, 0);
        }
        assert_eq!(tally.totals().total(), 200_000);
    }

    /// If there are more rows than are compared, no row replaces another one.
    #[test]
    fn a_row_of_many_does_not_resolve_others() {
        let mut tally = Tally::default();
        for number in 0..5001 {
            let state = if number == 0 { TestOutcome::Failed } else { TestOutcome::Passed };
            tally.count(&row(&format!("row {number}"), 1, state), 1, false);
        }
        tally.count(&row("row 5000", 2, TestOutcome::Passed), 2, true);
        assert_eq!(tally.totals().failures(), 1);
        assert!(tally.count(&row("row 0", 2, TestOutcome::Passed), 2, true).flaky);
    }

    #[test]
    fn a_failed_clean_up_that_a_passed_attempt_lacks_is_an_earlier_attempt() {
        let mut tally = Tally::default();
        count(&mut tally, &row("T", 1, TestOutcome::Timeout), false);
        count(&mut tally, &row("[Test Cleanup Failure (T)]", 1, TestOutcome::Error), false);
        assert!(count(&mut tally, &row("T", 2, TestOutcome::Passed), true));
        assert_eq!(tally.settle(), [(1, 0)]);
        assert_eq!(tally.totals(), Totals { passed: 1, flaky: 1, retried: 2, ..Totals::default() });
        // Other rows were not run again, so their failures are not resolved.
        for other in ["other", "[Test Cleanup Failure (other)]"] {
            let mut tally = Tally::default();
            count(&mut tally, &row("T", 1, TestOutcome::Passed), false);
            count(&mut tally, &row(other, 1, TestOutcome::Failed), false);
            count(&mut tally, &row("T", 2, TestOutcome::Passed), true);
            assert_eq!((tally.settle(), tally.totals().failed, tally.totals().passed), (vec![], 1, 1));
        }
        let mut tally = Tally::default();
        for (name, state) in
            [("x", TestOutcome::Passed), ("y", TestOutcome::Failed), ("z", TestOutcome::Failed)]
        {
            count(&mut tally, &row(name, 1, state), false);
        }
        count(&mut tally, &row("y", 2, TestOutcome::Failed), true);
        assert_eq!((tally.settle(), tally.totals().failed, tally.totals().total()), (vec![], 2, 3));
    }

    #[test]
    fn a_skipped_attempt_does_not_resolve_a_failure() {
        use TestOutcome::{Failed, Passed, Skipped};

        let mut tally = Tally::default();
        count(&mut tally, &result("a", 1, Failed, false), false);
        let skipped = tally.count(&result("a", 2, Skipped, false), 2, false);
        assert_eq!(skipped, Counted { row: 0, flaky: false, outdated: true });
        let expected = Totals { failed: 1, retried: 1, ..Totals::default() };
        assert_eq!((tally.totals(), tally.settled()), (expected, 1));
        // A passed attempt does, also after a skipped one.
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
        count(&mut tally, &row("T", 1, TestOutcome::Passed), false);
        count(&mut tally, &row("clean-up of T", 1, TestOutcome::Failed), false);
        count(&mut tally, &row("T", 2, TestOutcome::Skipped), true);
        assert_eq!((tally.settle(), tally.totals().failed, tally.totals().skipped), (vec![], 1, 1));
        // With several rows, the skipped one has failed.
        let mut tally = Tally::default();
        count(&mut tally, &row("x", 1, TestOutcome::Passed), false);
        count(&mut tally, &row("y", 1, TestOutcome::Failed), false);
        count(&mut tally, &row("x", 2, TestOutcome::Passed), true);
        count(&mut tally, &row("y", 2, TestOutcome::Skipped), true);
        assert_eq!((tally.settle(), tally.totals().failed, tally.totals().passed), (vec![], 1, 1));
    }

    #[test]
    fn a_failed_clean_up_never_replaces_its_test() {
        let mut tally = Tally::default();
        let mut row = |name, attempt, state| tally.count(&row(name, attempt, state), attempt, true).row;
        assert_eq!(row("T(a: (1))", 1, TestOutcome::Failed), 0);
        assert_eq!(
            row("[Test Cleanup Failure (T(a: (1)))]", 2, TestOutcome::Failed),
            1,
            "the clean-up is reported first"
        );
        assert_eq!(row("T(a: (1))", 2, TestOutcome::Failed), 0);
        // The next attempt has both, in any order. Rows with other names are matched by order.
        assert_eq!(row("[Test Cleanup Failure (T(a: (1)))]", 3, TestOutcome::Failed), 1);
        assert_eq!(row("T(a: (2))", 3, TestOutcome::Passed), 0);
        assert_eq!((tally.totals().total(), tally.totals().failed), (2, 1));
    }

    #[test]
    fn attempts_of_the_application_are_counted_per_process() {
        let mut tally = Tally::default();
        for attempt in 1..=3 {
            tally.count(&result("a", attempt, TestOutcome::Failed, attempt < 3), 1, false);
        }
        assert_eq!((tally.totals().total(), tally.totals().failed), (1, 1));
        tally.count(&result("a", 2, TestOutcome::Failed, true), 2, true);
        assert!(tally.count(&result("a", 2, TestOutcome::Passed, false), 2, true).flaky);
        let late = tally.count(&result("a", 1, TestOutcome::Failed, false), 1, false);
        assert_eq!(late, Counted { row: 0, flaky: false, outdated: true });
        assert_eq!(tally.totals(), Totals { passed: 1, flaky: 1, retried: 5, ..Totals::default() });
    }

    #[test]
    fn superseded_results_do_not_count() {
        let mut tally = Tally::default();
        assert!(!count(&mut tally, &result("a", 1, TestOutcome::Failed, true), true));
        assert!(count(&mut tally, &result("a", 1, TestOutcome::Passed, false), true));
        assert_eq!(tally.totals(), Totals { passed: 1, flaky: 1, retried: 1, ..Totals::default() });
    }

    #[test]
    fn a_superseded_row_is_not_replaced_within_its_attempt() {
        let superseded =
            |name, attempt| TestResult { superseded: true, ..row(name, attempt, TestOutcome::Failed) };
        let mut tally = Tally::default();
        count(&mut tally, &superseded("x", 1), true);
        assert!(!count(&mut tally, &row("y", 1, TestOutcome::Passed), true));
        assert_eq!((tally.settle(), tally.totals().failed, tally.totals().passed), (vec![], 1, 1));
        // Only one of two rows is run again.
        let mut tally = Tally::default();
        let places = [superseded("x", 1), superseded("y", 1), row("x", 2, TestOutcome::Passed)]
            .map(|result| tally.count(&result, 1, true).row);
        assert_eq!((places, tally.settle(), tally.totals().failed), ([0, 1, 0], vec![], 1));
        // A later attempt may have another name.
        let mut tally = Tally::default();
        count(&mut tally, &superseded("x (1 ms)", 1), true);
        assert!(count(&mut tally, &row("x (2 ms)", 2, TestOutcome::Passed), true));
        assert_eq!(tally.totals().total(), 1);
    }

    /// A process may repeat rows one after the other, and report each row when it is done.
    #[test]
    fn rows_of_a_process_count_attempts_separately() {
        use TestOutcome::{Failed, Passed};

        let superseded = |name, attempt| TestResult { superseded: true, ..row(name, attempt, Failed) };
        for number in [0, 1] {
            let mut tally = Tally::default();
            let all = [superseded("x", 1), row("x", 2, Passed), row("y", number, Failed)];
            let counted = all.map(|result| tally.count(&result, 1, true));
            assert_eq!(counted.map(|it| (it.row, it.outdated)), [(0, false), (0, false), (1, false)]);
            assert_eq!((tally.totals().failures(), tally.totals().total()), (1, 2));
        }
        // Two rows with equal names.
        let mut tally = Tally::default();
        let all = [superseded("x", 1), row("x", 2, Passed), superseded("x", 1)];
        let places = all.map(|result| tally.count(&result, 1, true).row);
        assert_eq!((places, tally.totals().failures()), ([0, 0, 1], 1));
        assert_eq!(tally.count(&row("x", 2, Passed), 1, true).row, 1);
        assert_eq!((tally.totals().failures(), tally.totals().flaky), (0, 2));
        // A failure that is not superseded is not resolved by a later attempt of another row.
        let mut tally = Tally::default();
        let places = [row("x", 1, Failed), row("y", 2, Passed)].map(|it| tally.count(&it, 1, true).row);
        assert_eq!((places, tally.settle(), tally.totals().failed), ([0, 1], vec![], 1));
        // A failure in quarantine does not hide another failure.
        let mut tally = Tally::default();
        tally.count(&TestResult { quarantined: true, ..row("known", 2, Failed) }, 1, true);
        tally.count(&row("y", 1, Failed), 1, true);
        assert_eq!((tally.totals().failures(), tally.totals().total()), (1, 2));
        // A failed clean-up belongs to an earlier attempt only if it is superseded. It may be reported before or after
        // its test.
        let clean_up = row("[Test Cleanup Failure (T)]", 1, TestOutcome::Error);
        for (superseded, merged) in [(true, vec![(1, 0)]), (false, vec![])] {
            let mut tally = Tally::default();
            tally.count(&row("T", 1, Failed), 1, true);
            tally.count(&TestResult { superseded, ..clean_up.clone() }, 1, true);
            assert!(tally.count(&row("T", 2, Passed), 1, true).flaky);
            assert_eq!((tally.settle(), tally.totals().failures()), (merged, u64::from(!superseded)));
        }
    }

    #[test]
    fn a_failure_is_settled_when_no_attempt_is_left() {
        let mut tally = Tally::default();
        count(&mut tally, &result("a", 1, TestOutcome::Failed, false), false);
        count(&mut tally, &result("b", 1, TestOutcome::Error, false), true);
        count(
            &mut tally,
            &TestResult { quarantined: true, ..result("c", 1, TestOutcome::Failed, false) },
            true,
        );
        count(&mut tally, &result("d", 1, TestOutcome::Failed, true), true);
        count(&mut tally, &result("d", 1, TestOutcome::Passed, false), true);
        assert_eq!((tally.settled(), tally.totals().failures()), (1, 2));
        count(&mut tally, &result("a", 2, TestOutcome::Failed, false), true);
        assert_eq!(tally.settled(), 2);
        // The application itself runs the test once more.
        count(&mut tally, &result("a", 3, TestOutcome::Passed, false), true);
        assert_eq!((tally.settled(), tally.totals().failures()), (1, 1));
    }
}
