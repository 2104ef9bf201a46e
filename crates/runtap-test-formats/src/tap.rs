//! Test Anything Protocol, versions 13 and 14: test points, directives, diagnostics in YAML, subtests by indentation. A suite
//! (`type: 'suite'` of node) is no test: its tests are. One that fails for another reason than its tests, such as a hook, is
//! an error of its own.
//!
//! A subtest of node-tap comes behind its point, in braces: `ok 1 - name {`. What node says in a comment of an error after a
//! test's end is the reason of the file that fails because of it, or else an error of its own.
//!
//! A test point whose directive is TODO does not fail a run: one that is not ok counts as skipped.

use std::mem;
use std::sync::Arc;

use crate::Read;
use crate::case::{self, Case, Detail, Event, Outcome};
use crate::yaml;

/// Deeper subtests than that are taken for text.
const DEEPEST: usize = 100;

/// More of the diagnostics of a point is not read.
const MOST_YAML: usize = 1 << 20;

#[derive(Debug, Default)]
pub(crate) struct Tap {
    /// The subtests that are open, by depth: `# Subtest: NAME`. Each has the names of those that it is in before its own.
    suites: Vec<Arc<str>>,
    /// By depth: how many points there were, and how many the plan has promised.
    counts: Vec<(u64, Option<u64>)>,
    /// The point whose diagnostics may follow.
    point: Option<Point>,
    /// The diagnostics that are read.
    yaml: Option<String>,
    has_bailed: bool,
    /// Errors after the end of a test that are the reason of no file yet.
    late: Vec<String>,
}

/// More errors after the end of tests say nothing more.
const MOST_LATE: usize = 20;
const LATE: &str = " generated asynchronous activity after the test ended";

#[derive(Debug)]
struct Point {
    indent: usize,
    case: Case,
    is_ok: bool,
    /// What the point is if deeper ones follow: its name ends with a brace.
    opened: Option<(Case, Arc<str>)>,
}

impl Tap {
    fn give(&mut self, out: &mut Vec<Event>) {
        let Some(Point { mut case, is_ok, .. }) = self.point.take() else { return };
        let text = self.yaml.take().unwrap_or_default();
        let mut detail = Detail::default();
        let (mut is_suite, mut is_file, mut failure_type) = (false, false, String::new());
        for (key, value) in yaml::read(&text) {
            match key {
                "type" => is_suite = value == "suite",
                "duration_ms" => {
                    let ms: Option<f64> = value.parse().ok();
                    case.duration = ms.and_then(|ms| case::seconds(ms / 1000.0));
                }
                "error" | "message" => detail.message = value,
                "name" => detail.kind = value,
                "stack" => detail.stack = value,
                "location" => {
                    let mut parts = value.rsplitn(3, ':');
                    let (_column, line) = (parts.next(), parts.next().and_then(|line| line.parse().ok()));
                    case.place = parts.next().zip(line).map(|(file, line)| (file.to_owned(), line));
                }
                "failureType" => failure_type = value,
                "exitCode" => is_file = true,
                _ => {}
            }
        }
        if is_suite {
            // Tests that have failed, or that a parent has cancelled, are results already.
            let is_explained = matches!(failure_type.as_str(), "subtestsFailed" | "cancelledByParent");
            if !matches!(case.outcome, Outcome::Failed) || is_explained {
                return;
            }
            case.outcome = Outcome::Error;
            case.is_group = true;
        } else if failure_type == "testTimeoutFailure" && !is_ok {
            case.outcome = Outcome::TimedOut;
        }
        if is_file && !is_ok && !self.late.is_empty() {
            for late in self.late.drain(..) {
                detail.message.push('\n');
                detail.message.push_str(&late);
            }
        }
        match case.outcome {
            Outcome::Passed => {}
            Outcome::Skipped => {
                if case.reason.is_empty() {
                    case.reason = detail.message;
                }
            }
            Outcome::Failed | Outcome::Error | Outcome::TimedOut => case.detail = Some(detail),
        }
        out.push(Event::Ended(Box::new(case)));
    }

    fn point(&mut self, indent: usize, is_ok: bool, rest: &str) {
        let depth = indent / 4;
        let digits = rest.trim_start();
        let end = digits.find(|c: char| !c.is_ascii_digit()).unwrap_or(digits.len());
        let (number, description) = digits.split_at_checked(end).unwrap_or(("", digits));
        let description = description.trim_start();
        let description = description.strip_prefix("- ").unwrap_or(description);
        let opened = description.trim_end().strip_suffix(" {").map(|description| directive(description).0);
        let (name, directive) = directive(description);
        let count = &mut self.count(depth).0;
        *count += 1;
        let name = match (name.is_empty(), number.is_empty()) {
            (false, _) => name,
            (true, false) => format!("test {number}"),
            (true, true) => format!("test {count}"),
        };
        let (word, reason) = directive.split_once(char::is_whitespace).unwrap_or((directive, ""));
        let is = |known: &str| word.get(..4).is_some_and(|word| word.eq_ignore_ascii_case(known));
        let outcome = match is_ok {
            _ if is("skip") => Outcome::Skipped,
            false if is("todo") => Outcome::Skipped,
            true => Outcome::Passed,
            false => Outcome::Failed,
        };
        self.suites.truncate(depth);
        let suite = self.suites.last().cloned().unwrap_or_default();
        let mut case = Case::new(&suite, " > ", &name, outcome);
        if outcome == Outcome::Skipped {
            reason.trim().clone_into(&mut case.reason);
            if case.reason.is_empty() && is("todo") {
                "todo".clone_into(&mut case.reason);
            }
        }
        let opened = opened.filter(|name| !name.is_empty()).map(|name| {
            let own = Case::new(&suite, " > ", &name, outcome);
            let inner = case::suite(&own.uid);
            (Case { reason: case.reason.clone(), ..own }, inner)
        });
        self.point = Some(Point { indent, case, is_ok, opened });
    }

