//! Whether failed tests explain the exit status of a command.

use std::path::Path;
use std::process::ExitStatus;

use crate::Exit;
use runtap_test::formats::Format;

use crate::command::Wrap;

/// Shells exit with this code plus the number of the signal that terminated their command.
const SIGNAL_BASE: i32 = 128;

/// Returns whether the command, or a command that a shell ran for it, was terminated by a signal.
pub(crate) fn was_signaled(status: ExitStatus) -> bool {
    // Signal numbers end at 64. PHP exits with 255 after its own errors.
    status.code().is_none_or(|code| (SIGNAL_BASE + 1..=SIGNAL_BASE + 64).contains(&code))
}

/// Returns the exit code for a status that failed tests do not explain. A command that reports success was not
/// terminated, so tests that did not finish then have another cause.
pub(crate) fn exit(status: ExitStatus, has_incomplete_tests: bool) -> Exit {
    if was_signaled(status) || has_incomplete_tests && !status.success() { Exit::DIED } else { Exit::ERROR }
}

/// Returns whether failed tests explain the status. For formats of a known program, only the exit code that the program
/// uses for failed tests is accepted; TAP and JUnit have many programs.
pub(crate) fn is_explained_by_failures(wrap: &Wrap, status: ExitStatus) -> bool {
    let Some(code) = status.code() else { return false };
    match wrap.format {
        Format::Libtest | Format::LibtestJson => code == 101,
        Format::Nextest => code == 100,
        Format::GoJson => code == 1,
        Format::Junit if is_pytest(wrap) => code == 1,
        Format::Tap | Format::Junit => (1..=SIGNAL_BASE).contains(&code),
    }
}

fn is_pytest(wrap: &Wrap) -> bool {
    wrap.command.iter().any(|word| Path::new(word).file_stem().is_some_and(|stem| stem == "pytest"))
}

#[cfg(all(test, unix))]
mod tests {
    use std::ffi::OsString;
    use std::os::unix::process::ExitStatusExt as _;

    use super::*;

    fn wrap(format: Format, command: &[&str]) -> Wrap {
        Wrap {
            format,
            command: command.iter().map(OsString::from).collect(),
            directory: None,
            report: None,
            list_arguments: None,
            module: None,
            verbose: false,
            keeper: Vec::new(),
        }
    }

    #[test]
    fn failed_tests_explain_only_their_exit_codes() {
        let codes = |format, command: &[&str]| -> Vec<i32> {
            let of_failed = |code: &i32| {
                is_explained_by_failures(&wrap(format, command), ExitStatus::from_raw(code << 8))
            };
            [0, 1, 2, 8, 100, 101, 128, 134, 255].into_iter().filter(of_failed).collect()
        };
        assert_eq!(codes(Format::Libtest, &["cargo", "test"]), [101]);
        assert_eq!(codes(Format::LibtestJson, &["cargo", "test"]), [101]);
        assert_eq!(codes(Format::Nextest, &["cargo", "nextest"]), [100]);
        assert_eq!(codes(Format::GoJson, &["go", "test"]), [1]);
        assert_eq!(codes(Format::Tap, &["prove"]), [1, 2, 8, 100, 101, 128]);
        assert_eq!(codes(Format::Junit, &["mvn", "test"]), [1, 2, 8, 100, 101, 128]);
        assert_eq!(codes(Format::Junit, &["python3", "-m", "pytest"]), [1]);
    }

    #[test]
    fn a_command_that_reports_success_was_not_terminated() {
        let codes = |has_incomplete_tests| {
            [0, 1, 134].map(|code| exit(ExitStatus::from_raw(code << 8), has_incomplete_tests))
        };
        assert_eq!(codes(true), [Exit::ERROR, Exit::DIED, Exit::DIED]);
        assert_eq!(codes(false), [Exit::ERROR, Exit::ERROR, Exit::DIED]);
    }

    #[test]
    fn failed_tests_do_not_explain_signals() {
        for status in [ExitStatus::from_raw(6), ExitStatus::from_raw(134 << 8)] {
            assert!(was_signaled(status));
            for format in Format::ALL {
                assert!(!is_explained_by_failures(&wrap(format, &["x"]), status), "{format}");
            }
        }
        assert!(!was_signaled(ExitStatus::from_raw(255 << 8)) && !was_signaled(ExitStatus::from_raw(1 << 8)));
    }
}
