//! What TAP says of its own completeness, at each level of subtests: the plan, the numbers of points, and the summary. A level is
//! compared with them when the point of its subtest comes, since nothing more belongs to it then.

use std::collections::HashSet;
use std::mem;

use crate::formats::case::{self, Event};

/// The failures that a subtest reported as results, with those of its own subtests.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct Within {
    pub(super) failed: bool,
    /// A test failed because the subtest or suite around it had ended.
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
    /// The first number that came again, and the first that is above all plans.
    repeated: Option<u64>,
    huge: Option<String>,
    /// The points that are not ok, with those of subtests.
    not_ok: u64,
    within: Within,
    /// What the summary counts.
    failures: Option<u64>,
    cancelled: u64,
    /// A subtest that was announced in this level, whose point has not come.
    announced: Option<String>,
    /// The point that came before this subtest and has opened a brace: its uid, and whether it is ok.
    opener: Option<(String, bool)>,
}

impl Level {
    /// Whether it is a subtest. Indented text may look like a point without a number.
    fn is_subtest(&self) -> bool {
        let has_points = self.opener.is_some() && self.count > 0;
        self.plan.is_some() || has_points || !self.numbers.is_empty() || self.huge.is_some()
    }

    /// What is wrong with it, `subtest` being its name.
    fn problem(&self, subtest: Option<&str>) -> Option<Event> {
        let subtest = subtest.map(|name| case::shortened(name, case::LONGEST_REASON));
        let (who, of) = match subtest {
            Some(name) => (format!("the subtest {name}"), format!(" of the subtest {name}")),
            None => ("the command".to_owned(), String::new()),
        };
        let Self { count, .. } = self;
        let Some(plan) = self.plan else {
            return Some(Event::Problem(format!("there is no plan{of}: the end is missing")));
        };
        if *count < plan {
            return Some(Event::Problem(format!("{who} ended after {count} of {plan} tests")));
        }
        if *count > plan {
            return Some(Event::Problem(format!("there were {count} tests{of}, and the plan says {plan}")));
        }
        let beyond = || self.numbers.iter().filter(|number| !(1..=plan).contains(*number)).min();
        let failures = self.failures.unwrap_or(0).saturating_add(self.cancelled);
        let not_ok = self.not_ok;
        let told = if let Some(number) = self.repeated {
            format!("several tests{of} have the number {number}")
        } else if let Some(number) = self.huge.clone().or_else(|| beyond().map(u64::to_string)) {
            format!("a test{of} has the number {number}, and the plan is 1..{plan}")
        } else if let Some(other) = self.other_plan {
            format!("there are two plans{of}: 1..{plan} and 1..{other}")
        } else if failures > not_ok {
            format!("the summary{of} counts {failures} failures, and {not_ok} are there")
        } else {
            return None;
        };
        Some(Event::Unreadable(told))
    }
}

/// The levels that are open, by depth.
#[derive(Debug, Default)]
pub(super) struct Levels {
    open: Vec<Level>,
}

impl Levels {
    fn level(&mut self, depth: usize) -> &mut Level {
        while self.open.len() <= depth {
            self.open.push(Level::default());
        }
        self.open.get_mut(depth).unwrap_or_else(|| unreachable!("it was pushed"))
    }

    /// The points of a level with the next one.
    pub(super) fn next(&self, depth: usize) -> u64 {
        self.open.get(depth).map_or(0, |level| level.count) + 1
    }

