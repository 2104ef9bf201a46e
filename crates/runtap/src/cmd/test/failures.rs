//! The failures of a run that are said once more at its end, each in a few lines: what failed, why, and where in the tests' own
//! code. Those that a later attempt has replaced are none.

use std::collections::{BTreeMap, HashMap};

use runtap_mtp::{ModuleId, State, TestResult};
use runtap_test_report::{Attempt, TestResult as Reported};

use super::lines::{NAME, cleaned, named};
use super::words::time;

/// Of more failures, only the names: nobody reads that far, and each takes memory.
const EXPLAINED: usize = 200;
/// Lines of a message, and frames of a stack.
const MESSAGE: usize = 3;
const FRAMES: usize = 2;

/// What the frames of test frameworks and of the runtime begin with: a failure is never about them.
const FOREIGN: [&str; 13] = [
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

/// A test that has failed.
#[derive(Debug)]
pub(super) struct Failure {
    pub(super) module: ModuleId,
    pub(super) name: String,
    /// The state and how long it took.
    pub(super) word: String,
    /// The message and where it comes from, indented; a line feed after each line.
    pub(super) why: String,
}

/// All of them, in the order in which they came.
#[derive(Debug, Default)]
pub(super) struct Failures {
    all: BTreeMap<u64, Failure>,
    next: u64,
    /// Those of a test, by its id: several tests may have one name, and several results one id.
    by_test: HashMap<(ModuleId, String), Vec<(u32, u64)>>,
}

impl Failures {
    /// Takes in a result, whatever it is.
    pub(super) fn take(&mut self, module: ModuleId, result: &TestResult, reported: &Reported) {
        let fails = result.state.is_failure() && !result.superseded;
        if !fails && self.by_test.is_empty() {
            return;
        }
        let key = (module, result.uid.clone());
        if let Some(known) = self.by_test.get_mut(&key) {
            known.retain(|(attempt, number)| {
                let stays = *attempt >= result.attempt;
                if !stays {
                    self.all.remove(number);
                }
                stays
            });
            if known.is_empty() {
                self.by_test.remove(&key);
            }
        }
        if !fails {
            return;
        }
        let took = result.duration.map(|duration| format!(" ({})", time(duration))).unwrap_or_default();
        let failure = Failure {
            module,
            name: named(reported),
            word: word(result.state, result.quarantined) + &took,
            why: if self.all.len() < EXPLAINED { why(&reported.last) } else { String::new() },
        };
        self.by_test.entry(key).or_default().push((result.attempt, self.next));
        self.all.insert(self.next, failure);
        self.next += 1;
    }

    pub(super) fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Failure> {
        self.all.values()
    }
}

/// The state of a failure.
pub(super) fn word(state: State, quarantined: bool) -> String {
    if quarantined { format!("{} in quarantine", state.word()) } else { state.word().to_owned() }
}

/// The beginning of the message, and the first frames of the tests' own code.
fn why(attempt: &Attempt) -> String {
    let mut text = String::new();
    let mut line = |line: &str| text.extend(["    ", &cleaned(line.trim(), NAME), "\n"]);
    // Where nothing is said, the state is all there is, and that was said.
    let message = attempt.message().filter(|message| *message != attempt.state.words()).unwrap_or_default();
    let mut said = message.lines().filter(|line| !line.trim().is_empty());
    said.by_ref().take(MESSAGE).for_each(&mut line);
    if said.next().is_some() {
        line("…");
    }
    let stack = attempt.exceptions.iter().map(|it| it.stack.as_str()).find(|stack| !stack.is_empty());
    own_frames(stack.unwrap_or_default()).into_iter().for_each(line);
    text
}

/// The first frames that are no framework's; if all are, the first one.
fn own_frames(stack: &str) -> Vec<&str> {
    let frames = || stack.lines().map(str::trim).filter(|line| line.starts_with("at "));
    let is_own = |frame: &&str| {
        let method = frame.trim_start_matches("at ");
        !FOREIGN.iter().any(|foreign| method.starts_with(foreign))
    };
    let own: Vec<_> = frames().filter(is_own).take(FRAMES).collect();
    if own.is_empty() { frames().take(1).collect() } else { own }
}

#[cfg(test)]
mod tests {
    use super::*;
    use runtap_test_report::Exception;

    fn ended(uid: &str, attempt: u32, state: State) -> TestResult {
        TestResult { uid: uid.into(), attempt, state, ..TestResult::default() }
    }

    fn names(failures: &Failures) -> Vec<&str> {
        failures.iter().map(|failure| failure.name.as_str()).collect()
    }

    #[test]
    fn tests_of_one_name_are_told_apart() {
        let mut failures = Failures::default();
        let works = Reported { name: "Works".into(), ..Reported::default() };
        for uid in ["a", "b"] {
            failures.take(ModuleId(0), &ended(uid, 1, State::Failed), &works);
        }
        failures.take(ModuleId(0), &ended("b", 2, State::Failed), &works);
        failures.take(ModuleId(0), &TestResult { flaky: true, ..ended("a", 2, State::Passed) }, &works);
        assert_eq!(names(&failures), ["Works"]);
        failures.take(ModuleId(1), &ended("b", 2, State::Passed), &works);
        assert_eq!(names(&failures), ["Works"], "another application's test");
    }

    #[test]
    fn results_of_one_attempt_stay_together_and_go_together() {
        let mut failures = Failures::default();
        for name in ["case 1", "case 2"] {
            let case = Reported { name: name.into(), ..Reported::default() };
            failures.take(ModuleId(0), &ended("a", 1, State::Failed), &case);
        }
        assert_eq!(names(&failures), ["case 1", "case 2"]);
        let skipped = Reported { name: "case 1".into(), ..Reported::default() };
        failures.take(ModuleId(0), &ended("a", 2, State::Skipped), &skipped);
        assert!(failures.is_empty() && failures.by_test.is_empty());
    }

    #[test]
    fn what_is_said_is_about_the_tests_own_code() {
        let stack = "   at Xunit.Assert.Equal[T](T a, T b)\n   at Shop.Cart.Add() in /src/Cart.cs:line 7\n   at \
                     System.Lazy.Value()\n   at Shop.Tests.Adds() in /src/Tests.cs:line 3\n   at Shop.Main()";
        let exception = Exception {
            message: "one\n\ntwo\nthree\nfour".into(),
            stack: stack.into(),
            ..Exception::default()
        };
        let attempt = Attempt { exceptions: vec![exception], ..Attempt::default() };
        let attempt = Attempt { state: runtap_test_report::State::Failed, ..attempt };
        assert_eq!(
            why(&attempt),
            "    one\n    two\n    three\n    …\n    at Shop.Cart.Add() in /src/Cart.cs:line 7\n    at Shop.Tests.Adds() in /src/Tests.cs:line 3\n"
        );
        assert_eq!(own_frames("at System.A()\nat System.B()"), ["at System.A()"]);
        assert!(own_frames("").is_empty());
    }
}
