//! Results that the runner gives, since the process does not.

use std::time::Duration;

use super::running::{RunningTest, shown};
use super::supervise::Supervisor;
use crate::event::{Exception, State, TestResult};

/// A test that was given up, in which of the application's own attempts.
#[derive(Debug)]
pub(super) struct GivenUp {
    uid: String,
    name: String,
    host_attempt: Option<u32>,
}

impl Supervisor<'_> {
    /// Gives a test up that takes too long.
    pub(super) fn give_up(&mut self, test: &RunningTest, message: String) {
        self.made_up(test, State::Timeout, message);
        self.given_up.push(GivenUp {
            uid: test.uid.clone(),
            name: test.name.clone(),
            host_attempt: self.host_attempt,
        });
    }

    /// Whether this is a late result of a test that was given up: those that are superseded, and the next one that the application's
    /// same attempt reports. Some frameworks report all retries of a test together.
    pub(super) fn is_given_up(&mut self, result: &TestResult) -> bool {
        let name = shown(&result.name);
        let is_late = |test: &GivenUp| {
            test.uid == result.uid && test.name == name && result.host_attempt <= test.host_attempt
        };
        let place = self.given_up.iter().position(is_late);
        if let Some(place) = place
            && !result.superseded
        {
            self.given_up.swap_remove(place);
        }
        place.is_some()
    }

    /// A result that we give, since the process does not.
    pub(super) fn made_up(&mut self, test: &RunningTest, state: State, message: String) {
        self.made_up_of(&test.uid, &test.name, Some(test.since.elapsed()), state, message);
    }

    /// A result like that of [`made_up`](Self::made_up), for a test that the process did not report as running.
    pub(super) fn made_up_of(
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
