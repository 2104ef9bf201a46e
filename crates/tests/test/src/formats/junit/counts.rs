//! Comparison of the counts in attributes of suites with the content of the document.

use crate::formats::case::{MAX_REASON_BYTES, shortened};

/// The maximum number of incomplete suites that are named.
const MAX_NAMED: u64 = 10;

#[derive(Debug, Default)]
pub(super) struct Counts {
    /// The open suites.
    suites: Vec<Suite>,
    /// Descriptions of the first incomplete suites, and the number of all incomplete suites.
    lacks: Vec<String>,
    lacking: u64,
    /// Whether pytest wrote the document: it counts subtests, and counts tests that fail after their end twice.
    is_pytest: bool,
}

#[derive(Debug, Default)]
struct Suite {
    name: String,
    /// The counts in attributes.
    expected_tests: u64,
    expected_failures: u64,
    /// The counts of its content, including nested suites.
    tests: u64,
    failures: u64,
    /// Whether a nested suite is incomplete.
    has_lacking: bool,
}

impl Suite {
    fn display(&self) -> String {
        if self.name.is_empty() { "a suite".to_owned() } else { format!("the suite {}", self.name) }
    }
}

/// Parses a count in the forms in use: `3`, `+3`, `1,000` or `3.0`.
fn number(text: &str) -> Option<u64> {
    let text = text.trim().replace(',', "");
    let (whole, fraction) = text.split_once('.').unwrap_or((&text, ""));
    fraction.bytes().all(|digit| digit == b'0').then(|| whole.parse().ok()).flatten()
}

impl Counts {
    /// Handles the start of a suite with its attributes `tests`, `failures` and `errors`.
    pub(super) fn open(&mut self, name: &str, [tests, failures, errors]: [Option<String>; 3]) {
        self.is_pytest |= matches!(name, "pytest" | "pytest tests");
        let suite = Suite { name: shortened(name, MAX_REASON_BYTES), ..Suite::default() };
        let mut number = |what, text: Option<String>| {
            let Some(text) = text else { return 0 };
            number(&text).unwrap_or_else(|| {
                let text = shortened(&text, MAX_REASON_BYTES);
                self.lack(format!("{} has {what}=\"{text}\", which is not a number", suite.display()));
                0
            })
        };
        let expected_tests = number("tests", tests);
        let expected_failures = number("failures", failures).saturating_add(number("errors", errors));
        self.suites.push(Suite { expected_tests, expected_failures, ..suite });
    }

    pub(super) fn test(&mut self) {
        self.suites.iter_mut().last().into_iter().for_each(|suite| suite.tests += 1);
    }

    /// Counts an element `failure` or `error` of a test or of a suite.
    pub(super) fn failure(&mut self) {
        self.suites.iter_mut().last().into_iter().for_each(|suite| suite.failures += 1);
    }

    /// Handles the end of the innermost suite.
    pub(super) fn close(&mut self) {
        let Some(suite) = self.suites.pop() else { return };
        let Suite { expected_tests, expected_failures, tests, failures, has_lacking, .. } = suite;
        let lacks_tests = expected_tests > tests && !self.is_pytest;
        let lacks = lacks_tests || expected_failures > failures;
        if lacks && !has_lacking {
            let (what, said, there) = if lacks_tests {
                ("tests", expected_tests, tests)
            } else {
                ("failures and errors", expected_failures, failures)
            };
            let suite = suite.display();
            self.lack(format!("{suite} counts {said} {what}, but the document has {there}"));
        }
        if let Some(outer) = self.suites.last_mut() {
            outer.tests = outer.tests.saturating_add(tests);
            outer.failures = outer.failures.saturating_add(failures);
            outer.has_lacking |= lacks || has_lacking;
        }
    }

    fn lack(&mut self, what: String) {
        self.lacking += 1;
        if self.lacking <= MAX_NAMED {
            self.lacks.push(what);
        }
    }

    /// Describes what the document lacks; `None` if it is complete.
    pub(super) fn problem(&self) -> Option<String> {
        let more = self.lacking.saturating_sub(MAX_NAMED);
        let mut lacks = self.lacks.clone();
        lacks.extend((more > 0).then(|| format!("{more} more incomplete suites")));
        (!lacks.is_empty()).then(|| lacks.join("; "))
    }
}
