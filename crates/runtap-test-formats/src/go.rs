//! The JSON of `go test -json` (`go doc test2json`): a line for each event, a test's output in pieces. A package that fails
//! without a test of it failing (it does not compile, or its `TestMain` ends it) is a test of its own with the package's
//! name.

use std::collections::BTreeMap;
use std::mem;
use std::sync::Arc;

use serde::Deserialize;

use crate::Read;
use crate::case::{Case, Detail, Event, LONGEST_NAME, Outcome, seconds, shortened, suite};
use crate::printed::{Held, Printed};

#[derive(Debug, Deserialize)]
struct Line {
    #[serde(rename = "Action")]
    action: String,
    #[serde(rename = "Package", alias = "ImportPath")]
    package: Option<String>,
    #[serde(rename = "Test")]
    test: Option<String>,
    #[serde(rename = "Output")]
    output: Option<String>,
    #[serde(rename = "Elapsed")]
    elapsed: Option<f64>,
}

#[derive(Debug, Default)]
struct Package {
    output: Printed,
    /// Tests that have begun and not ended, with what they have printed.
    tests: BTreeMap<String, Printed>,
    has_failed: bool,
}

/// The tests that a message names; it tells how many more there are.
const MOST_NAMED: usize = 10;

/// Of a panic that ended several tests, all but the first have its first line.
const LONGEST_REASON: usize = 256;

impl Package {
    /// The tests that ran when the package died. The panic is in the output of one of them, or in the package's. The first
    /// one gets that: if each did, they would be as large as the output times the number of tests.
    fn unfinished(self, package: &str, held: &mut Held, out: &mut Vec<Event>) {
        let package = suite(package);
        let is_told = self.tests.values().any(|printed| has_panic(printed.text()));
        let own = self.output.take(held);
        let mut own = if is_told { String::new() } else { own };
        let own_outcome = outcome_of(&own);
        let mut own_detail = own_outcome.map(|_| detail(&without_frames(&own)));
        for (test, printed) in self.tests {
            let mut said = printed.take(held);
            let outcome = own_outcome.or_else(|| outcome_of(&said)).unwrap_or(Outcome::Error);
            let mut case = Case::new(&package, ".", &test, outcome);
            case.detail = Some(match &mut own_detail {
                _ if outcome == Outcome::Error => {
                    Detail { message: "the package ended while it ran".to_owned(), ..Detail::default() }
                }
                Some(detail) => {
                    let line = detail.message.lines().next().unwrap_or_default();
                    let short = Detail {
                        message: shortened(line, LONGEST_REASON),
                        kind: detail.kind.clone(),
                        stack: String::new(),
                    };
                    mem::replace(detail, short)
                }
                None => detail(&without_frames(&said)),
            });
            said.push_str(&mem::take(&mut own));
            case.stdout = said;
            out.push(Event::Ended(Box::new(case)));
        }
    }
}

/// What a panic in this output makes of a test.
fn outcome_of(text: &str) -> Option<Outcome> {
    match () {
        () if text.contains("panic: test timed out after ") => Some(Outcome::TimedOut),
        () => has_panic(text).then_some(Outcome::Failed),
    }
}

fn has_panic(text: &str) -> bool {
    text.lines().any(|line| line.starts_with("panic: ") || line.starts_with("fatal error: "))
}

#[derive(Debug, Default)]
pub(crate) struct Go {
    packages: BTreeMap<String, Package>,
    /// The output in them.
    held: Held,
}

impl Read for Go {
    fn line(&mut self, text: &str, out: &mut Vec<Event>) -> bool {
        let Some(Line { action, package: Some(name), test, output, elapsed }) = read(text) else {
            // `FAIL example.org/shop [build failed]`, as go before 1.24 says it.
            if let Some(rest) = text.strip_prefix("FAIL\t")
                && let Some((name, why)) = rest.split_once(' ')
                && why.starts_with('[')
            {
                out.push(Event::Ended(Box::new(broken(name, why.trim_matches(['[', ']']), ""))));
                return true;
            }
            return false;
        };
        let package = self.packages.entry(name.clone()).or_default();
        let outcome = match action.as_str() {
            "run" => {
                if let Some(test) = test {
                    let case = Case::new(&suite(&name), ".", &test, Outcome::Passed);
                    out.push(Event::Begun { uid: case.uid, name: case.name });
                    package.tests.entry(test).or_default();
                }
                return true;
            }
            "output" | "build-output" => {
                let printed = match test {
                    Some(test) => package.tests.entry(test).or_default(),
                    None => &mut package.output,
                };
                printed.push(&output.unwrap_or_default(), &mut self.held);
                return true;
            }
            "pass" => Outcome::Passed,
            "skip" => Outcome::Skipped,
            "fail" => Outcome::Failed,
            "build-fail" => {
                package.has_failed = true;
                let printed = mem::take(&mut package.output).take(&mut self.held);
                let case = broken(&name, "build failed", &printed);
                out.push(Event::Ended(Box::new(case)));
                return true;
            }
            // start, pause, cont, bench
            _ => return true,
        };
        let Some(test) = test else {
            let package = self.packages.remove(&name).unwrap_or_default();
            if outcome == Outcome::Failed && !package.tests.is_empty() {
                // It has died: of a panic elsewhere than in the test's goroutine, or its time was over.
                package.unfinished(&name, &mut self.held, out);
                return true;
            }
            for (_, printed) in package.tests {
                printed.take(&mut self.held);
            }
            let printed = package.output.take(&mut self.held);
            if outcome == Outcome::Failed && !package.has_failed {
                out.push(Event::Ended(Box::new(broken(&name, "the package failed", &printed))));
            }
            return true;
        };
        let printed = package.tests.remove(&test).unwrap_or_default().take(&mut self.held);
        package.has_failed |= outcome == Outcome::Failed;
        let mut case = Case::new(&suite(&name), ".", &test, outcome);
        case.duration = elapsed.and_then(seconds);
        let said = without_frames(&printed);
        match outcome {
            Outcome::Skipped => case.reason = messages(&said),
            Outcome::Failed => case.detail = Some(detail(&said)),
            Outcome::Passed | Outcome::Error | Outcome::TimedOut => {}
        }
        case.place = said.lines().find_map(place).map(|(file, line)| (file.to_owned(), line));
        case.stdout = said;
        out.push(Event::Ended(Box::new(case)));
        true
    }

