//! Rows whose outcome a later process decides.
//!
//! A process that is stopped because of one test may have reported results of other tests. Such a result is held back,
//! and counts if no later process reports the same row. Rows that a process did not run are remembered, too.

use std::collections::{BTreeSet, HashMap};

use runtap_model::order;

use super::{Coordinator, HeldResult};
use crate::event::{Level, ModuleFailure, ModuleId, RunEvent, TestOutcome, TestResult};
use crate::launch::named;
use crate::tally::subject;

/// The results of one module that are held back, and the rows without a result.
#[derive(Debug, Default)]
pub(super) struct HeldRows {
    /// The results by test id and row, each with its number.
    tests: HashMap<String, HashMap<String, Vec<(usize, HeldResult)>>>,
    /// The number of results that were held back.
    count: usize,
    /// The names of rows without a result, by test id.
    missing: HashMap<String, BTreeSet<String>>,
}

/// Returns the row of a result: a clean-up belongs to the row that it is about.
fn row_of(name: &str) -> &str {
    subject(name).unwrap_or(name)
}

impl HeldRows {
    /// Holds back a result.
    pub(super) fn hold(&mut self, held: HeldResult) {
        let rows = self.tests.entry(held.result.uid.clone()).or_default();
        rows.entry(row_of(&held.result.name).to_owned()).or_default().push((self.count, held));
        self.count += 1;
    }

    /// Adds a row that a process did not run.
    pub(super) fn add_missing(&mut self, uid: String, name: String) {
        self.missing.entry(uid).or_default().insert(name);
    }

    /// Returns a failure with the names of the rows that still have no result.
    pub(super) fn not_run(&self) -> Option<ModuleFailure> {
        let names = order::to_set(self.missing.values().flatten().map(String::as_str));
        let names: Vec<_> = names.into_iter().collect();
        let have = if names.len() == 1 { "row has" } else { "rows have" };
        let text = format!(
            "{} {have} no result, of tests that have results for other rows: {}",
            names.len(),
            named(&names)
        );
        (!names.is_empty()).then_some(ModuleFailure::NotRun(text))
    }

    /// Handles a result of a later process: drops the results that were held back for its row, and for the clean-up of
    /// that row. Failures are kept if the later result is skipped.
    pub(super) fn drop_replaced(&mut self, new: &TestResult) {
        if let Some(names) = self.missing.get_mut(&new.uid) {
            names.remove(&new.name);
        }
        let Some(rows) = self.tests.get_mut(&new.uid) else { return };
        let Some(row) = rows.get_mut(row_of(&new.name)) else { return };
        row.retain(|(_, held)| {
            let TestResult { name, execution, .. } = &held.result;
            let is_of_row = *name == new.name || subject(name) == Some(&new.name);
            !is_of_row || new.execution.state == TestOutcome::Skipped && execution.state.is_failure()
        });
    }

    /// Removes and returns the results that no later process replaced, in order.
    pub(super) fn take(&mut self) -> Vec<HeldResult> {
        let rows = std::mem::take(&mut self.tests).into_values().flat_map(HashMap::into_values);
        let mut left: Vec<_> = rows.flatten().collect();
        order::sort_by_key(&mut left, |(number, _)| *number);
        left.into_iter().map(|(_, held)| held).collect()
    }
}

impl Coordinator<'_> {
    /// Counts the results that no later process replaced, as results of the last attempt of their tests.
    pub(super) fn count_held(&mut self, id: ModuleId) {
        let Some(module) = self.modules.get_mut(&id) else { return };
        let held = module.held.take();
        let names: Vec<_> = held.iter().map(|held| held.result.name.as_str()).collect();
        if !names.is_empty() {
            let text = format!(
                "using results that were reported while their process was being stopped, because no later process reported \
                 the same rows: {}",
                named(&names)
            );
            (self.on_event)(RunEvent::Message { module: id, level: Level::Warning, text });
        }
        for HeldResult { launch, attempt, result } in held {
            let last = self.modules.get(&id).map_or(0, |module| module.tally.attempt(&result.uid));
            self.attempts.insert(launch, attempt.max(last));
            self.event(RunEvent::TestEnded { module: id, launch, result, so_far: self.so_far });
            self.attempts.remove(&launch);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::{Attempt, LaunchId};

    fn result(name: &str, state: TestOutcome) -> TestResult {
        let execution = Attempt { state, ..Attempt::default() };
        TestResult { uid: "b".to_owned(), name: name.to_owned(), execution, ..TestResult::default() }
    }

    #[test]
    fn only_a_result_of_the_same_row_replaces_a_failure() {
        let names_left = |later: &[(&str, TestOutcome)]| {
            let mut held = HeldRows::default();
            for name in ["x", "y", "[Test Cleanup Failure (y)]"] {
                let result = result(name, TestOutcome::Failed);
                held.hold(HeldResult { launch: LaunchId(0), attempt: 1, result });
            }
            for (name, state) in later {
                held.drop_replaced(&result(name, *state));
            }
            held.drop_replaced(&TestResult { uid: "c".to_owned(), ..result("x", TestOutcome::Passed) });
            held.take().into_iter().map(|held| held.result.name).collect::<Vec<_>>()
        };
        assert_eq!(names_left(&[("y", TestOutcome::Passed)]), ["x"]);
        assert_eq!(
            names_left(&[("x", TestOutcome::Failed), ("z", TestOutcome::Passed)]),
            ["y", "[Test Cleanup Failure (y)]"]
        );
        assert_eq!(names_left(&[("x", TestOutcome::Skipped)]).len(), 3);
        assert!(names_left(&[("y", TestOutcome::Passed), ("x", TestOutcome::Passed)]).is_empty());
    }

    #[test]
    fn a_row_without_a_result_is_missing_until_it_has_one() {
        let mut held = HeldRows::default();
        assert_eq!(held.not_run(), None);
        for name in ["x", "y"] {
            held.add_missing("b".to_owned(), name.to_owned());
        }
        held.drop_replaced(&result("x", TestOutcome::Skipped));
        let Some(ModuleFailure::NotRun(text)) = held.not_run() else { panic!("y has no result") };
        assert_eq!(text, "1 row has no result, of tests that have results for other rows: y");
        held.drop_replaced(&result("y", TestOutcome::Passed));
        assert_eq!(held.not_run(), None);
    }
}
