//! Results that the runner adds for tests whose process reports none.

use std::time::Duration;

use super::running::{RunningTest, display_name};
use super::supervise::Supervisor;
use crate::event::{Exception, State, TestResult};

impl Supervisor<'_> {
    /// Adds a time-out result for a test.
    pub(super) fn add_timeout(&mut self, test: &RunningTest, message: String) {
        self.add_result(test, State::Timeout, message);
        self.timed_out.push((test.uid.clone(), test.name.clone()));
    }

    /// Returns whether this is a late result of a test that already has a time-out result. Results of a later attempt
    /// count.
    pub(super) fn is_late_result(&mut self, result: &TestResult) -> bool {
        let name = display_name(&result.name);
        let place = self.timed_out.iter().position(|(uid, of)| *uid == result.uid && *of == name);
        let place = place.filter(|_| result.attempt <= self.spec.attempt);
        place.map(|place| self.timed_out.swap_remove(place)).is_some()
    }

    /// Adds a result for a running test.
    pub(super) fn add_result(&mut self, test: &RunningTest, state: State, message: String) {
        self.add_result_for(&test.uid, &test.name, Some(test.since.elapsed()), state, message);
    }

    /// Adds a result for a test that the process did not report as running.
    pub(super) fn add_result_for(
        &mut self,
        uid: &str,
        name: &str,
        duration: Option<Duration>,
        state: State,
        message: String,
    ) {
        let result = TestResult {
            uid: uid.to_owned(),
            name: name.to_owned(),
            state,
            duration,
            attempt: self.spec.attempt,
            // The test ran in the latest attempt.
            host_attempt: self.host_attempt,
            exceptions: vec![Exception { message: Some(message), ..Exception::default() }],
            ..TestResult::default()
        };
        self.result(result);
    }
}
