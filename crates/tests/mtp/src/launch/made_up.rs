//! Results that the runner gives, since the process does not.

use std::time::Duration;

use super::running::{RunningTest, shown};
use super::supervise::Supervisor;
use crate::event::{Exception, State, TestResult};

impl Supervisor<'_> {
    /// Gives a test up that takes too long.
    pub(super) fn give_up(&mut self, test: &RunningTest, message: String) {
        self.made_up(test, State::Timeout, message);
        self.given_up.push((test.uid.clone(), test.name.clone()));
    }

    /// Whether this is the result of a test that was given up, which says once more how it ended: it has had its time. One of
    /// a later attempt counts.
    pub(super) fn is_given_up(&mut self, result: &TestResult) -> bool {
        let name = shown(&result.name);
        let place = self.given_up.iter().position(|(uid, of)| *uid == result.uid && *of == name);
        let place = place.filter(|_| result.attempt <= self.spec.attempt);
        place.map(|place| self.given_up.swap_remove(place)).is_some()
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
            attempt: self.spec.attempt,
            // The test ran in the latest attempt.
            host_attempt: self.host_attempt,
            exceptions: vec![Exception { message: Some(message), ..Exception::default() }],
            ..TestResult::default()
        };
        self.result(result);
    }
}
