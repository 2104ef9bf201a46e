//! The tests that run at this moment, and how long they have done so.

use std::time::{Duration, Instant};

/// A test that has begun.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RunningTest {
    pub uid: String,
    pub name: String,
    pub since: Instant,
    told_slow: bool,
}

/// Those of one process, in the order in which they have begun: mostly few.
#[derive(Debug, Default)]
pub(crate) struct RunningTests(Vec<RunningTest>);

impl RunningTests {
    pub(crate) fn begin(&mut self, uid: String, name: String, since: Instant) {
        self.0.push(RunningTest { uid, name, since, told_slow: false });
    }

    /// Forgets the test; of several with this id, the first.
    pub(crate) fn end(&mut self, uid: &str) {
        if let Some(place) = self.0.iter().position(|test| test.uid == uid) {
            self.0.remove(place);
        }
    }

    /// Those that have been running for `limit`, each told once.
    pub(crate) fn slow(&mut self, limit: Duration, now: Instant) -> Vec<RunningTest> {
        let slow = |test: &&mut RunningTest| !test.told_slow && now.duration_since(test.since) >= limit;
        let tell = |test: &mut RunningTest| {
            test.told_slow = true;
            test.clone()
        };
        self.0.iter_mut().filter(slow).map(tell).collect()
    }

    /// Those that have been running for `limit`.
    pub(crate) fn overdue(&self, limit: Duration, now: Instant) -> Vec<RunningTest> {
        self.0.iter().filter(|test| now.duration_since(test.since) >= limit).cloned().collect()
    }

    /// When the next one is to be told of, or ended.
    pub(crate) fn next(&self, slow: Option<Duration>, limit: Option<Duration>) -> Option<Instant> {
        let slow =
            self.0.iter().filter(|test| !test.told_slow).filter_map(|test| Some(test.since + slow?)).min();
        let limit = self.0.iter().filter_map(|test| Some(test.since + limit?)).min();
        slow.into_iter().chain(limit).min()
    }

    pub(crate) fn take(&mut self) -> Vec<RunningTest> {
        std::mem::take(&mut self.0)
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
        let (slow, limit) = (Duration::from_secs(3), Duration::from_secs(10));
        let mut running = RunningTests::default();
        running.begin("a".into(), "A".into(), at(0));
        running.begin("b".into(), "B".into(), at(1));
        assert_eq!(running.next(Some(slow), Some(limit)), Some(at(3)));
        let names = |tests: Vec<RunningTest>| tests.into_iter().map(|test| test.name).collect::<Vec<_>>();
        assert_eq!(names(running.slow(slow, at(3))), ["A"]);
        assert_eq!(names(running.slow(slow, at(5))), ["B"]);
        assert!(running.slow(slow, at(9)).is_empty());
        assert_eq!(running.next(Some(slow), Some(limit)), Some(at(10)));
        assert_eq!(names(running.overdue(limit, at(10))), ["A"]);
        running.end("a");
        assert_eq!(running.next(Some(slow), Some(limit)), Some(at(11)));
        assert_eq!(running.next(None, None), None);
        assert_eq!(running.names(), ["B"]);
    }
}
