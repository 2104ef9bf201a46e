//! The JSON of `go test -json` (`go doc test2json`): one line per event, with a test's output in chunks. A package that
//! fails without a failed test (it does not compile, or its `TestMain` exits) is reported as a test with the package's
//! name. So is a package that fails after the verdict about its tests: it printed more output, or exited with a status
//! other than 1.
//!
//! Output without a line end hides markers that go prints after it from test2json before go 1.20: there are no events
//! for `hello--- PASS: TestX (0.00s)` and `hello=== RUN   TestX`. Such lines are used if no event reports the test.

mod build;
mod text;

use std::collections::BTreeMap;
use std::mem;
use std::sync::Arc;
use std::time::Duration;

use serde::Deserialize;

use crate::TestOutcome;
use crate::formats::LineParser;
use crate::formats::case::{
    Case, Detail, Event, MAX_NAME_BYTES, MAX_REASON_BYTES, seconds, shortened, suite,
};
use crate::formats::test_output::{OutputSize, TestOutput};

use self::build::Builds;
use self::text::{
    after_verdict, detail, has_panic, location_of, messages, outcome_of, parse_end_marker,
    parse_start_marker, without_markers,
};

#[derive(Debug, Deserialize)]
struct Line {
    #[serde(rename = "Action")]
    action: String,
    #[serde(rename = "Package", alias = "ImportPath")]
    package: Option<String>,
    #[serde(rename = "FailedBuild")]
    failed_build: Option<String>,
    #[serde(rename = "Test")]
    test: Option<String>,
    #[serde(rename = "Output")]
    output: Option<String>,
    #[serde(rename = "Elapsed")]
    elapsed: Option<f64>,
}

#[derive(Debug, Default)]
struct Package {
    output: TestOutput,
    /// The running tests.
    tests: BTreeMap<String, Running>,
    has_failed: bool,
    /// Whether the events are complete.
    is_exact: bool,
    /// The test that events name, and the test that really printed: its start is in the middle of a line.
    redirect: Option<(String, String)>,
}

/// A test without an end event.
#[derive(Debug, Default)]
struct Running {
    printed: TestOutput,
    /// The end according to a line of output.
    ended: Option<(TestOutcome, Option<Duration>)>,
    /// Whether there was no start event either.
    is_guess: bool,
}

/// The maximum number of tests that a message names.
const MAX_NAMED: usize = 10;

const BUILD_FAILED: &str = "build failed";

impl Package {
    /// Returns whether no test of the package has started.
    fn is_untested(&self) -> bool {
        self.tests.is_empty() && !self.has_failed
    }

    /// Handles output that events assign to this test.
    fn print(
        &mut self,
        package: &str,
        test: String,
        text: &str,
        held: &mut OutputSize,
        out: &mut Vec<Event>,
    ) {
        if self.is_exact {
            return self.tests.entry(test).or_default().printed.push(text, held);
        }
        let own = match &self.redirect {
            Some((named, own)) if *named == test => own.clone(),
            _ => test.clone(),
        };
        let mut before = text;
        if let Some((head, name, outcome, duration)) = parse_end_marker(text)
            && let Some(running) = self.tests.get_mut(name)
        {
            running.ended = Some((outcome, duration));
            before = if head.trim_start().is_empty() { text } else { head };
        } else if let Some((head, name)) = parse_start_marker(text) {
            if !self.tests.contains_key(name) {
                let case = Case::new(&suite(package), ".", name, TestOutcome::Passed);
                out.push(Event::Started { uid: case.uid, name: case.name });
                self.tests.insert(name.to_owned(), Running { is_guess: true, ..Running::default() });
            }
            self.redirect = Some((test, name.to_owned()));
            before = head;
        }
        let printed = &mut self.tests.entry(own).or_default().printed;
        printed.push(before, held);
        if before.len() < text.len() {
            printed.push("\n", held);
        }
    }

    /// Ends the tests whose end was found only in a line of output.
    fn settle(&mut self, package: &str, held: &mut OutputSize, out: &mut Vec<Event>) {
        for (test, running) in mem::take(&mut self.tests) {
            match running.ended {
                // A test that printed a pass and then panics has not passed.
                Some((outcome, duration))
                    if outcome == TestOutcome::Failed || !has_panic(running.printed.text()) =>
                {
                    self.has_failed |= outcome == TestOutcome::Failed;
                    out.push(ended(package, &test, outcome, duration, &running.printed.take(held)));
                }
                _ => drop(self.tests.insert(test, running)),
            }
        }
    }

