//! Whether the end of a command is that of one whose tests have failed.

use std::path::Path;
use std::process::ExitStatus;

use crate::Exit;
use runtap_test::formats::Format;

use crate::command::Wrap;

/// Shells end with this and the number of a signal that has ended their command.
const SIGNALLED: i32 = 128;

/// Whether the command, or what a shell has run for it, was ended by a signal.
pub(crate) fn has_died(status: ExitStatus) -> bool {
    // Numbers of signals end at 64. PHP ends with 255 of an error of its own.
    status.code().is_none_or(|code| (SIGNALLED + 1..=SIGNALLED + 64).contains(&code))
}

/// The code for an end that failed tests do not explain. A command that reports success has come to its end, so that what is
/// missing in its results (`has_cut`) has another reason than its death.
pub(crate) fn exit(status: ExitStatus, has_cut: bool) -> Exit {
    if has_died(status) || has_cut && !status.success() { Exit::DIED } else { Exit::ERROR }
}

/// Whether failed tests explain how the command has ended. Another exit code has another reason, where it is known which one
/// the program has for failed tests; TAP and JUnit have many programs.
pub(crate) fn is_of_failed_tests(wrap: &Wrap, status: ExitStatus) -> bool {
    let Some(code) = status.code() else { return false };
    match wrap.format {
        Format::Libtest | Format::LibtestJson => code == 101,
        Format::Nextest => code == 100,
        Format::GoJson => code == 1,
        Format::Junit if is_pytest(wrap) => code == 1,
        Format::Tap | Format::Junit => (1..=SIGNALLED).contains(&code),
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
    fn only_the_codes_of_failed_tests_are_explained_by_them() {
        let codes = |format, command: &[&str]| -> Vec<i32> {
            let of_failed =
                |code: &i32| is_of_failed_tests(&wrap(format, command), ExitStatus::from_raw(code << 8));
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
    fn a_command_that_reports_success_has_not_died() {
        let codes = |has_cut| [0, 1, 134].map(|code| exit(ExitStatus::from_raw(code << 8), has_cut));
        assert_eq!(codes(true), [Exit::ERROR, Exit::DIED, Exit::DIED]);
        assert_eq!(codes(false), [Exit::ERROR, Exit::ERROR, Exit::DIED]);
    }

    #[test]
    fn signals_are_explained_by_no_test() {
        for status in [ExitStatus::from_raw(6), ExitStatus::from_raw(134 << 8)] {
            assert!(has_died(status));
            for format in Format::ALL {
                assert!(!is_of_failed_tests(&wrap(format, &["x"]), status), "{format}");
            }
        }
        assert!(!has_died(ExitStatus::from_raw(255 << 8)) && !has_died(ExitStatus::from_raw(1 << 8)));
    }
}
