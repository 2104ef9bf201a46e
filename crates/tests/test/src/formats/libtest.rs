//! The text output of libtest, of any number of binaries, with cargo's lines between them:
//!
//! ```text
//!      Running unittests src/lib.rs (target/debug/deps/shop-507999230d6984fa)
//! running 2 tests
//! test a ... ok
//! test b ... FAILED
//! failures:
//! ---- b stdout ----
//! …
//! failures:
//!     b
//! test result: FAILED. …
//! ```
//!
//! Cargo prints its lines to standard error: the caller must merge both streams, or tests of different binaries cannot
//! be distinguished. Colors are ignored. The output of libtest-mimic is supported too: it pads names, and starts blocks
//! with `---- NAME ----`.
//!
//! Cargo's messages about failed targets are parsed too: a target without failed tests, or with an exit status that
//! failed tests do not explain, is reported as an error.
//!
//! `--quiet` prints a letter per test and no names. This is not readable, and reported as such.
//!
//! With `--nocapture`, the output of tests is in the same stream, and lines are torn: `test a ... hello`, later `ok`;
//! or, if the output has no line end, `hellook` and `hellotest a ... ok`. Such a result is used when the binary
//! continues with the next test, or reports its end. Of lines that start in the middle, only as many are used as there
//! are missing results.
//!
//! Tests may print such lines themselves. Within the output of failed tests, `failures:` and `test result: ` are
//! recognized only if the surrounding lines match the output of libtest.

mod names;
pub(crate) mod target;

use std::borrow::Cow;
use std::mem;
use std::sync::Arc;

use self::names::{FailedNames, Names};
use self::target::{Summary, Targets, heading};
use crate::TestOutcome;
use crate::formats::case::{self, Case, Detail, Event, MAX_NAME_BYTES, shortened};
use crate::formats::test_output::{OutputSize, TestOutput};
use crate::formats::{LineParser, panicked};

#[derive(Debug, Default)]
pub(crate) struct TextParser {
    suite: Arc<str>,
    /// The number of tests that the binary announced; `None` between binaries.
    expected: Option<u64>,
    ended: u64,
    /// The number of failed tests.
    failures: u64,
    targets: Targets,
    /// The failed tests whose output follows later, with the output so far.
    failed: Vec<(Case, TestOutput)>,
    held: OutputSize,
    failed_names: FailedNames,
    /// A test from a line `test NAME ... ` without a result: the test prints, or runs alone.
    open: Option<Open>,
    /// A test whose name is in a line that starts with other text.
    middle: Option<Open>,
    /// The names and results of tests in torn lines.
    torn: Vec<(String, String)>,
    /// The index in `failed` of the test whose output is being read.
    block: Option<usize>,
    in_failures: bool,
    /// Whether there was a line of letters, as printed by `--quiet`.
    is_terse: bool,
    /// The lines after `failures:` within the output: the list of names, unless a line does not fit.
    names: Option<Names>,
}

/// The maximum number of failed tests that wait for their output. Further ones are reported without output.
const MAX_FAILED: usize = 10_000;

/// The maximum number of other lines in a list of names, and its maximum size in bytes.
const MAX_OTHER_LINES: usize = 10;
const MAX_LIST_BYTES: usize = 64 << 20;

/// The maximum number of torn lines that are kept.
const MAX_TORN: usize = 10_000;

/// A test without a result.
#[derive(Debug)]
struct Open {
    name: String,
    /// A result with other text beside it.
    torn: Option<String>,
}

impl Open {
    fn new(name: &str, torn: Option<&str>) -> Self {
        let name = shortened(without_kind(name), MAX_NAME_BYTES);
        Self { name, torn: torn.map(|torn| shortened(torn, MAX_NAME_BYTES)) }
    }
}

impl TextParser {
    fn name(&self, name: &str, outcome: TestOutcome) -> Case {
        Case::new(&self.suite, "::", without_kind(name), outcome)
    }