    /// Handles the end of the package.
    fn end(mut self, name: &str, outcome: TestOutcome, held: &mut OutputSize, out: &mut Vec<Event>) {
        self.settle(name, held, out);
        let has_unfinished = self.tests.values().any(|test| !test.is_guess);
        if outcome == TestOutcome::Failed {
            if self.has_failed || has_unfinished {
                match after_verdict(self.output.text()) {
                    Some(more) if more.is_empty() => {}
                    Some(more) => {
                        let why = "the package failed, and printed this after the verdict about its tests";
                        out.push(Event::Ended(Box::new(broken(name, why, &more))));
                    }
                    None => {
                        let name = shortened(name, MAX_NAME_BYTES);
                        out.push(Event::Problem(format!(
                            "the package {name} ended without a verdict about its tests: some may not have run"
                        )));
                    }
                }
            } else {
                let printed = mem::take(&mut self.output).take(held);
                out.push(Event::Ended(Box::new(broken(name, "the package failed", &printed))));
            }
        }
        if has_unfinished {
            return self.unfinished(name, held, out);
        }
        self.output.take(held);
        for (_, running) in self.tests {
            running.printed.take(held);
        }
    }

    /// Ends the tests that were running when the package crashed. The panic is in the output of one of them, or of the
    /// package. Only the first test gets the whole output, to limit the total size.
    fn unfinished(self, package: &str, held: &mut OutputSize, out: &mut Vec<Event>) {
        let package = suite(package);
        let is_told = self.tests.values().any(|test| has_panic(test.printed.text()));
        let own = self.output.take(held);
        let mut own = if is_told { String::new() } else { own };
        let own_outcome = outcome_of(&own);
        let mut own_detail = own_outcome.map(|_| detail(&without_markers(&own)));
        for (test, running) in self.tests {
            let mut said = running.printed.take(held);
            let outcome = own_outcome.or_else(|| outcome_of(&said)).unwrap_or(TestOutcome::Error);
            let mut case = Case::new(&package, ".", &test, outcome);
            case.detail = Some(match &mut own_detail {
                _ if outcome == TestOutcome::Error => {
                    Detail { message: "the package ended while the test ran".to_owned(), ..Detail::default() }
                }
                Some(detail) => {
                    let line = detail.message.lines().next().unwrap_or_default();
                    let short = Detail {
                        message: shortened(line, MAX_REASON_BYTES),
                        kind: detail.kind.clone(),
                        stack: String::new(),
                    };
                    mem::replace(detail, short)
                }
                None => detail(&without_markers(&said)),
            });
            said.push_str(&mem::take(&mut own));
            case.stdout = said;
            out.push(Event::Ended(Box::new(case)));
        }
    }
}

#[derive(Debug, Default)]
pub(crate) struct Go {
    packages: BTreeMap<String, Package>,
    builds: Builds,
    /// The size of the output in `packages` and `builds`.
    held: OutputSize,
}

impl LineParser for Go {
    fn line(&mut self, text: &str, out: &mut Vec<Event>) -> bool {
        let mut is_of_format = false;
        let mut rest = events_in(text);
        // Concurrent writers may leave several events on one line.
        while !rest.is_empty() {
            let mut read = serde_json::Deserializer::from_str(rest).into_iter::<Line>();
            let Some(Ok(line)) = read.next() else { break };
            rest = rest.get(read.byte_offset()..).unwrap_or_default().trim_start();
            is_of_format |= self.event(line, out);
        }
        if rest.contains("\"Action\"") {
            out.push(Event::Unreadable(format!("an event of go is not readable: {rest}")));
            return true;
        }
        if !is_of_format {
            // `FAIL example.org/shop [build failed]`, as printed by go before 1.24.
            if let Some(rest) = text.strip_prefix("FAIL\t")
                && let Some((name, why)) = rest.split_once(' ')
                && why.starts_with('[')
            {
                out.push(Event::Ended(Box::new(broken(name, why.trim_matches(['[', ']']), ""))));
                return true;
            }
        }
        is_of_format
    }

    fn finish(&mut self, out: &mut Vec<Event>) {
        for (name, mut package) in mem::take(&mut self.packages) {
            package.settle(&name, &mut self.held, out);
            let more = package.tests.len().saturating_sub(MAX_NAMED);
            let mut tests: Vec<_> =
                package.tests.keys().take(MAX_NAMED).map(|test| shortened(test, MAX_REASON_BYTES)).collect();
            tests.extend((more > 0).then(|| format!("{more} more")));
            let tests = tests.join(", ");
            let tests = if tests.is_empty() { String::new() } else { format!(", while {tests} ran") };
            let name = shortened(&name, MAX_NAME_BYTES);
            out.push(Event::Problem(format!("the package {name} has no end{tests}")));
        }
        for (path, printed) in self.builds.finish(&mut self.held) {
            out.push(Event::Ended(Box::new(broken(&path, BUILD_FAILED, &printed))));
        }
    }
}

