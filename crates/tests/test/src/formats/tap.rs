//! Test Anything Protocol, versions 13 and 14: test points, directives, diagnostics in YAML, subtests by indentation. A
//! suite (`type: 'suite'` of node) is not reported as a test. A suite that fails for a reason other than its tests,
//! such as a hook, is reported as an error.
//!
//! A subtest of node-tap follows its point in braces: `ok 1 - name {`. An error that node reports in a comment after
//! the end of a test is added to the file that fails because of it, or else reported as an error.
//!
//! A test point with the directive TODO or SKIP does not fail a run (TAP 14): a failed point with such a directive
//! counts as skipped. Only these two words are directives, in any case; other text after `#` is a comment.

mod levels;

use std::borrow::Cow;
use std::mem;
use std::sync::Arc;

use crate::TestOutcome;
use crate::formats::LineParser;
use crate::formats::case::{self, Case, Detail, Event};
use crate::formats::yaml;
use levels::{Levels, SubtestFailures};

/// The maximum depth of subtests; deeper ones are treated as text.
const MAX_DEPTH: usize = 100;

/// The maximum size of the diagnostics of a point, in bytes.
const MAX_YAML_BYTES: usize = 1 << 20;

#[derive(Debug, Default)]
pub(crate) struct Tap {
    /// The open subtests by depth (`# Subtest: NAME`). Each name includes the names of its parents.
    suites: Vec<Arc<str>>,
    levels: Levels,
    /// Whether `# Subtest: NAME` is indented like the subtest, as in pgTAP and in Perl before 5.26. Known after the
    /// first subtest.
    is_announced_within: Option<bool>,
    /// The point whose diagnostics may follow.
    point: Option<Point>,
    /// The diagnostics that are being read, and their indentation: vitest indents them more than TAP specifies.
    yaml: Option<String>,
    yaml_indent: usize,
    has_bailed: bool,
    /// Whether a failure was nested too deeply.
    is_too_deep: bool,
    /// The word of the previous line, if it is part of a summary.
    after: Option<&'static str>,
    /// Errors after the end of a test that are not assigned to a file yet.
    late: Vec<String>,
}

/// The failure type of tests and suites that node canceled.
const CANCELLED: &str = "cancelledByParent";

/// The maximum number of errors after the end of tests.
const MAX_LATE: usize = 20;
const LATE: &str = " generated asynchronous activity after the test ended";

#[derive(Debug)]
struct Point {
    indent: usize,
    case: Case,
    is_ok: bool,
    /// The failures of its subtest.
    within: SubtestFailures,
    /// The point if deeper points follow: its name then ends with a brace.
    opened: Option<(Case, Arc<str>)>,
}

impl Tap {
    fn give(&mut self, out: &mut Vec<Event>) {
        let Some(Point { indent, mut case, is_ok, within, .. }) = self.point.take() else { return };
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
            // Failed tests have been reported. A hook that never ends cancels its suite after the suite's tests have
            // ended, so only a canceled test explains a canceled suite.
            let is_explained = match failure_type.as_str() {
                "subtestsFailed" => within.failed,
                CANCELLED => within.cancelled,
                _ => false,
            };
            if !matches!(case.outcome, TestOutcome::Failed) || is_explained {
                if is_explained && failure_type == CANCELLED {
                    self.levels.failed(indent / 4, true);
                }
                return;
            }
            case.outcome = TestOutcome::Error;
            case.is_group = true;
        } else if failure_type == "testTimeoutFailure" && !is_ok {
            case.outcome = TestOutcome::Timeout;
        }
        if is_file && !is_ok && !self.late.is_empty() {
            for late in self.late.drain(..) {
                detail.message.push('\n');
                detail.message.push_str(&late);
            }
        }
        match case.outcome {
            TestOutcome::Passed => {}
            TestOutcome::Skipped => {
                if case.reason.is_empty() {
                    case.reason = detail.message;
                }
            }
            TestOutcome::Failed | TestOutcome::Error | TestOutcome::Timeout | TestOutcome::Cancelled => {
                case.detail = Some(detail);
                self.levels.failed(indent / 4, failure_type == CANCELLED);
            }
        }
        out.push(Event::Ended(Box::new(case)));
    }

    fn point(&mut self, indent: usize, is_ok: bool, rest: &str, out: &mut Vec<Event>) {
        let depth = indent / 4;
        let digits = rest.trim_start();
        let end = digits.find(|c: char| !c.is_ascii_digit()).unwrap_or(digits.len());
        let (number, description) = digits.split_at_checked(end).unwrap_or(("", digits));
        let description = description.trim_start();
        let description = description.strip_prefix("- ").unwrap_or(description);
        let opened = description.trim_end().strip_suffix(" {").map(|description| directive(description).0);
        let (name, directive) = directive(description);
        let name = match (name.is_empty(), number.is_empty()) {
            (false, _) => name,
            (true, false) => format!("test {number}"),
            (true, true) => format!("test {}", self.levels.next(depth)),
        };
        let end = directive.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(directive.len());
        let (word, reason) = directive.split_at_checked(end).unwrap_or((&directive, ""));
        let is = |known: &str| word.eq_ignore_ascii_case(known);
        let outcome = match is_ok {
            _ if is("skip") => TestOutcome::Skipped,
            false if is("todo") => TestOutcome::Skipped,
            true => TestOutcome::Passed,
            false => TestOutcome::Failed,
        };
        self.suites.truncate(depth);
        let suite = self.suites.last().cloned().unwrap_or_default();
        let mut case = Case::new(&suite, " > ", &name, outcome);
        if outcome == TestOutcome::Skipped {
            reason.trim_start_matches(':').trim().clone_into(&mut case.reason);
            if case.reason.is_empty() && is("todo") {
                "todo".clone_into(&mut case.reason);
            }
        }
        let opened = opened.filter(|name| !name.is_empty()).map(|name| {
            let own = Case::new(&suite, " > ", &name, outcome);
            let inner = case::suite(&own.uid);
            (Case { reason: case.reason.clone(), ..own }, inner)
        });
        let within = self.levels.point(depth, number, is_ok, &case.uid, out);
        self.point = Some(Point { indent, case, is_ok, within, opened });
    }

    fn subtest(&mut self, depth: usize, name: &str, out: &mut Vec<Event>) {
        let (name, _) = directive(name);
        let is_outside = self.suites.len() < depth;
        let is_within = *self.is_announced_within.get_or_insert(is_outside);
        let depth = depth.saturating_sub(usize::from(is_within));
        self.suites.truncate(depth);
        let suite = match self.suites.last() {
            Some(outer) => format!("{outer} > {}", case::shortened(&name, case::MAX_SUITE_BYTES)),
            None => name,
        };
        let suite = case::suite(&suite);
        self.levels.announce(depth, &suite, out);
        self.suites.push(suite);
    }
}

