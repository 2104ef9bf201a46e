//! The running tests of a process, and their time limits.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::time::{Duration, Instant};

use runtap_model::order;

use crate::active_tests::ActiveTests;
use crate::run::TestRule;

/// A running test.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RunningTest {
    pub uid: String,
    pub name: String,
    pub since: Instant,
    /// The time after which the test is stopped, from its start.
    pub limit: Option<Duration>,
    /// The time after which the test is reported as slow; `None` after it was reported.
    slow: Option<Duration>,
}

impl RunningTest {
    fn limit_at(&self) -> Option<Instant> {
        Some(self.since + self.limit?)
    }

    fn slow_at(&self) -> Option<Instant> {
        Some(self.since + self.slow?)
    }

    /// Returns the memory size of the test, including its id as a key.
    fn bytes(&self) -> usize {
        size_of::<Self>() + 2 * self.uid.len() + self.name.len()
    }
}

/// The maximum time, and share of the limit, by which the limits of tests may differ to be stopped together. Hanging
/// tests often started together, and each stopped process costs a new one.
const MAX_DIFFERENCE: Duration = Duration::from_millis(250);
const LIMIT_SHARE: u32 = 20;

/// The maximum length of the displayed name of a running test, in bytes.
const MAX_NAME_BYTES: usize = 64 << 10;
/// The maximum size of the ids and names of all running tests, in bytes. Further tests are neither tracked nor
/// reported.
pub(super) const MAX_BYTES: usize = 64 << 20;

/// Returns the displayed name of a running test.
pub(super) fn display_name(name: &str) -> Cow<'_, str> {
    if name.len() <= MAX_NAME_BYTES {
        return Cow::Borrowed(name);
    }
    let (head, _) = name.split_at(name.floor_char_boundary(MAX_NAME_BYTES));
    Cow::Owned(format!("{head}…"))
}

/// The running tests of one process, in start order. Usually few, but an application may start any number.
#[derive(Debug, Default)]
pub(crate) struct RunningTests {
    tests: ActiveTests<RunningTest>,
    /// The times at which tests are reported as slow, and at which they are stopped.
    slow: BTreeSet<(Instant, u64)>,
    limits: BTreeSet<(Instant, u64)>,
    bytes: usize,
    left_out: u64,
}

impl RunningTests {
    /// Adds a test. Returns its displayed name, or `None` if the tests exceed the memory limit.
    pub(crate) fn begin(&mut self, uid: String, name: &str, since: Instant, rule: TestRule) -> Option<&str> {
        let name = display_name(name);
        let test = RunningTest {
            uid: uid.clone(),
            name: name.clone().into_owned(),
            since,
            limit: rule.limit,
            slow: rule.slow,
        };
        if self.bytes + test.bytes() > MAX_BYTES {
            self.left_out += 1;
            return None;
        }
        self.bytes += test.bytes();
        let (slow, limit) = (test.slow_at(), test.limit_at());
        let number = self.tests.begin(uid, &name, test);
        self.slow.extend(slow.map(|at| (at, number)));
        self.limits.extend(limit.map(|at| (at, number)));
        self.tests.get(number).map(|test| test.name.as_str())
    }

    /// Removes a row of the test. `is_known` is whether a row with that name already had a result, so that this result
    /// belongs to no other row.
    pub(crate) fn end(&mut self, uid: &str, name: &str, is_known: bool) {
        let name = display_name(name);
        let ended = if is_known { self.tests.end_row(uid, &name) } else { self.tests.end(uid, &name) };
        let Some((number, test)) = ended else { return };
        self.bytes -= test.bytes();
        test.slow_at().inspect(|at| _ = self.slow.remove(&(*at, number)));
        test.limit_at().inspect(|at| _ = self.limits.remove(&(*at, number)));
    }

    /// Returns the tests that have become slow. Each test is returned once.
    pub(crate) fn slow(&mut self, now: Instant) -> Vec<RunningTest> {
        let mut told = Vec::new();
        while let Some((_, number)) = self.slow.first().filter(|(at, _)| *at <= now).copied() {
            self.slow.pop_first();
            if let Some(test) = self.tests.get_mut(number) {
                test.slow = None;
                told.push(test.clone());
            }
        }
        told
    }

    /// Returns the tests that have exceeded their limits. Empty while another test is about to exceed its limit.
    pub(crate) fn overdue(&self, now: Instant) -> Vec<RunningTest> {
        if self.end_by_limit().is_none_or(|end| now < end) {
            return Vec::new();
        }
        let over = self.limits.range(..=(now, u64::MAX)).map(|(_, number)| *number);
        // In start order.
        let over = order::to_set(over);
        over.iter().filter_map(|number| self.tests.get(*number)).cloned().collect()
    }

    /// Returns the time at which the next tests are stopped: when the last of the tests whose limits are close together
    /// has exceeded its limit.
    fn end_by_limit(&self) -> Option<Instant> {
        let (first, number) = *self.limits.first()?;
        let limit = self.tests.get(number)?.limit?;
        let together = first + MAX_DIFFERENCE.min(limit / LIMIT_SHARE);
        self.limits.range(..=(together, u64::MAX)).next_back().map(|(end, _)| *end)
    }

