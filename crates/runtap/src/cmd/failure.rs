//! What a failed command means for the user: exit code and next step.

use runtap_diag::Error;
use runtap_diag::doctor::{self, Finding};
use runtap_diag::preflight::Objection;

use runtap_transport::Endpoint;
use runtap_transport::discover::System;

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
    // In the doctor's words, who looks at the process: better than a guess.
    if let Some(finding) = doctor::explain(&System::current(), &error)
        && let Some(pid) = error.unanswered().and_then(Endpoint::process_id)
    {
        return not_reached(pid, finding);
    }
    let hint = error.hint().map(str::to_owned);
    expected(code, error.to_string(), hint)
}

/// A process that can't be reached, and the mend.
pub(super) fn not_reached(pid: u32, finding: Finding) -> anyhow::Error {
    expected(exit::NO_TARGET, format!("process {pid} {}", finding.detail), finding.fix)
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