    fn result(&mut self, name: &str, result: &str, out: &mut Vec<Event>) -> bool {
        let result = result.trim_end();
        // `ok <0.003s>` with --report-time.
        let (result, time) = match result.split_once(" <") {
            Some((result, time)) => (result, time.strip_suffix("s>").and_then(|time| time.parse().ok())),
            None => (result, None),
        };
        let (word, rest) = result.split_once(',').unwrap_or((result, ""));
        let outcome = match word {
            "ok" => TestOutcome::Passed,
            "FAILED" | "failed" => TestOutcome::Failed,
            "ignored" => TestOutcome::Skipped,
            _ if word.starts_with("bench:") => TestOutcome::Passed,
            _ if word.starts_with("FAILED (time limit exceeded)") => TestOutcome::Timeout,
            _ => return false,
        };
        let mut case = self.name(name, outcome);
        case.duration = time.and_then(case::seconds);
        rest.trim().clone_into(&mut case.reason);
        self.ended += 1;
        if matches!(outcome, TestOutcome::Failed | TestOutcome::Timeout) {
            self.failures += 1;
            self.failed_names.insert(&case.name, self.failed.len());
            if self.failed.len() < MAX_FAILED {
                self.failed.push((case, TestOutput::default()));
                return true;
            }
            let message = format!("the output was skipped because {MAX_FAILED} tests had failed before");
            case.detail = Some(Detail { message, ..Detail::default() });
        }
        out.push(Event::Ended(Box::new(case)));
        true
    }

    /// Accepts the torn result of the open test when the binary continues.
    fn settle_open(&mut self, out: &mut Vec<Event>) {
        if let Some(Open { name, torn: Some(result) }) = self.open.take() {
            self.result(&name, &result, out);
        }
    }

    /// Stores the torn result of a test in the middle of a line when the binary continues.
    fn leave_middle(&mut self) {
        if let Some(Open { name, torn: Some(result) }) = self.middle.take()
            && self.torn.len() < MAX_TORN
        {
            self.torn.push((name, result));
        }
    }

    /// Uses torn lines for missing results at the end of the binary.
    fn settle(&mut self, out: &mut Vec<Event>) {
        self.settle_open(out);
        self.leave_middle();
        for (name, result) in mem::take(&mut self.torn) {
            if self.expected.is_some_and(|expected| self.ended < expected) {
                self.result(&name, &result, out);
            }
        }
    }

    /// Returns whether a torn line has a failure.
    fn has_torn_failure(&self) -> bool {
        let of_open = self.open.iter().chain(&self.middle).filter_map(|open| open.torn.as_deref());
        of_open.chain(self.torn.iter().map(|(_, result)| result.as_str())).any(|it| it.starts_with("FAILED"))
    }

    /// Handles the end of a binary, or the start of another one.
    fn close(&mut self, summary: Option<Summary>, out: &mut Vec<Event>) {
        self.failed_names.places.clear();
        for (mut case, printed) in mem::take(&mut self.failed) {
            case.stdout = printed.take(&mut self.held);
            // Blank lines separate blocks, and are not printed by the test.
            case.stdout.truncate(case.stdout.trim_end_matches('\n').len());
            if !case.stdout.is_empty() {
                case.stdout.push('\n');
            }
            let (detail, place) = panicked::read(&case.stdout);
            case.place = place;
            case.detail = Some(detail);
            out.push(Event::Ended(Box::new(case)));
        }
        self.block = None;
        self.in_failures = false;
        self.names = None;
        let open = self.open.take();
        self.middle = None;
        self.torn.clear();
        if let Some(expected) = self.expected.take()
            && self.ended < expected
        {
            let suite = if self.suite.is_empty() { "the binary" } else { &*self.suite };
            let ended = self.ended;
            out.push(if ended == 0 && self.is_terse {
                Event::Unreadable(format!(
                    "{suite} prints results without names; do not use -q, --quiet or --format terse"
                ))
            } else {
                let running = open.map(|open| format!(", while {} ran", open.name)).unwrap_or_default();
                Event::Problem(format!("{suite} ended after {ended} of {expected} tests{running}"))
            });
            self.targets.has_problem = true;
        } else if let Some(problem) = summary.and_then(|summary| summary.problem(self.ended, self.failures)) {
            let suite = if self.suite.is_empty() { "the binary" } else { &*self.suite };
            out.push(Event::Problem(format!("{suite} {problem}")));
            self.targets.has_problem = true;
        }
        self.targets.has_failures |= self.failures > 0;
        self.ended = 0;
        self.failures = 0;
        self.is_terse = false;
    }

