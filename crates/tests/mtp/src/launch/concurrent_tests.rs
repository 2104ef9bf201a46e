//! Tests that ran beside a test that timed out. Their process was stopped because of that test, so they are run again
//! without it. Results that they report meanwhile are held back, and count only if no other process has run their rows.

use std::collections::HashSet;

use super::supervise::{KillReason, StopState, Supervisor};
use super::{can_be_requested, named};
use crate::event::{Attempt, TestResult};
use crate::run::HeldResult;

/// The maximum size of the results that are held back, in bytes. Further results count immediately.
const MAX_BYTES: usize = 64 << 20;

/// The results of a process that are held back, in order.
#[derive(Debug, Default)]
pub(super) struct HeldResults {
    all: Vec<TestResult>,
    uids: HashSet<String>,
    bytes: usize,
}

impl HeldResults {
    /// Adds a result, or returns it if the limit is exceeded.
    pub(super) fn push(&mut self, result: TestResult) -> Option<TestResult> {
        let bytes = self.bytes + bytes_of(&result);
        if bytes > MAX_BYTES {
            return Some(result);
        }
        self.bytes = bytes;
        self.uids.insert(result.uid.clone());
        self.all.push(result);
        None
    }

    /// Removes and returns all results.
    pub(super) fn take(&mut self) -> Vec<TestResult> {
        std::mem::take(self).all
    }
}

/// Returns the memory size of a result, including its texts.
fn bytes_of(result: &TestResult) -> usize {
    let length = |text: &Option<String>| text.as_ref().map_or(0, String::len);
    let Attempt { reason, exceptions, expected, actual, stdout, stderr, .. } = &result.execution;
    let exceptions =
        exceptions.iter().map(|it| size_of_val(it) + it.message.len() + it.type_name.len() + it.stack.len());
    let texts = [reason, expected, actual].map(length).iter().sum::<usize>();
    size_of::<TestResult>()
        + 2 * result.uid.len()
        + result.name.len()
        + stdout.len()
        + stderr.len()
        + texts
        + exceptions.sum::<usize>()
}

impl Supervisor<'_> {
    /// Holds back a failure of a test that ran beside a test that timed out, if it was reported after the process was
    /// requested to stop, and all later results of that test. Returns the result if it counts now.
    pub(super) fn hold_back(&mut self, result: TestResult) -> Option<TestResult> {
        let TestResult { uid, execution, .. } = &result;
        let is_disturbed = self.overdue
            && !self.run_stopped
            && self.can_run_again(uid)
            && (self.held.uids.contains(uid) || execution.state.is_failure() && self.tests.contains(uid));
        if is_disturbed { self.held.push(result) } else { Some(result) }
    }

    /// Counts the results whose tests are not run again. Returns the others.
    pub(super) fn release_held(&mut self, run_again: &[String]) -> Vec<HeldResult> {
        let run_again: HashSet<&str> = run_again.iter().map(String::as_str).collect();
        let held = self.held.take();
        let (held, counting): (Vec<_>, Vec<_>) =
            held.into_iter().partition(|result| run_again.contains(result.uid.as_str()));
        for result in counting {
            self.result(result);
        }
        let (launch, attempt) = (self.spec.launch, self.spec.attempt);
        held.into_iter().map(|result| HeldResult { launch, attempt, result }).collect()
    }

    /// Removes the tests that a process was running when it was stopped because of another test. Returns their ids.
    pub(super) fn take_concurrent_tests(&mut self) -> Vec<String> {
        let was_told = match self.stop_state {
            StopState::Requested { .. } | StopState::Killed(KillReason::IgnoredStop) => true,
            StopState::Running | StopState::Killed(KillReason::Failed | KillReason::RunStopped) => false,
        };
        if !self.overdue || self.run_stopped || !was_told {
            return Vec::new();
        }
        let uids: Vec<_> = self.tests.uids().into_iter().filter(|uid| self.can_run_again(uid)).collect();
        for uid in &uids {
            self.tests.end_all(uid);
            self.seen.insert(uid);
        }
        if !uids.is_empty() {
            let count = if uids.len() == 1 { "1 test" } else { &format!("{} tests", uids.len()) };
            let all: Vec<_> = uids.iter().map(String::as_str).collect();
            self.notify(format!(
                "the process was stopped because a test timed out; {count} that ran at the same time will be run again \
                 without that test: {}",
                named(&all)
            ));
        }
        uids
    }

    /// Returns whether another process can run the test again. Rows of a test with results would be counted twice.
    fn can_run_again(&self, uid: &str) -> bool {
        !self.seen.contains(uid) && can_be_requested(uid)
    }
}
