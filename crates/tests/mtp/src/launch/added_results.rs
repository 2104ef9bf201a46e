//! Results that the runner adds for tests whose process reports none.

use std::time::Duration;

use super::running::{RunningTest, display_name};
use super::supervise::Supervisor;
use crate::event::{Attempt, Exception, TestOutcome, TestResult};

/// A row with a time-out result.
#[derive(Debug)]
pub(super) struct TimedOutRow {
    name: String,
    /// The application's own attempt in which the row ran.
    host_attempt: Option<u32>,
    /// Whether the process has reported a late result under this name.
    has_late_result: bool,
}

impl Supervisor<'_> {
    /// Adds a time-out result for a test.
    pub(super) fn add_timeout(&mut self, test: &RunningTest, message: String) {
        self.add_result(test, TestOutcome::Timeout, message);
        let (name, host_attempt) = (test.name.clone(), self.host_attempt);
        let row = TimedOutRow { name, host_attempt, has_late_result: false };
        self.timed_out.entry(test.uid.clone()).or_default().push(row);
    }

    /// Drops late results of rows that already have a time-out result: those of the application's same attempt that
    /// belong to no running row. Holds back results under other names, which may be those of parts of a timed-out test,
    /// until the process has ended. Returns the result if it counts now.
    pub(super) fn drop_late(&mut self, result: TestResult) -> Option<TestResult> {
        let (uid, name) = (&result.uid, display_name(&result.name));
        let Some(rows) = self.timed_out.get_mut(uid) else { return Some(result) };
        if self.tests.contains_row(uid, &name) {
            return Some(result);
        }
        let mut rows = rows.iter_mut().filter(|row| result.host_attempt <= row.host_attempt).peekable();
        if rows.peek().is_none() {
            return Some(result);
        }
        if let Some(row) = rows.find(|row| row.name == name) {
            row.has_late_result = true;
            return None;
        }
        if self.tests.contains(uid) { Some(result) } else { self.late_rows.push(result) }
    }

    /// Counts the late results of tests whose timed-out rows have reported results of their own. Otherwise, the test
    /// started under another name than it reports, as folded tests of `MSTest` do, and the results are parts of it.
    pub(super) fn count_late_rows(&mut self) {
        for result in self.late_rows.take() {
            let rows = self.timed_out.get(&result.uid);
            if rows.is_some_and(|rows| rows.iter().all(|row| row.has_late_result)) {
                self.result(result);
            }
        }
    }

    /// Returns whether a row that has a time-out result was started again in the application's same attempt, as
    /// frameworks with retries do. Its process is being stopped, and a retry of the runner decides.
    pub(super) fn is_late_start(&self, uid: &str, name: &str) -> bool {
        let name = display_name(name);
        let mut rows = self.timed_out.get(uid).into_iter().flatten();
        rows.any(|row| row.name == name && self.host_attempt <= row.host_attempt)
    }

    /// Adds a result for a running test.
    pub(super) fn add_result(&mut self, test: &RunningTest, state: TestOutcome, message: String) {
        self.add_result_for(&test.uid, &test.name, Some(test.since.elapsed()), state, message);
    }

    /// Adds a result for a test that the process did not report as running.
    pub(super) fn add_result_for(
        &mut self,
        uid: &str,
        name: &str,
        duration: Option<Duration>,
        state: TestOutcome,
        message: String,
    ) {
        let result = TestResult {
            uid: uid.to_owned(),
            name: name.to_owned(),
            attempt: self.host_attempt.map_or(self.spec.attempt, |own| own.max(self.spec.attempt)),
            // The test ran in the latest attempt.
            host_attempt: self.host_attempt,
            execution: Attempt {
                state,
                duration_ns: duration.map(|duration| i64::try_from(duration.as_nanos()).unwrap_or(i64::MAX)),
                exceptions: vec![Exception { message, ..Exception::default() }],
                ..Attempt::default()
            },
            ..TestResult::default()
        };
        self.result(result);
    }
}