    fn count(&mut self, depth: usize) -> &mut (u64, Option<u64>) {
        // Deeper subtests are at their end.
        self.counts.truncate(depth + 1);
        while self.counts.len() < depth {
            self.counts.push((0, None));
        }
        if self.counts.len() == depth {
            self.counts.push((0, None));
        }
        self.counts.last_mut().unwrap_or_else(|| unreachable!("one was pushed"))
    }
}

impl Read for Tap {
    fn line(&mut self, line: &str, out: &mut Vec<Event>) -> bool {
        let text = line.trim_start_matches(' ');
        let indent = line.len() - text.len();
        if let (Some(yaml), Some(point)) = (&mut self.yaml, &self.point) {
            if text == "..." && indent <= point.indent + 2 {
                self.give(out);
            } else if yaml.len() < MOST_YAML {
                let line = line.get(indent.min(point.indent + 2)..).unwrap_or_default();
                let room = MOST_YAML - yaml.len();
                yaml.push_str(line.get(..line.floor_char_boundary(room)).unwrap_or_default());
                yaml.push('\n');
            }
            return true;
        }
        if text == "---" && self.point.as_ref().is_some_and(|point| indent > point.indent) {
            self.yaml = Some(String::new());
            return true;
        }
        if indent / 4 > DEEPEST {
            return false;
        }
        if let Some(point) = self.point.as_mut().filter(|point| indent >= point.indent + 4)
            && let Some((case, suite)) = point.opened.take()
        {
            point.case = case;
            self.suites.truncate(point.indent / 4);
            self.suites.push(suite);
        }
        if let Some(name) = text.strip_prefix("# Subtest: ") {
            self.give(out);
            let (name, _) = directive(name);
            self.suites.truncate(indent / 4);
            let suite = match self.suites.last() {
                Some(outer) => format!("{outer} > {}", case::shortened(&name, case::LONGEST_SUITE)),
                None => name,
            };
            self.suites.push(case::suite(&suite));
        } else if let Some(rest) = rest_of(text, "not ok") {
            self.give(out);
            self.point(indent, false, rest);
        } else if let Some(rest) = rest_of(text, "ok") {
            self.give(out);
            self.point(indent, true, rest);
        } else if let Some(plan) = text.strip_prefix("1..") {
            let digits = plan.split(' ').next().unwrap_or_default();
            if let Ok(plan) = digits.parse() {
                self.give(out);
                self.count(indent / 4).1 = Some(plan);
            } else {
                return false;
            }
        } else if let Some(why) = text.strip_prefix("Bail out!") {
            self.give(out);
            self.has_bailed = true;
            let why = case::shortened(why.trim(), case::LONGEST_NAME);
            out.push(Event::Problem(format!("the tests were given up: {why}")));
        } else if let Some(error) = text.strip_prefix("# Error: ").filter(|error| error.contains(LATE)) {
            if self.late.len() < MOST_LATE {
                self.late.push(case::shortened(error, case::LONGEST_NAME));
            }
        } else {
            return text.starts_with("TAP version ");
        }
        true
    }

    fn finish(&mut self, out: &mut Vec<Event>) {
        self.give(out);
        for error in mem::take(&mut self.late) {
            let test = error.split_once(LATE).map_or("", |(test, _)| test);
            let name = format!("after the end of {}", case::shortened(test, case::LONGEST_REASON));
            let detail = Detail { message: error, ..Detail::default() };
            out.push(Event::Ended(Box::new(Case::group(&name, detail))));
        }
        match self.counts.first() {
            _ if self.has_bailed => {}
            Some((count, Some(plan))) if count < plan => {
                out.push(Event::Problem(format!("the command ended after {count} of {plan} tests")));
            }
            Some((count, Some(plan))) if count > plan => {
                out.push(Event::Problem(format!("there were {count} tests, and the plan says {plan}")));
            }
            Some((_, None)) => out.push(Event::Problem("there is no plan: the end is missing".to_owned())),
            _ => {}
        }
    }
}

/// What follows a word.
fn rest_of<'a>(text: &'a str, word: &str) -> Option<&'a str> {
    text.strip_prefix(word).filter(|rest| rest.is_empty() || rest.starts_with(' '))
}

/// A description without its escapes, and its directive.
fn directive(text: &str) -> (String, &str) {
    let mut name = String::new();
    let mut chars = text.char_indices();
    while let Some((at, c)) = chars.next() {
        match c {
            '\\' => match chars.next() {
                Some((_, c @ ('#' | '\\'))) => name.push(c),
                Some((_, c)) => name.extend(['\\', c]),
                None => name.push('\\'),
            },
            '#' => return (name.trim_end().to_owned(), text.get(at + 1..).unwrap_or_default().trim()),
            c => name.push(c),
        }
    }
    (name.trim_end().to_owned(), "")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn diagnostics_without_end_are_kept_up_to_a_limit() {
        let (mut tap, mut out) = (Tap::default(), Vec::new());
        tap.line("not ok 1 - a", &mut out);
        tap.line("  ---", &mut out);
        tap.line("  error: early", &mut out);
        for _ in 0..3 * MOST_YAML {
            tap.line("", &mut out);
        }
        let long = "  stack: ".to_owned() + &"é".repeat(MOST_YAML);
        tap.line(&long, &mut out);
        assert_eq!(tap.yaml.as_ref().map(String::len), Some(MOST_YAML));
        tap.line("  ...", &mut out);
        let [Event::Ended(case)] = &out[..] else { panic!("{out:?}") };
        assert_eq!(case.detail.as_ref().unwrap().message, "early");
    }
}