impl LineParser for Tap {
    fn line(&mut self, line: &str, out: &mut Vec<Event>) -> bool {
        let line = &*if self.yaml.is_some() { Cow::Borrowed(line) } else { without_tabs(line) };
        let text = line.trim_start_matches(' ');
        let indent = line.len() - text.len();
        // Diagnostics are indented more than their point: their end is missing.
        let is_missed_end =
            self.point.as_ref().is_some_and(|point| indent <= point.indent) && is_no_diagnostic(text);
        if self.yaml.is_some() && is_missed_end {
            self.give(out);
        }
        if let (Some(yaml), Some(point)) = (&mut self.yaml, &self.point) {
            if text == "..." && indent <= self.yaml_indent.max(point.indent + 2) {
                self.give(out);
            } else if yaml.len() < MAX_YAML_BYTES {
                let line = line.get(indent.min(self.yaml_indent)..).unwrap_or_default();
                let room = MAX_YAML_BYTES - yaml.len();
                yaml.push_str(line.get(..line.floor_char_boundary(room)).unwrap_or_default());
                yaml.push('\n');
            }
            return true;
        }
        let after = self.after.take();
        if text == "---" && self.point.as_ref().is_some_and(|point| indent > point.indent) {
            (self.yaml, self.yaml_indent) = (Some(String::new()), indent);
            return true;
        }
        let depth = indent / 4;
        if depth > MAX_DEPTH {
            if rest_of(text, "not ok").is_some() && !mem::replace(&mut self.is_too_deep, true) {
                out.push(Event::Unreadable(format!(
                    "a failed test is nested in more than {MAX_DEPTH} subtests"
                )));
            }
            return false;
        }
        if let Some(point) = self.point.as_mut().filter(|point| indent >= point.indent + 4)
            && let Some((case, suite)) = point.opened.take()
        {
            point.case = case;
            self.levels.open(point.indent / 4 + 1, &point.case.uid, point.is_ok);
            self.suites.truncate(point.indent / 4);
            self.suites.push(suite);
        }
        if let Some(name) = text.strip_prefix("# Subtest: ") {
            self.give(out);
            self.subtest(depth, name, out);
        } else if let Some(rest) = rest_of(text, "not ok") {
            self.give(out);
            self.point(indent, false, rest, out);
        } else if let Some(rest) = rest_of(text, "ok") {
            self.give(out);
            self.point(indent, true, rest, out);
        } else if let Some(plan) = text.strip_prefix("1..") {
            let digits = plan.split(' ').next().unwrap_or_default();
            if let Ok(plan) = digits.parse() {
                self.give(out);
                self.levels.plan(depth, plan);
            } else {
                return false;
            }
        } else if let Some(why) = bail_out(text) {
            self.give(out);
            self.has_bailed = true;
            let why = case::shortened(why.trim(), case::MAX_NAME_BYTES);
            out.push(Event::Problem(format!("the tests were aborted: {why}")));
        } else if summary(text, "pass").is_some() {
            self.after = Some("pass");
        } else if let Some(failures) = summary(text, "fail").filter(|_| after == Some("pass")) {
            self.levels.failures(depth, failures);
            self.after = Some("fail");
        } else if let Some(cancelled) = summary(text, "cancelled").filter(|_| after == Some("fail")) {
            self.levels.cancelled(depth, cancelled);
        } else if text == "}" {
            self.give(out);
            return self.levels.brace(depth, out);
        } else if let Some(error) = text.strip_prefix("# Error: ").filter(|error| error.contains(LATE)) {
            if self.late.len() < MAX_LATE {
                self.late.push(case::shortened(error, case::MAX_NAME_BYTES));
            }
        } else {
            return text.starts_with("TAP version ");
        }
        true
    }

