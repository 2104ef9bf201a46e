//! Checks of completeness at each level of TAP subtests: the plan, the numbers of points, and the summary. A level is
//! checked at the point of its subtest, after which it has no more lines.

use std::collections::HashSet;
use std::mem;

use crate::formats::case::{self, Event};

/// The failures of a subtest that were reported, including nested subtests.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct SubtestFailures {
    pub(super) failed: bool,
    /// Whether a test failed because the subtest or suite around it had ended.
    pub(super) cancelled: bool,
}

/// The points of one subtest, or of the command.
#[derive(Debug, Default)]
struct Level {
    count: u64,
    plan: Option<u64>,
    /// A second plan that differs from the first.
    other_plan: Option<u64>,
    numbers: HashSet<u64>,
    /// The first repeated number, and the first number that is too large.
    repeated: Option<u64>,
    huge: Option<String>,
    /// The number of failed points, including subtests.
    not_ok: u64,
    within: SubtestFailures,
    /// The counts in the summary.
    failures: Option<u64>,
    cancelled: u64,
    /// An announced subtest of this level whose point is missing so far.
    announced: Option<String>,
    /// The point that opened this subtest with a brace: its uid, and whether it passed.
    opener: Option<(String, bool)>,
}

impl Level {
    /// Returns whether this is a subtest. Indented text may look like a point without a number.
    fn is_subtest(&self) -> bool {
        let has_points = self.opener.is_some() && self.count > 0;
        self.plan.is_some() || has_points || !self.numbers.is_empty() || self.huge.is_some()
    }

    /// Returns the problem of this level. `subtest` is its name.
    fn problem(&self, subtest: Option<&str>) -> Option<Event> {
        let subtest = subtest.map(|name| case::shortened(name, case::MAX_REASON_BYTES));
        let (who, of) = match subtest {
            Some(name) => (format!("the subtest {name}"), format!(" of the subtest {name}")),
            None => ("the command".to_owned(), String::new()),
        };
        let Self { count, .. } = self;
        let Some(plan) = self.plan else {
            return Some(Event::Problem(format!("the plan{of} is missing: the output may be truncated")));
        };
        if *count < plan {
            return Some(Event::Problem(format!("{who} ended after {count} of {plan} tests")));
        }
        if *count > plan {
            return Some(Event::Problem(format!("there were {count} tests{of}, but the plan is {plan}")));
        }
        let beyond = || self.numbers.iter().filter(|number| !(1..=plan).contains(*number)).min();
        let failures = self.failures.unwrap_or(0).saturating_add(self.cancelled);
        let not_ok = self.not_ok;
        let told = if let Some(number) = self.repeated {
            format!("several tests{of} have the number {number}")
        } else if let Some(number) = self.huge.clone().or_else(|| beyond().map(u64::to_string)) {
            format!("a test{of} has the number {number}, but the plan is 1..{plan}")
        } else if let Some(other) = self.other_plan {
            format!("there are two plans{of}: 1..{plan} and 1..{other}")
        } else if failures > not_ok {
            format!("the summary{of} counts {failures} failures, but there are {not_ok}")
        } else {
            return None;
        };
        Some(Event::Unreadable(told))
    }
}

/// The open levels by depth.
#[derive(Debug, Default)]
pub(super) struct Levels {
    open: Vec<Level>,
}

impl Levels {
    fn level(&mut self, depth: usize) -> &mut Level {
        while self.open.len() <= depth {
            self.open.push(Level::default());
        }
        self.open.get_mut(depth).unwrap_or_else(|| unreachable!("the level was pushed"))
    }

    /// Returns the number of the next point of a level.
    pub(super) fn next(&self, depth: usize) -> u64 {
        self.open.get(depth).map_or(0, |level| level.count) + 1
    }

    /// Handles a point, which ends the subtest before it. Returns the failures of that subtest.
    pub(super) fn point(
        &mut self,
        depth: usize,
        number: &str,
        is_ok: bool,
        uid: &str,
        out: &mut Vec<Event>,
    ) -> SubtestFailures {
        let is_announced = self.level(depth).announced.take().is_some();
        let within = self.close(depth + 1, Some((uid, is_ok)), is_announced, out);
        let level = self.level(depth);
        level.count += 1;
        level.not_ok += u64::from(!is_ok);
        match number.parse() {
            Ok(number) if !level.numbers.insert(number) => {
                level.repeated.get_or_insert(number);
            }
            Err(_) if !number.is_empty() => {
                level.huge.get_or_insert_with(|| case::shortened(number, case::MAX_REASON_BYTES));
            }
            _ => {}
        }
        within
    }

    /// Records that the last point of a level failed.
    pub(super) fn failed(&mut self, depth: usize, cancelled: bool) {
        let within = &mut self.level(depth).within;
        *within = SubtestFailures { failed: true, cancelled: cancelled || within.cancelled };
    }

    pub(super) fn plan(&mut self, depth: usize, plan: u64) {
        self.forget_comment(depth);
        let level = self.level(depth);
        match level.plan {
            Some(first) if first != plan => level.other_plan = Some(plan),
            _ => level.plan = Some(plan),
        }
    }

    /// Forgets an announced subtest without lines: a test may have printed the comment, and the plan shows whether a
    /// point is missing.
    fn forget_comment(&mut self, depth: usize) {
        if self.open.len() <= depth + 1 {
            self.level(depth).announced = None;
        }
    }

