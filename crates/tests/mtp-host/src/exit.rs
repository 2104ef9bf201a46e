//! Exit codes of test applications. `dotnet test` relies on the exit code: if it is 0 despite a failed test, `dotnet
//! test` exits with 0.

use std::fmt;
use std::process::{ExitCode, Termination};

/// The exit code of a test application. The numbers are defined by the platform.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Exit(pub u8);

impl Exit {
    /// Success.
    pub const OK: Self = Self(0);
    /// An error without a more specific code, such as a lost connection to the server.
    pub const ERROR: Self = Self(1);
    /// A test failed.
    pub const FAILED: Self = Self(2);
    /// The run was canceled or timed out.
    pub const ABORTED: Self = Self(3);
    /// The environment is invalid.
    pub const SETUP: Self = Self(4);
    /// The command line is invalid.
    pub const USAGE: Self = Self(5);
    /// A test process crashed.
    pub const DIED: Self = Self(7);
    /// No test was run.
    pub const ZERO_TESTS: Self = Self(8);
    /// Fewer tests were run than `--minimum-expected-tests` requires.
    pub const TOO_FEW: Self = Self(9);
    /// The session could not be started or ended.
    pub const SESSION: Self = Self(10);
    /// The client and the server have no protocol version in common.
    pub const INCOMPATIBLE: Self = Self(12);
    /// The number of failed tests reached `--maximum-failed-tests`.
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

/// The counts and facts that determine the exit code.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    pub(crate) passed: u64,
    pub(crate) skipped: u64,
    pub(crate) failed: u64,
    pub(crate) discovered: u64,
    /// Whether the run was canceled.
    pub(crate) is_canceled: bool,
    /// Whether the run was canceled because of [`Policy::maximum_failed`].
    pub(crate) too_many_failures: bool,
    /// The exit code that the application set itself.
    pub(crate) own: Option<Exit>,
}

/// The options that affect the exit code.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Policy {
    /// The minimum number of tests (`--minimum-expected-tests`); with fewer tests the run fails.
    pub minimum_expected: Option<u64>,
    /// The number of failed tests that ends the run (`--maximum-failed-tests`).
    pub maximum_failed: Option<u64>,
    /// Whether a run in which all tests were skipped counts as a run without tests (`--zero-tests-policy strict`).
    pub strict_zero: bool,
    /// The exit codes that are replaced by 0 (`--ignore-exit-code` and `TESTINGPLATFORM_EXITCODE_IGNORE`).
    pub ignored: Vec<u8>,
}

impl Tally {
    /// Returns the exit code, in the platform's order of precedence: 13, 10, 2, 3, 9, 8.
    pub(crate) fn exit(&self, policy: &Policy, is_discovery: bool) -> Exit {
        let run = self.passed + self.failed;
        let relevant = if is_discovery {
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
        } else if self.is_canceled {
            Exit::ABORTED
        } else if policy.minimum_expected.is_some_and(|least| !is_discovery && run < least) {
            Exit::TOO_FEW
        } else if relevant == 0 {
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
    fn exit_codes_have_the_platforms_precedence() {
        let exit = |tally: Tally| tally.exit(&Policy::default(), false);
        let passed = || Tally { passed: 1, ..Tally::default() };
        assert_eq!(exit(Tally::default()), Exit::ZERO_TESTS);
        assert_eq!(exit(passed()), Exit::OK);
        assert_eq!(exit(Tally { failed: 1, is_canceled: true, ..passed() }), Exit::FAILED);
        assert_eq!(exit(Tally { is_canceled: true, ..passed() }), Exit::ABORTED);
        assert_eq!(exit(Tally { failed: 1, too_many_failures: true, ..passed() }), Exit::TOO_MANY_FAILURES);
        assert_eq!(exit(Tally { failed: 1, own: Some(Exit::SESSION), ..Tally::default() }), Exit::SESSION);
    }

    #[test]
    fn the_command_line_changes_the_exit_code() {
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
        assert_eq!(Tally { is_canceled: true, ..Tally::default() }.exit(&ignore, false), Exit::ABORTED);
    }
}