    fn finish(&mut self, out: &mut Vec<Event>) {
        if self.yaml.is_some() {
            out.push(Event::Problem("the output ended within the diagnostics of a test".to_owned()));
        }
        self.give(out);
        for error in mem::take(&mut self.late) {
            let test = error.split_once(LATE).map_or("", |(test, _)| test);
            let name = format!("after the end of {}", case::shortened(test, case::MAX_REASON_BYTES));
            let detail = Detail { message: error, ..Detail::default() };
            out.push(Event::Ended(Box::new(Case::group(&name, detail))));
        }
        if !self.has_bailed {
            self.levels.finish(out);
        }
    }
}

/// Replaces tabs in the indentation by four spaces, if the line can only be a line of a subtest.
fn without_tabs(line: &str) -> Cow<'_, str> {
    let text = line.trim_start_matches([' ', '\t']);
    let indent = line.strip_suffix(text).unwrap_or_default();
    if indent.contains('\t') && is_no_diagnostic(text) {
        Cow::Owned(indent.replace('\t', "    ") + text)
    } else {
        Cow::Borrowed(line)
    }
}

/// Returns whether the line cannot be part of diagnostics.
fn is_no_diagnostic(text: &str) -> bool {
    let is_named = |rest: &str| rest.starts_with(|c: char| c.is_ascii_digit()) || rest.starts_with("- ");
    rest_of(text, "not ok")
        .or_else(|| rest_of(text, "ok").filter(|rest| is_named(rest.trim_start())))
        .is_some()
        || bail_out(text).is_some()
        || text.strip_prefix("1..").is_some_and(|plan| plan.parse::<u64>().is_ok())
}

fn bail_out(text: &str) -> Option<&str> {
    let (words, why) = text.split_at_checked("Bail out!".len())?;
    words.eq_ignore_ascii_case("Bail out!").then_some(why)
}

/// Returns the number in `# fail 3`, as printed at the end by node, tape, mocha and others.
fn summary(text: &str, word: &str) -> Option<u64> {
    text.strip_prefix("# ")?.strip_prefix(word)?.strip_prefix(' ')?.trim().parse().ok()
}

/// Returns the text after a word.
fn rest_of<'a>(text: &'a str, word: &str) -> Option<&'a str> {
    text.strip_prefix(word).filter(|rest| rest.is_empty() || rest.starts_with(' '))
}

/// Splits a description and its directive, and removes escapes.
fn directive(text: &str) -> (String, String) {
    let (name, rest) = unescaped(text);
    let mut directive = String::new();
    let mut rest = Some(rest);
    // Further hashes belong to the directive.
    while let Some(text) = rest {
        let (part, more) = unescaped(text);
        directive.push_str(&part);
        rest = (!more.is_empty()).then_some(more);
        if rest.is_some() {
            directive.push('#');
        }
    }
    (name.trim_end().to_owned(), directive.trim().to_owned())
}

/// Splits the text at the first unescaped hash, and removes escapes before it.
fn unescaped(text: &str) -> (String, &str) {
    let mut name = String::new();
    let mut chars = text.char_indices();
    while let Some((at, c)) = chars.next() {
        match c {
            '\\' => match chars.next() {
                Some((_, c @ ('#' | '\\'))) => name.push(c),
                Some((_, c)) => name.extend(['\\', c]),
                None => name.push('\\'),
            },
            '#' => return (name, text.get(at + 1..).unwrap_or_default()),
            c => name.push(c),
        }
    }
    (name, "")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unterminated_diagnostics_are_kept_up_to_a_limit() {
        let (mut tap, mut out) = (Tap::default(), Vec::new());
        tap.line("not ok 1 - a", &mut out);
        tap.line("  ---", &mut out);
        tap.line("  error: early", &mut out);
        for _ in 0..3 * MAX_YAML_BYTES {
            tap.line("", &mut out);
        }
        let long = "  stack: ".to_owned() + &"é".repeat(MAX_YAML_BYTES);
        tap.line(&long, &mut out);
        assert_eq!(tap.yaml.as_ref().map(String::len), Some(MAX_YAML_BYTES));
        tap.line("  ...", &mut out);
        let [Event::Ended(case)] = &out[..] else { panic!("{out:?}") };
        assert_eq!(case.detail.as_ref().unwrap().message, "early");
    }
}