    /// Handles the announcement of a subtest by a comment.
    pub(super) fn announce(&mut self, depth: usize, name: &str, out: &mut Vec<Event>) {
        self.forget_comment(depth);
        match self.level(depth).announced.replace(name.to_owned()) {
            Some(before) => {
                self.close(depth + 1, Some((&before, false)), false, out);
                out.push(no_point(&before));
            }
            None => {
                self.close(depth + 1, None, false, out);
            }
        }
    }

    /// Handles the start of a subtest in braces.
    pub(super) fn open(&mut self, depth: usize, uid: &str, is_ok: bool) {
        self.level(depth).opener = Some((uid.to_owned(), is_ok));
    }

    /// Handles a closing brace. Returns whether it ends a subtest.
    pub(super) fn brace(&mut self, depth: usize, out: &mut Vec<Event>) -> bool {
        let Some(level) = self.open.get_mut(depth + 1) else { return false };
        let is_subtest = level.is_subtest();
        let Some((uid, is_ok)) = level.opener.take() else { return false };
        self.close(depth + 1, Some((&uid, is_ok)), is_subtest, out);
        true
    }

    /// Handles the number of failures in a summary. Levels without points and plan have none.
    pub(super) fn failures(&mut self, depth: usize, failures: u64) {
        if let Some(level) = self.open.get_mut(depth) {
            (level.failures, level.cancelled) = (Some(failures), 0);
        }
    }

    /// Handles the number of canceled tests, which node counts separately, after [`failures`](Self::failures).
    pub(super) fn cancelled(&mut self, depth: usize, cancelled: u64) {
        if let Some(level) = self.open.get_mut(depth) {
            level.cancelled = cancelled;
        }
    }

    /// Ends the levels from `depth` on. `parent` is the point after them: its uid, and whether it passed. Returns their
    /// failures.
    fn close(
        &mut self,
        depth: usize,
        parent: Option<(&str, bool)>,
        is_announced: bool,
        out: &mut Vec<Event>,
    ) -> SubtestFailures {
        self.close_braced(depth + 1, out);
        let mut levels = self.open.drain(depth.min(self.open.len())..).collect::<Vec<_>>().into_iter();
        let Some(mut first) = levels.next() else { return SubtestFailures::default() };
        let inner: Vec<_> = levels.collect();
        for level in &inner {
            first.not_ok += level.not_ok;
            first.within.failed |= level.within.failed;
        }
        let within = first.within;
        if let Some(outer) = depth.checked_sub(1).map(|outer| self.level(outer)) {
            outer.not_ok += first.not_ok;
            // A canceled test counts for outer levels only if the point of this subtest was canceled too.
            outer.within.failed |= within.failed;
        }
        let is_subtest = is_announced || first.is_subtest();
        let problem = match (first.opener.take(), parent) {
            (Some((uid, _)), _) => {
                is_subtest.then(|| first.problem(Some(&uid)).unwrap_or_else(|| without_brace(&uid)))
            }
            (None, None) => first.is_subtest().then(nameless),
            // A failed point already reports that its subtest is incomplete, as Perl does if planned tests are missing.
            (None, Some((_, false))) => None,
            (None, Some((uid, true))) => {
                let problem = is_subtest.then(|| first.problem(Some(uid))).flatten();
                problem.or_else(|| without_point(first, inner))
            }
        };
        out.extend(problem);
        within
    }

    /// Ends the subtests in braces from `depth` on, the innermost first.
    fn close_braced(&mut self, depth: usize, out: &mut Vec<Event>) {
        let is_braced = |level: &Level| level.opener.is_some();
        while let Some(at) = self.open.get(depth..).and_then(|open| open.iter().rposition(is_braced)) {
            self.close(depth + at, None, false, out);
        }
    }

    /// Handles the end of the output.
    pub(super) fn finish(&mut self, out: &mut Vec<Event>) {
        self.close_braced(0, out);
        let mut levels = mem::take(&mut self.open).into_iter();
        let Some(mut first) = levels.next() else { return };
        let inner: Vec<_> = levels.collect();
        first.not_ok = inner.iter().fold(first.not_ok, |sum, level| sum + level.not_ok);
        out.extend(first.problem(None).or_else(|| without_point(first, inner)));
    }
}

/// Returns a problem if `first` has a subtest without a point.
fn without_point(first: Level, inner: Vec<Level>) -> Option<Event> {
    let mut outer = first;
    for level in inner {
        if let Some(name) = &outer.announced {
            return Some(no_point(name));
        }
        if level.is_subtest() {
            return Some(nameless());
        }
        outer = level;
    }
    outer.announced.as_deref().map(no_point)
}

fn nameless() -> Event {
    Event::Problem("an indented subtest has no test point of its own".to_owned())
}

fn without_brace(subtest: &str) -> Event {
    let subtest = case::shortened(subtest, case::MAX_REASON_BYTES);
    Event::Problem(format!("the subtest {subtest} has no closing brace"))
}

fn no_point(subtest: &str) -> Event {
    let subtest = case::shortened(subtest, case::MAX_REASON_BYTES);
    Event::Problem(format!("the subtest {subtest} has no test point of its own"))
}