impl Go {
    /// Handles an event. Returns whether it is an event of a package.
    fn event(&mut self, line: Line, out: &mut Vec<Event>) -> bool {
        let Line { action, package, failed_build, test, output, elapsed } = line;
        let Some(name) = package else {
            let action = shortened(&action, MAX_REASON_BYTES);
            out.push(Event::Unreadable(format!("an event {action} of go names no package")));
            return true;
        };
        match action.as_str() {
            "build-output" => {
                self.builds.print(name, &output.unwrap_or_default(), &mut self.held);
                return true;
            }
            "build-fail" => {
                self.builds.fail(name);
                return true;
            }
            _ => {}
        }
        let package = self.packages.entry(name.clone()).or_default();
        let outcome = match action.as_str() {
            "run" => {
                if let Some(test) = test {
                    let case = Case::new(&suite(&name), ".", &test, TestOutcome::Passed);
                    out.push(Event::Started { uid: case.uid, name: case.name });
                    package.tests.entry(test).or_default();
                    package.redirect = None;
                }
                return true;
            }
            "output" => {
                let text = output.unwrap_or_default();
                match test {
                    Some(test) => package.print(&name, test, &text, &mut self.held, out),
                    None => package.output.push(&text, &mut self.held),
                }
                return true;
            }
            // Sent by go 1.20 and later, whose events are complete.
            "start" => {
                package.is_exact = true;
                return true;
            }
            "pass" => TestOutcome::Passed,
            "skip" => TestOutcome::Skipped,
            "fail" => TestOutcome::Failed,
            // pause, cont, bench
            _ => return true,
        };
        let Some(test) = test else {
            let package = self.packages.remove(&name).unwrap_or_default();
            let failed_build = failed_build.or_else(|| self.builds.has_failed(&name).then(|| name.clone()));
            if let Some(path) =
                failed_build.filter(|_| outcome == TestOutcome::Failed && package.is_untested())
            {
                package.output.take(&mut self.held);
                let printed = self.builds.output(&path, &name, &mut self.held);
                out.push(Event::Ended(Box::new(broken(&name, BUILD_FAILED, &printed))));
                return true;
            }
            package.end(&name, outcome, &mut self.held, out);
            return true;
        };
        let printed = package.tests.remove(&test).unwrap_or_default().printed.take(&mut self.held);
        package.has_failed |= outcome == TestOutcome::Failed;
        out.push(ended(&name, &test, outcome, elapsed.and_then(seconds), &printed));
        true
    }
}

/// Returns the part of a line that starts with an event: events may follow output of another process.
fn events_in(text: &str) -> &str {
    let starts = ["{\"Time\":", "{\"Action\":", "{\"ImportPath\":"];
    let start = if text.trim_start().starts_with('{') {
        Some(0)
    } else {
        starts.iter().filter_map(|start| text.find(start)).min()
    };
    start.and_then(|start| text.get(start..)).unwrap_or_default().trim_start()
}

/// Creates the event of a test that ended with this output.
fn ended(
    package: &str,
    test: &str,
    outcome: TestOutcome,
    duration: Option<Duration>,
    printed: &str,
) -> Event {
    let mut case = Case::new(&suite(package), ".", test, outcome);
    case.duration = duration;
    let said = without_markers(printed);
    match outcome {
        TestOutcome::Skipped => case.reason = messages(&said),
        TestOutcome::Failed => case.detail = Some(detail(&said)),
        TestOutcome::Passed | TestOutcome::Error | TestOutcome::Timeout | TestOutcome::Cancelled => {}
    }
    case.place = said.lines().find_map(location_of).map(|(file, line)| (file.to_owned(), line));
    case.stdout = said;
    Event::Ended(Box::new(case))
}

fn broken(name: &str, why: &str, output: &str) -> Case {
    let mut case = Case::new(&Arc::default(), "", name, TestOutcome::Error);
    let printed = output.trim_end();
    let message = if printed.is_empty() { why.to_owned() } else { format!("{why}\n{printed}") };
    case.detail = Some(Detail { message, ..Detail::default() });
    case
}
