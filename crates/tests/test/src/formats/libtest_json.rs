//! The JSON of libtest, one line per event, and the JSON of nextest in the same form: its names are
//! `package::binary$test`, and its suites overlap.
//!
//! Cargo prints messages about targets to standard error: the caller must merge both streams, as for the text of
//! libtest. A result in a torn line is missing from the counts of its suite.

use std::sync::Arc;

use serde::Deserialize;

use crate::TestOutcome;
use crate::formats::case::{Case, Event, seconds};
use crate::formats::libtest::target::{Summary, Targets, heading};
use crate::formats::{LineParser, panicked};

#[derive(Debug, Deserialize)]
struct Line {
    #[serde(rename = "type")]
    kind: String,
    event: Option<String>,
    name: Option<String>,
    stdout: Option<String>,
    stderr: Option<String>,
    message: Option<String>,
    reason: Option<String>,
    exec_time: Option<f64>,
    passed: Option<u64>,
    failed: Option<u64>,
    ignored: Option<u64>,
    measured: Option<u64>,
    test_count: Option<u64>,
}

/// The type of a line with invalid other fields.
#[derive(Debug, Deserialize)]
struct LineKind {
    #[serde(rename = "type")]
    kind: String,
}

#[derive(Debug, Default)]
pub(crate) struct JsonParser {
    /// The number of open suites.
    open: u64,
    ended: u64,
    /// The numbers of ended and of failed tests since the suite started.
    of_suite: (u64, u64),
    /// The number of tests that the suite announced.
    promised: u64,
    /// The number of failed tests of all suites, and the number that nextest's suites report.
    failed: u64,
    said_failed: u64,
    is_nextest: bool,
    /// The name of the binary in cargo's messages.
    binary: String,
    targets: Targets,
}

impl LineParser for JsonParser {
    fn line(&mut self, line: &str, out: &mut Vec<Event>) -> bool {
        let Some(line) = line.strip_prefix('{').map(|_| line) else {
            if let Some(binary) = heading(line) {
                self.targets.begin(out);
                self.binary = binary;
                return false;
            }
            return self.open == 0 && self.targets.line(line, &self.binary, out);
        };
        let Ok(line) = serde_json::from_str::<Line>(line) else {
            let kind = serde_json::from_str::<LineKind>(line).map(|line| line.kind);
            let Some(kind) = kind.ok().filter(|kind| kind == "test" || kind == "suite") else { return false };
            out.push(Event::Unreadable(format!("a line about a {kind} is not readable: {line}")));
            return true;
        };
        let event = line.event.as_deref().unwrap_or_default();
        match (line.kind.as_str(), event) {
            ("suite", "started") => {
                self.open += 1;
                self.of_suite = (0, 0);
                self.promised = line.test_count.unwrap_or_default();
            }
            ("suite", event) => {
                let is_failed = event == "failed";
                self.open = self.open.saturating_sub(1);
                let (ended, failed) = self.of_suite;
                let counts = [line.passed, line.failed, line.ignored, line.measured];
                let total = counts.into_iter().flatten().fold(0, u64::saturating_add);
                let summary = Summary { is_failed, total, failed: line.failed.unwrap_or_default() };
                self.said_failed = self.said_failed.saturating_add(summary.failed.max(is_failed.into()));
                // A suite that stops at its first failure runs fewer tests than announced.
                let promised = if is_failed { 0 } else { self.promised };
                let short = (promised > ended)
                    .then(|| format!("has {promised} tests, but only {ended} of them have a line"));
                // Suites of nextest overlap, and are started again for remaining tests.
                if let Some(problem) = summary.problem(ended, failed).or(short).filter(|_| !self.is_nextest) {
                    self.targets.has_problem = true;
                    out.push(Event::Problem(format!("the suite {problem}")));
                }
            }
            ("test", "started") => {
                if let Some(name) = line.name {
                    let case = named(&name, TestOutcome::Passed);
                    out.push(Event::Started { uid: case.uid, name: case.name });
                }
            }
            ("bench", _) => self.of_suite.0 += 1,
            ("test", "ok" | "failed" | "ignored") if line.name.is_none() => {
                out.push(Event::Unreadable("a line about a test has no name".to_owned()));
            }
            ("test", _) => {
                if let Some(case) = ended(line) {
                    self.ended += 1;
                    let has_failed = matches!(case.outcome, TestOutcome::Failed | TestOutcome::Timeout);
                    self.of_suite = (self.of_suite.0 + 1, self.of_suite.1 + u64::from(has_failed));
                    self.failed += u64::from(has_failed);
                    self.targets.has_failures |= has_failed;
                    self.is_nextest |= case.uid.contains('$');
                    out.push(Event::Ended(Box::new(case)));
                }
            }
            _ => {}
        }
        true
    }

    fn finish(&mut self, out: &mut Vec<Event>) {
        self.targets.report(out);
        let (said, failed) = (self.said_failed, self.failed);
        if self.is_nextest && said > failed {
            let text =
                format!("the suites reported {said} failed tests, but only {failed} of them have a line");
            out.push(Event::Problem(text));
        }
        // The expected number is unknown: nextest starts a suite again for remaining tests.
        if self.open > 0 {
            let ended = self.ended;
            out.push(Event::Problem(format!("the command ended after {ended} tests, within a suite")));
        }
    }
}

fn named(name: &str, outcome: TestOutcome) -> Case {
    match name.split_once('$') {
        Some((suite, name)) => Case::new(&crate::formats::case::suite(suite), "$", name, outcome),
        None => Case::new(&Arc::default(), "", name, outcome),
    }
}

fn ended(line: Line) -> Option<Case> {
    let outcome = match line.event.as_deref()? {
        "ok" => TestOutcome::Passed,
        "failed" if line.reason.as_deref() == Some("time limit exceeded") => TestOutcome::Timeout,
        "failed" => TestOutcome::Failed,
        "ignored" => TestOutcome::Skipped,
        // `timeout` is only a warning; the test continues.
        _ => return None,
    };
    let mut case = named(&line.name?, outcome);
    case.duration = line.exec_time.and_then(seconds);
    case.stdout = line.stdout.unwrap_or_default();
    case.stderr = line.stderr.unwrap_or_default();
    match outcome {
        TestOutcome::Passed => {}
        TestOutcome::Skipped => case.reason = line.message.or(line.reason).unwrap_or_default(),
        TestOutcome::Failed | TestOutcome::Error | TestOutcome::Timeout | TestOutcome::Cancelled => {
            let (mut detail, place) = panicked::read(&case.stdout);
            if let Some(message) = line.message.filter(|message| !message.is_empty()) {
                detail.message = message;
            } else if outcome == TestOutcome::Timeout && detail.kind.is_empty() {
                "time limit exceeded".clone_into(&mut detail.message);
            }
            case.detail = Some(detail);
            case.place = place;
        }
    }
    Some(case)
}
