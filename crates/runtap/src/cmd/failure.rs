//! What a failed command means for the user: exit code and next step.

use runtap_diag::Error;

use crate::exit::{self, expected};

/// Gives an error of the client its exit code and hint.
#[expect(clippy::needless_pass_by_value, reason = "it stands in map_err")]
pub(super) fn explain(error: Error) -> anyhow::Error {
    let code = match &error {
        error if error.is_unknown_command() => exit::UNKNOWN_COMMAND,
        Error::Refused { .. } => exit::REFUSED,
        Error::Invalid(_) => exit::USAGE,
        error if error.is_unreachable() => exit::NO_TARGET,
        _ => exit::FAILED,
    };
    let hint = error.hint().map(str::to_owned);
    expected(code, error.to_string(), hint)
}
