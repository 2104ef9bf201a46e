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
}

/// Those of one process, in the order in which they have begun: mostly few.
#[derive(Debug, Default)]
pub(crate) struct RunningTests(Vec<RunningTest>);

impl RunningTests {
    pub(crate) fn begin(&mut self, uid: String, name: String, since: Instant, rule: TestRule) {
        self.0.push(RunningTest { uid, name, since, limit: rule.limit, slow: rule.slow });
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

    /// Those that have been running for too long.
    pub(crate) fn overdue(&self, now: Instant) -> Vec<RunningTest> {
        let is_over =
            |test: &&RunningTest| test.limit.is_some_and(|limit| now.duration_since(test.since) >= limit);
        self.0.iter().filter(is_over).cloned().collect()
    }

    /// When the next one is to be told of, or ended.
    pub(crate) fn next(&self) -> Option<Instant> {
        let times =
            self.0.iter().flat_map(|test| test.slow.into_iter().chain(test.limit).map(|it| test.since + it));
        times.min()
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
}