    /// Returns the time of the next report or stop.
    pub(crate) fn next(&self) -> Option<Instant> {
        self.slow.first().map(|(at, _)| *at).into_iter().chain(self.end_by_limit()).min()
    }

    /// Returns whether a row of the test is running.
    pub(crate) fn contains(&self, uid: &str) -> bool {
        self.tests.contains(uid)
    }

    /// Returns whether a row of the test with this displayed name is running.
    pub(crate) fn contains_row(&self, uid: &str, name: &str) -> bool {
        self.tests.contains_row(uid, name)
    }

    /// Removes all rows of the test.
    pub(crate) fn end_all(&mut self, uid: &str) {
        while self.tests.contains(uid) {
            self.end(uid, "", false);
        }
    }

    pub(crate) fn take(&mut self) -> Vec<RunningTest> {
        std::mem::take(self).tests.into_values().collect()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.tests.is_empty()
    }

    /// Returns the number of started tests that are not tracked because of the memory limit.
    pub(crate) fn left_out(&self) -> u64 {
        self.left_out
    }

    /// Returns the ids of the running tests without duplicates.
    pub(crate) fn uids(&self) -> Vec<String> {
        let mut seen = HashSet::new();
        let uids = self.tests.iter().map(|test| test.uid.as_str()).filter(|uid| seen.insert(*uid));
        uids.map(str::to_owned).collect()
    }

    pub(crate) fn names(&self) -> Vec<String> {
        self.tests.iter().map(|test| test.name.clone()).collect()
    }

    /// Returns the names of the running tests by id.
    pub(crate) fn by_uid(&self) -> BTreeMap<String, String> {
        self.tests.iter().map(|test| (test.uid.clone(), test.name.clone())).collect()
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
        running.begin("a".into(), "A", at(0), limits(3, 10));
        running.begin("b".into(), "B", at(1), limits(4, 10));
        assert_eq!(running.next(), Some(at(3)));
        let names = |tests: Vec<RunningTest>| tests.into_iter().map(|test| test.name).collect::<Vec<_>>();
        assert_eq!(names(running.slow(at(3))), ["A"]);
        assert_eq!(names(running.slow(at(5))), ["B"]);
        assert!(running.slow(at(9)).is_empty());
        assert_eq!(running.next(), Some(at(10)));
        assert_eq!(names(running.overdue(at(10))), ["A"]);
        running.end("a", "A", false);
        assert_eq!(running.next(), Some(at(11)));
        assert_eq!(running.names(), ["B"]);
        running.end("b", "B", false);
        assert_eq!(running.next(), None);
    }

    #[test]
    fn tests_that_reach_their_limits_together_are_ended_together() {
        let start = Instant::now();
        let at = |millis| start + Duration::from_millis(millis);
        let limit = TestRule { limit: Some(Duration::from_secs(10)), ..TestRule::default() };
        let mut running = RunningTests::default();
        for (uid, began) in [("a", 0), ("b", 250), ("c", 300)] {
            running.begin(uid.into(), uid, at(began), limit);
        }
        assert_eq!(running.next(), Some(at(10_250)));
        assert!(running.overdue(at(10_249)).is_empty());
        let uids: Vec<_> = running.overdue(at(10_250)).into_iter().map(|test| test.uid).collect();
        assert_eq!(uids, ["a", "b"]);
        // A test that ends meanwhile has not exceeded its limit.
        running.end("a", "a", false);
        assert_eq!(running.next(), Some(at(10_300)));
    }

    #[test]
    fn any_number_of_tests_may_start_and_long_names_are_truncated() {
        let mut running = RunningTests::default();
        let rule = TestRule { limit: Some(Duration::from_secs(10)), ..TestRule::default() };
        let start = Instant::now();
        for number in 0..100 {
            let display_name = running.begin(format!("{number}"), &"é".repeat(1 << 20), start, rule);
            assert!(display_name.is_some_and(|name| name.ends_with('…')));
        }
        assert!(running.names().iter().all(|name| name.len() <= MAX_NAME_BYTES + '…'.len_utf8()));
        assert_eq!((running.uids().len(), running.left_out()), (100, 0));
        // Long ids are limited by memory, which is released when tests end.
        for _ in 0..100 {
            running.begin("u".repeat(1 << 20), "", start, rule);
        }
        let more = running.tests.len() - 100;
        assert!((20..40).contains(&more) && running.left_out() == 100 - more as u64, "{more}");
        for _ in 0..more {
            running.end(&"u".repeat(1 << 20), "", false);
        }
        for number in 0..100 {
            running.end(&format!("{number}"), &"é".repeat(1 << 20), false);
        }
        assert!(running.is_empty() && running.limits.is_empty());
        assert_eq!((running.bytes, running.next()), (0, None));
    }
}
