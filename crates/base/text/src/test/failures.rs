//! The failures repeated at the end of a run, in a few lines each: the test, the reason, and its location in the tests' own
//! code. Failures that a later attempt has replaced are left out.

use std::collections::{BTreeMap, HashMap};

use runtap_mtp::{ModuleId, TestOutcome, TestResult};
use runtap_test_report::{Attempt, TestResult as Reported};

use super::format::{MAX_NAME, cleaned, full_name, time};

/// The number of failures that are explained; of further ones only the names are shown, which saves memory.
const MAX_EXPLAINED: usize = 200;
/// The maximum number of lines of a message, and of frames of a stack.
const MAX_MESSAGE_LINES: usize = 3;
const MAX_FRAMES: usize = 2;

/// The beginnings of frames of test frameworks and the runtime, which are not useful for locating a failure.
const FRAMEWORK_PREFIXES: [&str; 13] = [
    "System.",
    "Microsoft.",
    "Xunit.",
    "NUnit.",
    "TUnit.",
    "MSTest.",
    "Shouldly.",
    "FluentAssertions.",
    "AwesomeAssertions.",
    "Moq.",
    "NSubstitute.",
    "InvokeStub_",
    "lambda_method",
];

/// A failed test.
#[derive(Debug)]
pub(super) struct Failure {
    pub(super) module: ModuleId,
    pub(super) name: String,
    /// The state and the duration.
    pub(super) word: String,
    /// The message and the location, indented; each line ends with a line feed.
    pub(super) explanation: String,
}

/// All failures, in the order in which they were reported.
#[derive(Debug, Default)]
pub(super) struct Failures {
    all: BTreeMap<u64, Failure>,
    next: u64,
    /// The number of the failure of each row. Several tests may have the same name, and one test may have several rows.
    by_row: HashMap<(ModuleId, usize), u64>,
}

impl Failures {
    /// Adds a result of any state: replaces the row's failure.
    pub(super) fn take(&mut self, module: ModuleId, result: &TestResult, reported: &Reported) {
        if result.outdated {
            return;
        }
        self.forget(module, result.row);
        if !result.execution.state.is_failure() {
            return;
        }
        let took =
            result.execution.duration().map(|duration| format!(" ({})", time(duration))).unwrap_or_default();
        let failure = Failure {
            module,
            name: full_name(reported),
            word: word(result.execution.state, result.quarantined) + &took,
            explanation: if self.all.len() < MAX_EXPLAINED {
                explanation(&reported.last)
            } else {
                String::new()
            },
        };
        self.by_row.insert((module, result.row), self.next);
        self.all.insert(self.next, failure);
        self.next += 1;
    }

    /// Removes the failure of a row, and returns it.
    pub(super) fn forget(&mut self, module: ModuleId, row: usize) -> Option<Failure> {
        let number = self.by_row.remove(&(module, row))?;
        self.all.remove(&number)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Failure> {
        self.all.values()
    }
}

/// Returns the text for a failure's state.
pub(super) fn word(state: TestOutcome, quarantined: bool) -> String {
    if quarantined { format!("{} in quarantine", state.name()) } else { state.name().to_owned() }
}

/// Returns the first lines of the message and the first frames of the tests' own code.
fn explanation(attempt: &Attempt) -> String {
    let mut text = String::new();
    let mut line = |line: &str| text.extend(["    ", &cleaned(line.trim(), MAX_NAME), "\n"]);
    // A message that only repeats the state adds nothing.
    let message = attempt.message().filter(|message| *message != attempt.state.words()).unwrap_or_default();
    let mut said = message.lines().filter(|line| !line.trim().is_empty());
    said.by_ref().take(MAX_MESSAGE_LINES).for_each(&mut line);
    if said.next().is_some() {
        line("…");
    }
    let stack = attempt.exceptions.iter().map(|it| it.stack.as_str()).find(|stack| !stack.is_empty());
    own_frames(stack.unwrap_or_default()).into_iter().for_each(line);
    text
}

/// Returns the first frames that belong to no framework; if there are none, the first frame.
fn own_frames(stack: &str) -> Vec<&str> {
    let frames = || stack.lines().map(str::trim).filter(|line| line.starts_with("at "));
    let is_own = |frame: &&str| {
        let method = frame.trim_start_matches("at ");
        !FRAMEWORK_PREFIXES.iter().any(|foreign| method.starts_with(foreign))
    };
    let own: Vec<_> = frames().filter(is_own).take(MAX_FRAMES).collect();
    if own.is_empty() { frames().take(1).collect() } else { own }
}

#[cfg(test)]
mod tests {
    use super::*;
    use runtap_test_report::Exception;

