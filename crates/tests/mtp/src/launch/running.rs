//! The tests that run at this moment, and how long they have done so.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::time::{Duration, Instant};

use crate::begun::Begun;
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

impl RunningTest {
    fn limit_at(&self) -> Option<Instant> {
        Some(self.since + self.limit?)
    }

    fn slow_at(&self) -> Option<Instant> {
        Some(self.since + self.slow?)
    }

    /// What it takes here, its id as a key included.
    fn bytes(&self) -> usize {
        size_of::<Self>() + 2 * self.uid.len() + self.name.len()
    }
}

/// A test that reaches its limit this much after another one, at most, and at most after this share of the limit, is ended
/// together with it: tests that hang often began together, and each process that is ended costs a new one.
const TOGETHER: Duration = Duration::from_millis(250);
const SHARE: u32 = 20;

/// So much of a name is shown of a test that runs.
const MOST_OF_A_NAME: usize = 64 << 10;
/// The ids and names of all of them may take so many bytes. More are not waited for, nor told of.
pub(super) const MOST_BYTES: usize = 64 << 20;

/// The name that a running test is shown with.
pub(super) fn shown(name: &str) -> Cow<'_, str> {
    if name.len() <= MOST_OF_A_NAME {
        return Cow::Borrowed(name);
    }
    let (head, _) = name.split_at(name.floor_char_boundary(MOST_OF_A_NAME));
    Cow::Owned(format!("{head}…"))
}

/// Those of one process, by the order in which they have begun: mostly few, but an application may begin any number.
#[derive(Debug, Default)]
pub(crate) struct RunningTests {
    tests: Begun<RunningTest>,
    /// When each is to be told of, and when it is to be ended.
    slow: BTreeSet<(Instant, u64)>,
    limits: BTreeSet<(Instant, u64)>,
    bytes: usize,
    left_out: u64,
}

impl RunningTests {
    /// The name that it is shown with. `None`: there is no room for more.
    pub(crate) fn begin(&mut self, uid: String, name: &str, since: Instant, rule: TestRule) -> Option<&str> {
        let name = shown(name);
        let test = RunningTest {
            uid: uid.clone(),
            name: name.clone().into_owned(),
            since,
            limit: rule.limit,
            slow: rule.slow,
        };
        if self.bytes + test.bytes() > MOST_BYTES {
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

    /// Forgets the row of the test. `is_known`: a row of that name had a result before, so that this one is of no other row.
    pub(crate) fn end(&mut self, uid: &str, name: &str, is_known: bool) {
        let name = shown(name);
        let ended = if is_known { self.tests.end_row(uid, &name) } else { self.tests.end(uid, &name) };
        let Some((number, test)) = ended else { return };
        self.bytes -= test.bytes();
        test.slow_at().inspect(|at| _ = self.slow.remove(&(*at, number)));
        test.limit_at().inspect(|at| _ = self.limits.remove(&(*at, number)));
    }

    /// Those that have become slow, each told once.
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

    /// Those that have been running for too long; none as long as another one is about to be.
    pub(crate) fn overdue(&self, now: Instant) -> Vec<RunningTest> {
        if self.end_by_limit().is_none_or(|end| now < end) {
            return Vec::new();
        }
        let over = self.limits.range(..=(now, u64::MAX)).map(|(_, number)| *number);
        // In the order in which they have begun.
        let over: BTreeSet<u64> = over.collect();
        over.iter().filter_map(|number| self.tests.get(*number)).cloned().collect()
    }

    /// When the first test is ended, and those with it that reach their limits soon after it.
    fn end_by_limit(&self) -> Option<Instant> {
        let (first, number) = *self.limits.first()?;
        let limit = self.tests.get(number)?.limit?;
        let together = first + TOGETHER.min(limit / SHARE);
        self.limits.range(..=(together, u64::MAX)).next_back().map(|(end, _)| *end)
    }

    /// When the next one is to be told of, or ended.
    pub(crate) fn next(&self) -> Option<Instant> {
        self.slow.first().map(|(at, _)| *at).into_iter().chain(self.end_by_limit()).min()
    }

    /// Whether a row of the test is running.
    pub(crate) fn contains(&self, uid: &str) -> bool {
        self.tests.contains(uid)
    }

    /// Forgets all rows of the test.
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

    /// Tests that have begun and are not among these: there was no room.
    pub(crate) fn left_out(&self) -> u64 {
        self.left_out
    }

    /// Their ids, each once.
    pub(crate) fn uids(&self) -> Vec<String> {
        let mut seen = HashSet::new();
        let uids = self.tests.iter().map(|test| test.uid.as_str()).filter(|uid| seen.insert(*uid));
        uids.map(str::to_owned).collect()
    }

    pub(crate) fn names(&self) -> Vec<String> {
        self.tests.iter().map(|test| test.name.clone()).collect()
    }

    /// Their names by their ids.
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
        // One that ends meanwhile does not take too long.
        running.end("a", "a", false);
        assert_eq!(running.next(), Some(at(10_300)));
    }

    #[test]
    fn any_number_may_begin_and_names_are_cut() {
        let mut running = RunningTests::default();
        let rule = TestRule { limit: Some(Duration::from_secs(10)), ..TestRule::default() };
        let start = Instant::now();
        for number in 0..100 {
            let shown = running.begin(format!("{number}"), &"é".repeat(1 << 20), start, rule);
            assert!(shown.is_some_and(|name| name.ends_with('…')));
        }
        assert!(running.names().iter().all(|name| name.len() <= MOST_OF_A_NAME + '…'.len_utf8()));
        assert_eq!((running.uids().len(), running.left_out()), (100, 0));
        // Of long ids, as many as there is room for; those that end make room.
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
