//! The tests that run at this moment, and how long they have done so.

use std::collections::HashSet;
use std::time::{Duration, Instant};

use crate::run::TestRule;

/// A test that has begun.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RunningTest {
    pub uid: String,
    pub name: String,
    pub since: Instant,
    /// When it is ended, counted from its beginning.
    pub limit: Option<Duration>,
    /// When it is told of; `None` after that, too.
    slow: Option<Duration>,
    /// Its process says that it failed after it was told to end because of another test: none of its results count.
    disturbed: bool,
}

impl RunningTest {
    fn limit_at(&self) -> Option<Instant> {
        Some(self.since + self.limit?)
    }
}

/// A test that reaches its limit this much after another one, at most, and at most after this share of the limit, is ended
/// together with it: tests that hang often began together, and each process that is ended costs a new one.
const TOGETHER: Duration = Duration::from_millis(250);
const SHARE: u32 = 20;

/// Those of one process, in the order in which they have begun: mostly few.
#[derive(Debug, Default)]
pub(crate) struct RunningTests(Vec<RunningTest>);

impl RunningTests {
    pub(crate) fn begin(&mut self, uid: String, name: String, since: Instant, rule: TestRule) {
        self.0.push(RunningTest { uid, name, since, limit: rule.limit, slow: rule.slow, disturbed: false });
    }

    /// Forgets the test; of several with this id, the first.
    pub(crate) fn end(&mut self, uid: &str) {
        if let Some(place) = self.0.iter().position(|test| test.uid == uid) {
            self.0.remove(place);
        }
    }

    /// Those that have become slow, each told once.
    pub(crate) fn slow(&mut self, now: Instant) -> Vec<RunningTest> {
        let is_slow =
            |test: &&mut RunningTest| test.slow.is_some_and(|slow| now.duration_since(test.since) >= slow);
        let tell = |test: &mut RunningTest| {
            test.slow = None;
            test.clone()
        };
        self.0.iter_mut().filter(is_slow).map(tell).collect()
    }

    /// Those that have been running for too long; none as long as another one is about to be.
    pub(crate) fn overdue(&self, now: Instant) -> Vec<RunningTest> {
        if self.end_by_limit().is_none_or(|end| now < end) {
            return Vec::new();
        }
        let is_over = |test: &&RunningTest| test.limit_at().is_some_and(|end| now >= end);
        self.0.iter().filter(is_over).cloned().collect()
    }

    /// When the first test is ended, and those with it that reach their limits soon after it.
    fn end_by_limit(&self) -> Option<Instant> {
        let ends = || self.0.iter().filter_map(|test| Some((test.limit_at()?, test.limit?)));
        let (first, limit) = ends().min()?;
        let together = first + TOGETHER.min(limit / SHARE);
        ends().map(|(end, _)| end).filter(|end| *end <= together).max()
    }

    /// When the next one is to be told of, or ended.
    pub(crate) fn next(&self) -> Option<Instant> {
        let slow = self.0.iter().filter_map(|test| Some(test.since + test.slow?)).min();
        slow.into_iter().chain(self.end_by_limit()).min()
    }

    /// Whether a result is left out since the test's process was told to end because of another test, and the test has said
    /// nothing before: a failure, and all that follows it.
    pub(crate) fn is_disturbed(&mut self, uid: &str, has_failed: bool) -> bool {
        let test = self.0.iter_mut().find(|test| test.uid == uid);
        test.is_some_and(|test| {
            test.disturbed |= has_failed;
            test.disturbed
        })
    }

    pub(crate) fn take(&mut self) -> Vec<RunningTest> {
        std::mem::take(&mut self.0)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Their ids, each once.
    pub(crate) fn uids(&self) -> Vec<String> {
        let mut seen = HashSet::new();
        let uids = self.0.iter().map(|test| test.uid.as_str()).filter(|uid| seen.insert(*uid));
        uids.map(str::to_owned).collect()
    }

    pub(crate) fn names(&self) -> Vec<String> {
        self.0.iter().map(|test| test.name.clone()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tests_are_slow_once_and_overdue_until_they_end() {
        let start = Instant::now();
        let at = |seconds| start + Duration::from_secs(seconds);
        let limits = |slow, limit| TestRule {
            slow: Some(Duration::from_secs(slow)),
            limit: Some(Duration::from_secs(limit)),
            ..TestRule::default()
        };
        let mut running = RunningTests::default();
        running.begin("a".into(), "A".into(), at(0), limits(3, 10));
        running.begin("b".into(), "B".into(), at(1), limits(4, 10));
        assert_eq!(running.next(), Some(at(3)));
        let names = |tests: Vec<RunningTest>| tests.into_iter().map(|test| test.name).collect::<Vec<_>>();
        assert_eq!(names(running.slow(at(3))), ["A"]);
        assert_eq!(names(running.slow(at(5))), ["B"]);
        assert!(running.slow(at(9)).is_empty());
        assert_eq!(running.next(), Some(at(10)));
        assert_eq!(names(running.overdue(at(10))), ["A"]);
        running.end("a");
        assert_eq!(running.next(), Some(at(11)));
        assert_eq!(running.names(), ["B"]);
        running.end("b");
        assert_eq!(running.next(), None);
    }

    #[test]
    fn tests_that_reach_their_limits_together_are_ended_together() {
        let start = Instant::now();
        let at = |millis| start + Duration::from_millis(millis);
        let limit = TestRule { limit: Some(Duration::from_secs(10)), ..TestRule::default() };
        let mut running = RunningTests::default();
        for (uid, began) in [("a", 0), ("b", 250), ("c", 300)] {
            running.begin(uid.into(), uid.into(), at(began), limit);
        }
        assert_eq!(running.next(), Some(at(10_250)));
        assert!(running.overdue(at(10_249)).is_empty());
        let uids: Vec<_> = running.overdue(at(10_250)).into_iter().map(|test| test.uid).collect();
        assert_eq!(uids, ["a", "b"]);
        // One that ends meanwhile does not take too long.
        running.end("a");
        assert_eq!(running.next(), Some(at(10_300)));
    }

    #[test]
    fn after_a_failure_a_disturbed_test_has_no_result() {
        let mut running = RunningTests::default();
        running.begin("a".into(), "A".into(), Instant::now(), TestRule::default());
        assert!(!running.is_disturbed("a", false) && !running.is_disturbed("b", true));
        assert!(running.is_disturbed("a", true) && running.is_disturbed("a", false));
    }
}
