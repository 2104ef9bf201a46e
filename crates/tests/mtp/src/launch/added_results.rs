//! Results that the runner adds for tests whose process reports none.

use std::time::Duration;

use super::running::{RunningTest, display_name};
use super::supervise::Supervisor;
use crate::event::{Exception, State, TestResult};

/// A test with a time-out result, and in which of the application's own attempts it ran.
#[derive(Debug)]
pub(super) struct TimedOutTest {
    uid: String,
    name: String,
    host_attempt: Option<u32>,
}

impl Supervisor<'_> {
    /// Adds a time-out result for a test.
    pub(super) fn add_timeout(&mut self, test: &RunningTest, message: String) {
        self.add_result(test, State::Timeout, message);
        self.timed_out.push(TimedOutTest {
            uid: test.uid.clone(),
            name: test.name.clone(),
            host_attempt: self.host_attempt,
        });
    }

    /// Returns whether this is a late result of a test that already has a time-out result: a superseded one, or the first
    /// other one of the application's same attempt. Some frameworks report all retries of a test together.
    pub(super) fn is_late_result(&mut self, result: &TestResult) -> bool {
        let name = display_name(&result.name);
        let is_late = |test: &TimedOutTest| {
            test.uid == result.uid && test.name == name && result.host_attempt <= test.host_attempt
        };
        let place = self.timed_out.iter().position(is_late);
        if let Some(place) = place
            && !result.superseded
        {
            self.timed_out.swap_remove(place);
        }
        place.is_some()
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
            attempt: self.host_attempt.map_or(self.spec.attempt, |own| own.max(self.spec.attempt)),
            // The test ran in the latest attempt.
            host_attempt: self.host_attempt,
            exceptions: vec![Exception { message: Some(message), ..Exception::default() }],
            ..TestResult::default()
        };
        self.result(result);
    }
}
