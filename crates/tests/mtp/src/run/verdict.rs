//! Exit codes of the platform, for one module and for the whole run.

use crate::event::ModuleFailure;
use crate::event::Totals;
use crate::stop::StopLevel;

/// The exit codes of the platform that a runner uses.
pub mod code {
    /// Success.
    pub const OK: i32 = 0;
    /// A failure without a more specific code.
    pub const GENERIC: i32 = 1;
    /// A test failed.
    pub const TESTS_FAILED: i32 = 2;
    /// The run was stopped.
    pub const ABORTED: i32 = 3;
    /// The command line is invalid.
    pub const USAGE: i32 = 5;
    /// The process that a controller monitors crashed.
    pub const DIED: i32 = 7;
    /// No test was run.
    pub const ZERO_TESTS: i32 = 8;
    /// Fewer tests were run than expected.
    pub const TOO_FEW: i32 = 9;
    /// A test framework could not open or close its session.
    pub const ADAPTER: i32 = 10;
    /// A program supports no known version of the protocol.
    pub const INCOMPATIBLE: i32 = 12;
    /// The run was stopped because too many tests failed.
    pub const TOO_MANY_FAILED: i32 = 13;
}

/// Returns the exit code of one module: that of its tests, or else that of its first failure. Codes in `ignored` do not
/// hide other failures. If the run was `stopped`, canceled tests do not count as failed.
pub(crate) fn of_module(
    totals: &Totals,
    failures: &[ModuleFailure],
    flaky_fails: bool,
    stopped: bool,
    ignored: &[i32],
) -> i32 {
    let own = failures.iter().map(|failure| match failure {
        ModuleFailure::ExitCode(code) if *code != code::OK => *code,
        ModuleFailure::NoHandshake(Some(code)) if *code != code::OK && !is_about_tests(*code) => *code,
        ModuleFailure::NotHosted { exit, .. } => *exit,
        ModuleFailure::Died { exit, .. } if *exit != code::OK => *exit,
        ModuleFailure::Unresponsive(_) => code::ABORTED,
        ModuleFailure::Incompatible(_) => code::INCOMPATIBLE,
        ModuleFailure::NotStarted(_)
        | ModuleFailure::NoHandshake(_)
        | ModuleFailure::Protocol(_)
        | ModuleFailure::NotRun(_)
        | ModuleFailure::Died { .. }
        | ModuleFailure::ExitCode(_) => code::GENERIC,
    });
    let failed = if stopped { failed(totals) } else { totals.failures() };
    let tests = (failed > 0 || flaky_fails && totals.flaky > 0).then_some(code::TESTS_FAILED);
    // Failed tests take precedence, except over a framework that could not open its session.
    let own: Vec<_> = own.collect();
    let adapter = own.iter().copied().find(|code| *code == code::ADAPTER);
    let cancelled = (tests.is_none() && totals.failures() > 0).then_some(code::ABORTED);
    let mut codes = adapter.into_iter().chain(tests).chain(own.iter().copied()).chain(cancelled);
    codes.find(|code| !ignored.contains(code)).unwrap_or(code::OK)
}

/// Returns whether only a program that ran tests can use this code: other programs use it with another meaning.
fn is_about_tests(code: i32) -> bool {
    [code::TESTS_FAILED, code::ZERO_TESTS, code::TOO_FEW, code::TOO_MANY_FAILED].contains(&code)
}

/// Returns the number of failed tests that were not canceled.
fn failed(totals: &Totals) -> u64 {
    totals.failures().saturating_sub(totals.cancelled)
}

/// The facts of a run, other than its modules, that determine the exit code.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct RunFacts<'a> {
    pub stopped: Option<StopLevel>,
    pub too_many_failed: bool,
    pub minimum_expected: u64,
    /// Whether a run without tests fails.
    pub tests_expected: bool,
    /// The codes that count as success.
    pub ignored: &'a [i32],
    /// Whether tests that were selected for all modules have no result in any module.
    pub some_missing: bool,
}

/// Returns the exit code of a run.
pub(crate) fn of_run(totals: &Totals, modules: &[i32], facts: RunFacts<'_>) -> i32 {
    // The code for several different codes is never ignored.
    let counts = |code: &i32| *code == code::GENERIC || !facts.ignored.contains(code);
    failures(totals, modules, facts).into_iter().find(counts).unwrap_or(code::OK)
}

