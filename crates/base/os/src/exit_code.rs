//! The exit code of a command, as shells report it.

use std::process::ExitStatus;

/// Returns the exit code of a command, or 128 + n if signal n terminated the command. `None` for codes above 255, which exist on
/// Windows.
pub fn exit_code(status: ExitStatus) -> Option<u8> {
    let code = status.code().or_else(|| signal(status).map(|signal| signal.saturating_add(128)));
    code.and_then(|code| u8::try_from(code).ok())
}

#[cfg(unix)]
fn signal(status: ExitStatus) -> Option<i32> {
    std::os::unix::process::ExitStatusExt::signal(&status)
}

/// Windows has only exit codes.
#[cfg(windows)]
fn signal(_status: ExitStatus) -> Option<i32> {
    None
}

#[cfg(all(test, unix))]
mod tests {
    use std::os::unix::process::ExitStatusExt as _;

    use super::*;

    #[test]
    fn codes_and_signals_are_passed_on() {
        assert_eq!(exit_code(ExitStatus::from_raw(7 << 8)), Some(7));
        assert_eq!(exit_code(ExitStatus::from_raw(15)), Some(143));
        assert_eq!(exit_code(ExitStatus::from_raw(0)), Some(0));
    }
}