    fn ended(row: usize, attempt: u32, state: TestOutcome) -> TestResult {
        let execution = Attempt { state, ..Attempt::default() };
        TestResult { row, attempt, execution, ..TestResult::default() }
    }

    fn names(failures: &Failures) -> Vec<&str> {
        failures.iter().map(|failure| failure.name.as_str()).collect()
    }

    #[test]
    fn tests_with_the_same_name_are_distinguished() {
        let mut failures = Failures::default();
        let works = Reported { name: "Works".into(), ..Reported::default() };
        for row in [0, 1] {
            failures.take(ModuleId(0), &ended(row, 1, TestOutcome::Failed), &works);
        }
        failures.take(ModuleId(0), &ended(1, 2, TestOutcome::Failed), &works);
        failures.take(ModuleId(0), &TestResult { flaky: true, ..ended(0, 2, TestOutcome::Passed) }, &works);
        assert_eq!(names(&failures), ["Works"]);
        failures.take(ModuleId(1), &ended(1, 2, TestOutcome::Passed), &works);
        assert_eq!(names(&failures), ["Works"], "another application's test");
        let late = TestResult { outdated: true, ..ended(1, 1, TestOutcome::Passed) };
        failures.take(ModuleId(0), &late, &works);
        assert_eq!(names(&failures), ["Works"], "a later attempt is known");
    }

    #[test]
    fn rows_of_one_test_are_independent() {
        let mut failures = Failures::default();
        let case = |name: &str| Reported { name: name.into(), ..Reported::default() };
        for (row, name) in ["case 1", "case 2"].into_iter().enumerate() {
            failures.take(ModuleId(0), &ended(row, 1, TestOutcome::Failed), &case(name));
        }
        assert_eq!(names(&failures), ["case 1", "case 2"]);
        failures.take(ModuleId(0), &ended(0, 2, TestOutcome::Skipped), &case("case 1"));
        assert_eq!(names(&failures), ["case 2"]);
        assert_eq!(failures.forget(ModuleId(0), 1).unwrap().name, "case 2");
        assert!(failures.is_empty() && failures.by_row.is_empty());
    }

    #[test]
    fn the_explanation_shows_frames_of_the_tests_own_code() {
        let stack = "   at Xunit.Assert.Equal[T](T a, T b)\n   at Shop.Cart.Add() in /src/Cart.cs:line 7\n   at \
                     System.Lazy.Value()\n   at Shop.Tests.Adds() in /src/Tests.cs:line 3\n   at Shop.Main()";
        let exception = Exception {
            message: "one\n\ntwo\nthree\nfour".into(),
            stack: stack.into(),
            ..Exception::default()
        };
        let attempt = Attempt { exceptions: vec![exception], ..Attempt::default() };
        let attempt = Attempt { state: TestOutcome::Failed, ..attempt };
        assert_eq!(
            explanation(&attempt),
            "    one\n    two\n    three\n    …\n    at Shop.Cart.Add() in /src/Cart.cs:line 7\n    at Shop.Tests.Adds() in /src/Tests.cs:line 3\n"
        );
        assert_eq!(own_frames("at System.A()\nat System.B()"), ["at System.A()"]);
        assert!(own_frames("").is_empty());
    }
}
