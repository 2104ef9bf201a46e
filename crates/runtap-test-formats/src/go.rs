//! The JSON of `go test -json` (`go doc test2json`): a line for each event, a test's output in pieces. A package that fails
//! without a test of it failing (it does not compile, or its `TestMain` ends it) is a test of its own with the package's
//! name.

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::Read;
use crate::case::{Case, Detail, Event, Outcome, seconds};

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
    output: String,
    /// Tests that have begun and not ended, with what they have printed.
    tests: BTreeMap<String, String>,
    has_failed: bool,
}

impl Package {
    /// The tests that ran when the package died. The panic is in the output of one of them, or in the package's.
    fn unfinished(self, package: &str) -> impl Iterator<Item = Case> + use<> {
        let package = package.to_owned();
        let own = self.output;
        let is_told = self.tests.values().any(|printed| has_panic(printed));
        self.tests.into_iter().map(move |(test, printed)| {
            let said = if has_panic(&printed) || is_told { printed } else { printed + &own };
            let outcome = match () {
                () if said.contains("panic: test timed out after ") => Outcome::TimedOut,
                () if has_panic(&said) => Outcome::Failed,
                () => Outcome::Error,
            };
            let mut case = Case::new(&package, ".", &test, outcome);
            let lines: Vec<_> = said.lines().filter(|line| !is_frame(line)).collect();
            let why = "the package ended while it ran".to_owned();
            case.detail = Some(match outcome {
                Outcome::Error => Detail { message: why, ..Detail::default() },
                _ => detail(&lines),
            });
            case.stdout = said;
            case
        })
    }
}

fn has_panic(text: &str) -> bool {
    text.lines().any(|line| line.starts_with("panic: ") || line.starts_with("fatal error: "))
}

#[derive(Debug, Default)]
pub(crate) struct Go {
    packages: BTreeMap<String, Package>,
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
                    let case = Case::new(&name, ".", &test, Outcome::Passed);
                    out.push(Event::Begun { uid: case.uid, name: case.name });
                    package.tests.entry(test).or_default();
                }
                return true;
            }
            "output" | "build-output" => {
                let text = match test {
                    Some(test) => package.tests.entry(test).or_default(),
                    None => &mut package.output,
                };
                text.push_str(&output.unwrap_or_default());
                return true;
            }
            "pass" => Outcome::Passed,
            "skip" => Outcome::Skipped,
            "fail" => Outcome::Failed,
            "build-fail" => {
                package.has_failed = true;
                let case = broken(&name, "build failed", &package.output);
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
                out.extend(package.unfinished(&name).map(|case| Event::Ended(Box::new(case))));
            } else if outcome == Outcome::Failed && !package.has_failed {
                out.push(Event::Ended(Box::new(broken(&name, "the package failed", &package.output))));
            }
            return true;
        };
        let printed = package.tests.remove(&test).unwrap_or_default();
        package.has_failed |= outcome == Outcome::Failed;
        let mut case = Case::new(&name, ".", &test, outcome);
        case.duration = elapsed.and_then(seconds);
        let said: Vec<_> = printed.lines().filter(|line| !is_frame(line)).collect();
        let place = said.iter().find_map(|line| place(line));
        match outcome {
            Outcome::Skipped => {
                case.reason = said.iter().map(|line| message_of(line)).collect::<Vec<_>>().join("\n");
            }
            Outcome::Failed => case.detail = Some(detail(&said)),
            Outcome::Passed | Outcome::Error | Outcome::TimedOut => {}
        }
        if !said.is_empty() {
            case.stdout = said.join("\n") + "\n";
        }
        case.place = place.map(|(file, line)| (file.to_owned(), line));
        out.push(Event::Ended(Box::new(case)));
        true
    }

    fn finish(&mut self, out: &mut Vec<Event>) {
        for (name, package) in std::mem::take(&mut self.packages) {
            if package.has_failed && package.tests.is_empty() {
                continue;
            }
            let tests = package.tests.into_keys().collect::<Vec<_>>().join(", ");
            let tests = if tests.is_empty() { String::new() } else { format!(", while {tests} ran") };
            out.push(Event::Problem(format!("the package {name} has no end{tests}")));
        }
    }
}

fn read(text: &str) -> Option<Line> {
    text.starts_with('{').then(|| serde_json::from_str(text).ok()).flatten()
}

fn broken(name: &str, why: &str, output: &str) -> Case {
    let mut case = Case::new("", "", name, Outcome::Error);
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

/// From the first place on, or from a panic on, whose goroutines are the stack; else all of it.
fn detail(said: &[&str]) -> Detail {
    let is_panic = |line: &&str| line.starts_with("panic: ") || line.starts_with("fatal error: ");
    if let Some(at) = said.iter().position(is_panic) {
        let (message, stack): (Vec<_>, Vec<_>) = {
            let from = said.get(at..).unwrap_or_default();
            let end = from.iter().position(|line| line.starts_with("goroutine ")).unwrap_or(from.len());
            let (message, stack) = from.split_at(end);
            (message.to_vec(), stack.to_vec())
        };
        let message = message.join("\n");
        let message = message.trim_end();
        let message = message.strip_prefix("panic: ").unwrap_or(message).to_owned();
        return Detail { message, kind: "panic".to_owned(), stack: stack.join("\n") };
    }
    let from = said.iter().position(|line| place(line).is_some()).unwrap_or(0);
    let lines = said.get(from..).unwrap_or_default();
    let message = lines.iter().map(|line| message_of(line)).collect::<Vec<_>>().join("\n");
    Detail { message, ..Detail::default() }
}