    fn finish(&mut self, out: &mut Vec<Event>) {
        for (name, package) in mem::take(&mut self.packages) {
            if package.has_failed && package.tests.is_empty() {
                continue;
            }
            let more = package.tests.len().saturating_sub(MOST_NAMED);
            let mut tests: Vec<_> =
                package.tests.keys().take(MOST_NAMED).map(|test| shortened(test, LONGEST_REASON)).collect();
            tests.extend((more > 0).then(|| format!("{more} more")));
            let tests = tests.join(", ");
            let tests = if tests.is_empty() { String::new() } else { format!(", while {tests} ran") };
            let name = shortened(&name, LONGEST_NAME);
            out.push(Event::Problem(format!("the package {name} has no end{tests}")));
        }
    }
}

fn read(text: &str) -> Option<Line> {
    text.starts_with('{').then(|| serde_json::from_str(text).ok()).flatten()
}

fn broken(name: &str, why: &str, output: &str) -> Case {
    let mut case = Case::new(&Arc::default(), "", name, Outcome::Error);
    let printed = output.trim_end();
    let message = if printed.is_empty() { why.to_owned() } else { format!("{why}\n{printed}") };
    case.detail = Some(Detail { message, ..Detail::default() });
    case
}

/// `=== RUN   TestX`, `--- FAIL: TestX (0.00s)`: what go itself says of a test.
fn is_frame(line: &str) -> bool {
    let line = line.trim_start();
    ["=== RUN", "=== PAUSE", "=== CONT", "=== NAME", "--- PASS", "--- FAIL", "--- SKIP"]
        .iter()
        .any(|frame| line.starts_with(frame))
}

/// `    shop_test.go:12: message`
fn place(line: &str) -> Option<(&str, u32)> {
    let (file, rest) = line.trim_start().split_once(':')?;
    let (number, _) = rest.split_once(": ")?;
    file.strip_suffix(".go").and_then(|_| Some((file, number.parse().ok()?)))
}

fn message_of(line: &str) -> &str {
    let line = line.trim_start();
    match place(line) {
        Some(_) => line.splitn(3, ':').nth(2).unwrap_or_default().trim_start(),
        None => line,
    }
}

/// An output without go's own lines.
fn without_frames(text: &str) -> String {
    let mut said = String::with_capacity(text.len());
    for line in text.lines().filter(|line| !is_frame(line)) {
        said.push_str(line);
        said.push('\n');
    }
    said
}

/// Lines without the places before them.
fn messages(text: &str) -> String {
    let mut all = String::new();
    for line in text.lines() {
        all.push_str(message_of(line));
        all.push('\n');
    }
    all.pop();
    all
}

/// The text from the first such line on, and what is before it.
fn split_at_line(text: &str, is: impl Fn(&str) -> bool) -> Option<(&str, &str)> {
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        if is(line) {
            return text.split_at_checked(at);
        }
        at += line.len();
    }
    None
}

/// From the first place on, or from a panic on, whose goroutines are the stack; else all of it.
fn detail(said: &str) -> Detail {
    let is_panic = |line: &str| line.starts_with("panic: ") || line.starts_with("fatal error: ");
    if let Some((_, panic)) = split_at_line(said, is_panic) {
        let is_stack = |line: &str| line.starts_with("goroutine ");
        let (message, stack) = split_at_line(panic, is_stack).unwrap_or((panic, ""));
        let message = message.trim_end();
        let message = message.strip_prefix("panic: ").unwrap_or(message).to_owned();
        let stack = stack.strip_suffix('\n').unwrap_or(stack).to_owned();
        return Detail { message, kind: "panic".to_owned(), stack };
    }
    let from = split_at_line(said, |line| place(line).is_some()).map_or(said, |(_, from)| from);
    Detail { message: messages(from), ..Detail::default() }
}
