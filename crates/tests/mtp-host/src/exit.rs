//! Exit codes of test applications, and which of them a run has earned. `dotnet test` believes the exit code: a failed test
//! with exit code 0 leaves it with 0.

use std::fmt;
use std::process::{ExitCode, Termination};

/// How a test application ends. The numbers are the platform's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Exit(pub u8);

impl Exit {
    /// All went well.
    pub const OK: Self = Self(0);
    /// Something went wrong that has no code of its own, such as a server that is gone.
    pub const ERROR: Self = Self(1);
    /// A test has failed.
    pub const FAILED: Self = Self(2);
    /// The run was cancelled, or has taken too long.
    pub const ABORTED: Self = Self(3);
    /// The environment is not what it has to be.
    pub const SETUP: Self = Self(4);
    /// The command line is wrong.
    pub const USAGE: Self = Self(5);
    /// A test process has died.
    pub const DIED: Self = Self(7);
    /// No test was run.
    pub const ZERO_TESTS: Self = Self(8);
    /// Fewer tests were run than `--minimum-expected-tests` wants.
    pub const TOO_FEW: Self = Self(9);
    /// The session could not begin or end.
    pub const SESSION: Self = Self(10);
    /// No version of the protocol that both sides know.
    pub const INCOMPATIBLE: Self = Self(12);
    /// As many tests have failed as `--maximum-failed-tests` allows.
    pub const TOO_MANY_FAILURES: Self = Self(13);
}

impl fmt::Display for Exit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit.0)
    }
}

impl Termination for Exit {
    fn report(self) -> ExitCode {
        self.into()
    }
}

/// What decides the exit code.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    pub(crate) passed: u64,
    pub(crate) skipped: u64,
    pub(crate) failed: u64,
    pub(crate) discovered: u64,
    /// The run has ended before its last test.
    pub(crate) cut: bool,
    /// It has because of [`Policy::maximum_failed`].
    pub(crate) too_many_failures: bool,
    /// What the application says itself.
    pub(crate) own: Option<Exit>,
}

/// What the command line says about exit codes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Policy {
    /// `--minimum-expected-tests`: fewer are a failure.
    pub minimum_expected: Option<u64>,
    /// `--maximum-failed-tests`: so many end the run.
    pub maximum_failed: Option<u64>,
    /// `--zero-tests-policy strict`: a run in which all tests were skipped is one without tests.
    pub strict_zero: bool,
    /// `--ignore-exit-code` and `TESTINGPLATFORM_EXITCODE_IGNORE`: these become 0.
    pub ignored: Vec<u8>,
}

impl Tally {
    /// The code, in the platform's order of precedence: 13, 10, 2, 3, 9, 8.
    pub(crate) fn exit(&self, policy: &Policy, is_discovery: bool) -> Exit {
        let run = self.passed + self.failed;
        let any = if is_discovery {
            self.discovered
        } else {
            run + if policy.strict_zero { 0 } else { self.skipped }
        };
        let exit = if self.too_many_failures {
            Exit::TOO_MANY_FAILURES
        } else if let Some(own) = self.own {
            own
        } else if self.failed > 0 {
            Exit::FAILED
        } else if self.cut {
            Exit::ABORTED
        } else if policy.minimum_expected.is_some_and(|least| !is_discovery && run < least) {
            Exit::TOO_FEW
        } else if any == 0 {
            Exit::ZERO_TESTS
        } else {
            Exit::OK
        };
        if policy.ignored.contains(&exit.0) { Exit::OK } else { exit }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_platforms_precedence() {
        let exit = |tally: Tally| tally.exit(&Policy::default(), false);
        let passed = || Tally { passed: 1, ..Tally::default() };
        assert_eq!(exit(Tally::default()), Exit::ZERO_TESTS);
        assert_eq!(exit(passed()), Exit::OK);
        assert_eq!(exit(Tally { failed: 1, cut: true, ..passed() }), Exit::FAILED);
        assert_eq!(exit(Tally { cut: true, ..passed() }), Exit::ABORTED);
        assert_eq!(exit(Tally { failed: 1, too_many_failures: true, ..passed() }), Exit::TOO_MANY_FAILURES);
        assert_eq!(exit(Tally { failed: 1, own: Some(Exit::SESSION), ..Tally::default() }), Exit::SESSION);
    }

    #[test]
    fn what_the_command_line_changes() {
        let skipped = Tally { skipped: 3, ..Tally::default() };
        assert_eq!(skipped.exit(&Policy::default(), false), Exit::OK);
        let strict = Policy { strict_zero: true, ..Policy::default() };
        assert_eq!(skipped.exit(&strict, false), Exit::ZERO_TESTS);
        let least = Policy { minimum_expected: Some(2), ..Policy::default() };
        let one = Tally { passed: 1, skipped: 5, discovered: 1, ..Tally::default() };
        assert_eq!(one.exit(&least, false), Exit::TOO_FEW);
        assert_eq!(one.exit(&least, true), Exit::OK, "only runs have a minimum");
        let ignore = Policy { ignored: vec![8, 2], ..Policy::default() };
        assert_eq!(Tally::default().exit(&ignore, false), Exit::OK);
        assert_eq!(Tally { cut: true, ..Tally::default() }.exit(&ignore, false), Exit::ABORTED);
    }
}