    /// A point, which is the end of the subtest before it. Returns the failures of that subtest.
    pub(super) fn point(
        &mut self,
        depth: usize,
        number: &str,
        is_ok: bool,
        uid: &str,
        out: &mut Vec<Event>,
    ) -> Within {
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
                level.huge.get_or_insert_with(|| case::shortened(number, case::LONGEST_REASON));
            }
            _ => {}
        }
        within
    }

    /// Notes that the last point of a level is a failure.
    pub(super) fn failed(&mut self, depth: usize, cancelled: bool) {
        let within = &mut self.level(depth).within;
        *within = Within { failed: true, cancelled: cancelled || within.cancelled };
    }

    pub(super) fn plan(&mut self, depth: usize, plan: u64) {
        self.forget_comment(depth);
        let level = self.level(depth);
        match level.plan {
            Some(first) if first != plan => level.other_plan = Some(plan),
            _ => level.plan = Some(plan),
        }
    }

    /// What was taken for the comment of a subtest and has no lines behind it may be one that a test has printed: the plan
    /// tells whether a point is missing.
    fn forget_comment(&mut self, depth: usize) {
        if self.open.len() <= depth + 1 {
            self.level(depth).announced = None;
        }
    }

    /// The subtest that begins in a level, by a comment.
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

    /// The subtest of a point that has opened a brace begins.
    pub(super) fn open(&mut self, depth: usize, uid: &str, is_ok: bool) {
        self.level(depth).opener = Some((uid.to_owned(), is_ok));
    }

    /// A closing brace. Returns whether a subtest ends with it.
    pub(super) fn brace(&mut self, depth: usize, out: &mut Vec<Event>) -> bool {
        let Some(level) = self.open.get_mut(depth + 1) else { return false };
        let is_subtest = level.is_subtest();
        let Some((uid, is_ok)) = level.opener.take() else { return false };
        self.close(depth + 1, Some((&uid, is_ok)), is_subtest, out);
        true
    }

    /// The failures that a summary counts. What has no points and no plan has none.
    pub(super) fn failures(&mut self, depth: usize, failures: u64) {
        if let Some(level) = self.open.get_mut(depth) {
            (level.failures, level.cancelled) = (Some(failures), 0);
        }
    }

    /// Follows [`failures`](Self::failures): node counts tests that it has given up apart.
    pub(super) fn cancelled(&mut self, depth: usize, cancelled: u64) {
        if let Some(level) = self.open.get_mut(depth) {
            level.cancelled = cancelled;
        }
    }

    /// Ends the levels from `depth` on. `parent` is the point after them, by uid and whether it is ok. Returns their failures.
    fn close(
        &mut self,
        depth: usize,
        parent: Option<(&str, bool)>,
        is_announced: bool,
        out: &mut Vec<Event>,
    ) -> Within {
        self.close_braced(depth + 1, out);
        let mut levels = self.open.drain(depth.min(self.open.len())..).collect::<Vec<_>>().into_iter();
        let Some(mut first) = levels.next() else { return Within::default() };
        let inner: Vec<_> = levels.collect();
        for level in &inner {
            first.not_ok += level.not_ok;
            first.within.failed |= level.within.failed;
        }
        let within = first.within;
        if let Some(outer) = depth.checked_sub(1).map(|outer| self.level(outer)) {
            outer.not_ok += first.not_ok;
            // A cancelled test counts further out only if the point of this subtest was cancelled too.
            outer.within.failed |= within.failed;
        }
        let is_subtest = is_announced || first.is_subtest();
        let problem = match (first.opener.take(), parent) {
            (Some((uid, _)), _) => {
                is_subtest.then(|| first.problem(Some(&uid)).unwrap_or_else(|| without_brace(&uid)))
            }
            (None, None) => first.is_subtest().then(nameless),
            // A failed point says itself that its subtest is not as it should be: Perl's does if tests of its plan are missing.
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

    /// Nothing more comes.
    pub(super) fn finish(&mut self, out: &mut Vec<Event>) {
        self.close_braced(0, out);
        let mut levels = mem::take(&mut self.open).into_iter();
        let Some(mut first) = levels.next() else { return };
        let inner: Vec<_> = levels.collect();
        first.not_ok = inner.iter().fold(first.not_ok, |sum, level| sum + level.not_ok);
        out.extend(first.problem(None).or_else(|| without_point(first, inner)));
    }
}

/// A subtest in `first` whose own point has not come, if there is one.
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
    let subtest = case::shortened(subtest, case::LONGEST_REASON);
    Event::Problem(format!("the subtest {subtest} has no closing brace"))
}

fn no_point(subtest: &str) -> Event {
    let subtest = case::shortened(subtest, case::LONGEST_REASON);
    Event::Problem(format!("the subtest {subtest} has no test point of its own"))
}
