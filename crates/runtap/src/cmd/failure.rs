//! What a failed command means for the user: exit code and next step.

use runtap_diag::Error;
use runtap_diag::preflight::Objection;

use crate::exit::{self, expected};

/// Gives an error of the client its exit code and hint.
#[expect(clippy::needless_pass_by_value, reason = "it stands in map_err")]
pub(super) fn explain(error: Error) -> anyhow::Error {
    let code = match &error {
        error if error.is_unknown_command() => exit::UNKNOWN_COMMAND,
        Error::Refused { .. } => exit::REFUSED,
        Error::Invalid(_) => exit::USAGE,
        Error::Objection { objection, .. } => of_objection(objection),
        error if error.is_unreachable() => exit::NO_TARGET,
        _ => exit::FAILED,
    };
    let hint = error.hint().map(str::to_owned);
    expected(code, error.to_string(), hint)
}

/// What was named is wrong, the process can't be looked at, or it can't do what was asked.
fn of_objection(objection: &Objection) -> u8 {
    match objection {
        Objection::Unseen { .. } => exit::NO_TARGET,
        Objection::Createdump { .. }
        | Objection::DumpAtStartup { .. }
        | Objection::PerfMapAtStartup { .. }
        | Objection::RunsAlready
        | Objection::StopAtStartup => exit::REFUSED,
        _ => exit::USAGE,
    }
}