    /// Handles a line in the output of failed tests, or in the list of names after it. Returns whether the binary has
    /// ended.
    fn failures(&mut self, line: &str, raw: &str) -> bool {
        if let Some(names) = &mut self.names {
            let is_name = |name: &str| self.failed_names.get(name.trim_end()).is_some();
            let has_room = names.lines < self.failed_names.places.len().saturating_add(MAX_OTHER_LINES)
                && names.text.len().saturating_add(raw.len()) < MAX_LIST_BYTES;
            if has_room && (line.is_empty() || line.strip_prefix("    ").is_some_and(is_name)) {
                names.push(raw);
                return false;
            }
            if line.starts_with("test result: ") {
                return true;
            }
            // The lines were printed by a test.
            let text = mem::take(&mut names.text);
            self.names = None;
            self.print(&text);
        }
        let name = line.strip_prefix("---- ").and_then(|rest| rest.strip_suffix(" ----"));
        let name = name.map(|name| without_kind(name.strip_suffix(" stdout").unwrap_or(name)));
        if let Some(block) = name.and_then(|name| self.failed_names.get(name)) {
            self.block = Some(block);
        } else if line == "failures:" {
            self.names.insert(Names::default()).push(raw);
        } else {
            self.print(raw);
            self.print("\n");
        }
        false
    }

    /// Appends to the output of the test whose output is being read.
    fn print(&mut self, text: &str) {
        if let Some((_, printed)) = self.block.and_then(|at| self.failed.get_mut(at)) {
            printed.push(text, &mut self.held);
        }
    }
}

/// Removes suffixes from the name of a test that lists do not have.
fn without_kind(name: &str) -> &str {
    let mut name = name.trim_end();
    for suffix in [" - should panic", " - compile fail", " - compile"] {
        name = name.strip_suffix(suffix).unwrap_or(name);
    }
    name
}

/// Removes color sequences.
fn plain(line: &str) -> Cow<'_, str> {
    if !line.contains('\x1b') {
        return Cow::Borrowed(line);
    }
    let mut plain = String::with_capacity(line.len());
    let mut pieces = line.split("\x1b[");
    plain.push_str(pieces.next().unwrap_or_default());
    for piece in pieces {
        let end = piece.find(|c: char| ('@'..='~').contains(&c)).map_or(piece.len(), |at| at + 1);
        plain.push_str(piece.get(end..).unwrap_or_default());
    }
    Cow::Owned(plain)
}