/// Returns the codes of all failures, the best known reason first.
fn failures(totals: &Totals, modules: &[i32], facts: RunFacts<'_>) -> Vec<i32> {
    if facts.too_many_failed {
        return vec![code::TOO_MANY_FAILED];
    }
    let ran = totals.total() > 0;
    let mut failed: Vec<_> = modules.iter().copied().filter(|code| *code != code::OK).collect();
    if facts.stopped.is_some() {
        // As in an application that is stopped gracefully, failed tests take precedence. If the run was killed, they do
        // not.
        failed.retain(|code| *code != code::ABORTED);
        let has_failed = !failed.is_empty() && failed.iter().all(|code| *code == code::TESTS_FAILED);
        let in_good_order = facts.stopped == Some(StopLevel::Graceful);
        return if has_failed && in_good_order {
            vec![code::TESTS_FAILED]
        } else {
            [code::ABORTED].into_iter().chain(failed).collect()
        };
    }
    failed.dedup();
    let of_modules = match failed[..] {
        [] => None,
        [only] => Some(only),
        // As in `dotnet test`.
        _ => Some(code::GENERIC),
    };
    let empty = (facts.tests_expected && !ran).then_some(code::ZERO_TESTS);
    // If nothing was run, that is the better known reason.
    let missing = (facts.some_missing && empty.is_none()).then_some(code::GENERIC);
    let too_few = (totals.total() < facts.minimum_expected).then_some(code::TOO_FEW);
    [of_modules, empty, missing, too_few].into_iter().flatten().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of_module(totals: &Totals, failures: &[ModuleFailure], flaky_fails: bool, stopped: bool) -> i32 {
        super::of_module(totals, failures, flaky_fails, stopped, &[])
    }

    fn passed(passed: u64) -> Totals {
        Totals { passed, ..Totals::default() }
    }

    fn failed(failed: u64) -> Totals {
        Totals { failed, ..Totals::default() }
    }

    #[test]
    fn modules() {
        assert_eq!(of_module(&passed(3), &[], false, false), 0);
        assert_eq!(of_module(&failed(1), &[], false, false), 2);
        assert_eq!(of_module(&passed(3), &[ModuleFailure::ExitCode(42)], false, false), 42);
        assert_eq!(
            of_module(&failed(3), &[ModuleFailure::Died { running: vec![], exit: 134 }], false, false),
            2
        );
        assert_eq!(
            of_module(&passed(3), &[ModuleFailure::Died { running: vec![], exit: 134 }], false, false),
            134
        );
        assert_eq!(
            of_module(&passed(3), &[ModuleFailure::Died { running: vec![], exit: 0 }], false, false),
            1
        );
        assert_eq!(of_module(&failed(3), &[ModuleFailure::ExitCode(10)], false, false), 10);
        assert_eq!(of_module(&passed(0), &[ModuleFailure::NoHandshake(Some(0))], false, false), 1);
        let flaky = Totals { flaky: 1, ..passed(3) };
        assert_eq!((of_module(&flaky, &[], false, false), of_module(&flaky, &[], true, false)), (0, 2));
        let never_spoke =
            |code| of_module(&passed(0), &[ModuleFailure::NoHandshake(Some(code))], false, false);
        assert_eq!([5, 7, 150, 2, 8, 9, 13].map(never_spoke), [5, 7, 150, 1, 1, 1, 1]);
        let cancelled = Totals { cancelled: 1, ..passed(3) };
        assert_eq!([false, true].map(|stopped| of_module(&cancelled, &[], false, stopped)), [2, 3]);
        let both = Totals { cancelled: 1, ..failed(3) };
        assert_eq!(of_module(&both, &[], false, true), 2);
        // An ignored code does not hide another failure.
        let ignoring = |failures: &[ModuleFailure], ignored: &[i32]| {
            super::of_module(&failed(1), failures, false, false, ignored)
        };
        let died = ModuleFailure::Died { running: vec![], exit: 134 };
        assert_eq!(
            [&[2][..], &[2, 134], &[134]].map(|codes| ignoring(std::slice::from_ref(&died), codes)),
            [134, 0, 2]
        );
        assert_eq!(ignoring(&[ModuleFailure::ExitCode(7), died], &[2, 7]), 134);
        assert_eq!(ignoring(&[ModuleFailure::NotRun(String::new())], &[2]), 1);
        assert_eq!(ignoring(&[], &[2]), 0);
    }

    #[test]
    fn runs() {
        let usual = RunFacts { tests_expected: true, ..RunFacts::default() };
        for (totals, modules, expected) in [
            (passed(3), &[0, 0][..], 0),
            (failed(3), &[0, 2, 2], 2),
            (failed(3), &[0, 2, 7], 1),
            (passed(3), &[7, 7, 0], 7),
            // A module without tests does not make the run fail, unless the module itself exits with that code.
            (passed(3), &[8, 0], 8),
            (passed(0), &[0, 0], 8),
            (passed(0), &[0], 8),
        ] {
            assert_eq!(of_run(&totals, modules, usual), expected, "{modules:?}");
        }
        assert_eq!(of_run(&passed(3), &[0], RunFacts { minimum_expected: 4, ..usual }), 9);
        let stopped = |level| RunFacts { stopped: Some(level), ..usual };
        let (once, twice) = (stopped(StopLevel::Graceful), stopped(StopLevel::Hard));
        for (modules, expected) in [(&[0][..], [3, 3]), (&[3], [3, 3]), (&[2, 3], [2, 3]), (&[2, 7], [3, 3])]
        {
            assert_eq!([once, twice].map(|it| of_run(&failed(3), modules, it)), expected, "{modules:?}");
        }
        assert_eq!(of_run(&failed(3), &[2], RunFacts { too_many_failed: true, ..usual }), 13);
        assert_eq!(of_run(&passed(0), &[0], RunFacts::default()), 0);
        let ignoring = |totals, modules: &[i32], ignored: &[i32]| {
            of_run(&totals, modules, RunFacts { ignored, ..usual })
        };
        assert_eq!(ignoring(passed(0), &[0], &[8]), 0);
        assert_eq!(ignoring(failed(1), &[2], &[8]), 2);
        assert_eq!(ignoring(failed(1), &[2, 7], &[1]), 1);
        let few = RunFacts { minimum_expected: 4, ignored: &[8], ..usual };
        assert_eq!(of_run(&passed(0), &[0], few), 9);
        let killed = RunFacts { ignored: &[3], ..twice };
        assert_eq!([&[2, 3][..], &[3]].map(|modules| of_run(&failed(1), modules, killed)), [2, 0]);
        let missing = RunFacts { some_missing: true, ..usual };
        assert_eq!([(3, 0), (0, 0)].map(|(tests, code)| of_run(&passed(tests), &[code], missing)), [1, 8]);
        assert_eq!(of_run(&failed(1), &[2], missing), 2);
    }
}
