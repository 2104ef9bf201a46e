//! What suites of a JUnit document count, beside what is in them.

use crate::formats::case::{LONGEST_REASON, shortened};

/// More suites that lack something say nothing more.
const MOST_NAMED: u64 = 10;

#[derive(Debug, Default)]
pub(super) struct Counts {
    /// The suites that are open.
    suites: Vec<Suite>,
    /// The first of those that lack something, and how many there are.
    lacks: Vec<String>,
    lacking: u64,
    /// pytest counts the subtests of a test, and tests that fail after their end twice.
    is_pytest: bool,
}

#[derive(Debug, Default)]
struct Suite {
    name: String,
    /// What its attributes say.
    said_tests: u64,
    said_failures: u64,
    /// What is in it, and in the suites in it.
    tests: u64,
    failures: u64,
    /// A suite in it lacks something.
    has_lacking: bool,
}

impl Suite {
    fn display(&self) -> String {
        if self.name.is_empty() { "a suite".to_owned() } else { format!("the suite {}", self.name) }
    }
}

/// A count as writers have it: `3`, `+3`, `1,000` or `3.0`.
fn number(text: &str) -> Option<u64> {
    let text = text.trim().replace(',', "");
    let (whole, fraction) = text.split_once('.').unwrap_or((&text, ""));
    fraction.bytes().all(|digit| digit == b'0').then(|| whole.parse().ok()).flatten()
}

impl Counts {
    /// A suite begins, with its attributes `tests`, `failures` and `errors`.
    pub(super) fn open(&mut self, name: &str, [tests, failures, errors]: [Option<String>; 3]) {
        self.is_pytest |= matches!(name, "pytest" | "pytest tests");
        let suite = Suite { name: shortened(name, LONGEST_REASON), ..Suite::default() };
        let mut number = |what, text: Option<String>| {
            let Some(text) = text else { return 0 };
            number(&text).unwrap_or_else(|| {
                let text = shortened(&text, LONGEST_REASON);
                self.lack(format!("{} has {what}=\"{text}\", which is no count", suite.display()));
                0
            })
        };
        let said_tests = number("tests", tests);
        let said_failures = number("failures", failures).saturating_add(number("errors", errors));
        self.suites.push(Suite { said_tests, said_failures, ..suite });
    }

    pub(super) fn test(&mut self) {
        self.suites.iter_mut().last().into_iter().for_each(|suite| suite.tests += 1);
    }

    /// An element `failure` or `error`, of a test or of a suite.
    pub(super) fn failure(&mut self) {
        self.suites.iter_mut().last().into_iter().for_each(|suite| suite.failures += 1);
    }

    /// The last suite that is open has ended.
    pub(super) fn close(&mut self) {
        let Some(suite) = self.suites.pop() else { return };
        let Suite { said_tests, said_failures, tests, failures, has_lacking, .. } = suite;
        let lacks_tests = said_tests > tests && !self.is_pytest;
        let lacks = lacks_tests || said_failures > failures;
        if lacks && !has_lacking {
            let (what, said, there) = if lacks_tests {
                ("tests", said_tests, tests)
            } else {
                ("failures and errors", said_failures, failures)
            };
            let suite = suite.display();
            self.lack(format!("{suite} counts {said} {what}, of which the document has {there}"));
        }
        if let Some(outer) = self.suites.last_mut() {
            outer.tests = outer.tests.saturating_add(tests);
            outer.failures = outer.failures.saturating_add(failures);
            outer.has_lacking |= lacks || has_lacking;
        }
    }

    fn lack(&mut self, what: String) {
        self.lacking += 1;
        if self.lacking <= MOST_NAMED {
            self.lacks.push(what);
        }
    }

    /// What the document lacks.
    pub(super) fn problem(&self) -> Option<String> {
        let more = self.lacking.saturating_sub(MOST_NAMED);
        let mut lacks = self.lacks.clone();
        lacks.extend((more > 0).then(|| format!("{more} more suites lack some")));
        (!lacks.is_empty()).then(|| lacks.join("; "))
    }
}