impl LineParser for TextParser {
    fn line(&mut self, raw: &str, out: &mut Vec<Event>) -> bool {
        let line = &*plain(raw);
        if let Some(suite) = heading(line) {
            self.close(None, out);
            self.targets.begin(out);
            self.suite = case::suite(&suite);
            return true;
        }
        if self.in_failures {
            if self.failures(line, raw) {
                self.close(Summary::read(line), out);
            }
            return true;
        }
        if let Some(count) = line.strip_prefix("running ").and_then(|rest| rest.split_once(" test")) {
            if let Ok(count) = count.0.parse() {
                self.close(None, out);
                self.targets.report(out);
                self.expected = Some(count);
            }
            return true;
        }
        if line.starts_with("test result: ") {
            self.settle(out);
            self.close(Summary::read(line), out);
            return true;
        }
        if self.expected.is_none() && self.targets.line(line, &self.suite, out) {
            return true;
        }
        self.is_terse |= self.expected.is_some() && is_letters(line);
        if line == "failures:" && (!self.failed.is_empty() || self.has_torn_failure()) {
            self.settle(out);
            self.in_failures = true;
            return true;
        }
        if self.expected.is_none()
            && let Some(name) = line.strip_suffix(": test").or_else(|| line.strip_suffix(": benchmark"))
        {
            out.push(Event::Listed(Box::new(self.name(name, TestOutcome::Passed))));
            return true;
        }
        if let Some((name, result)) = line.strip_prefix("test ").and_then(|rest| rest.split_once(" ... ")) {
            self.settle_open(out);
            self.leave_middle();
            if !self.result(name, result, out) {
                self.open = Some(Open::new(name, beside(result)));
            }
            return true;
        }
        let within = within(line).filter(|_| self.expected.is_some());
        // While a test runs alone, all output is from it.
        let continues = self.open.as_ref().is_none_or(|open| open.torn.is_some());
        if let Some((name, result)) = within
            && (continues || is_result(result))
        {
            self.leave_middle();
            let torn = beside(result).or_else(|| is_result(result).then_some(result));
            self.middle = Some(Open::new(name, torn));
        } else if let Some(middle) = &mut self.middle {
            middle.torn = beside(line).map(str::to_owned).or_else(|| middle.torn.take());
        }
        if self.middle.is_some() && continues {
            return false;
        }
        // The result of a test that printed output ends its last line.
        if let Some(mut open) = self.open.take() {
            let is_whole = ["ok", "FAILED"].contains(&line);
            if !is_whole || !self.result(&open.name, line, out) {
                open.torn = beside(line).map(str::to_owned).or(open.torn);
                self.open = Some(open);
            }
        }
        false
    }

    fn finish(&mut self, out: &mut Vec<Event>) {
        self.close(None, out);
        self.targets.report(out);
    }
}

/// Returns the result at the end of a line, after output of a test, or at its start.
fn beside(line: &str) -> Option<&str> {
    let line = line.trim_end();
    let words = ["ok", "FAILED"];
    let without_time = match line.rsplit_once(" <") {
        Some((before, time)) if time.strip_suffix("s>").is_some_and(|it| it.parse::<f64>().is_ok()) => before,
        _ => line,
    };
    let at_end = words.into_iter().find_map(|word| line.get(without_time.strip_suffix(word)?.len()..));
    at_end.or_else(|| words.into_iter().find(|word| line.starts_with(word)))
}

/// Returns the name of a test in a line that starts with other text, and the text after the name.
fn within(line: &str) -> Option<(&str, &str)> {
    let (head, result) = line.rsplit_once(" ... ")?;
    let (before, name) = head.strip_suffix(" - should panic").unwrap_or(head).rsplit_once(' ')?;
    let is_torn = before.ends_with("test") && before != "test" && !name.is_empty();
    is_torn.then_some((name, result))
}

/// Returns whether the text is a result and nothing else.
fn is_result(text: &str) -> bool {
    let is_word = beside(text).is_some_and(|word| word.len() == text.trim_end().len());
    is_word || text == "ignored" || text.starts_with("ignored, ")
}

/// Returns whether the line has letters only, such as `..F.i`, or `..F.i  5/101` at the end of a full line.
fn is_letters(line: &str) -> bool {
    let (letters, rest) = line.split_once(' ').unwrap_or((line, ""));
    let count = rest.trim();
    !letters.is_empty()
        && letters.bytes().all(|c| b".Fiab".contains(&c))
        && (count.is_empty() || count.bytes().all(|c| c.is_ascii_digit() || c == b'/'))
}
