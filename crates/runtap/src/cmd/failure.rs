//! What a failed command means for the user: exit code and next step.

use runtap_diag::Error;
use runtap_diag::preflight::Objection;
use runtap_target::doctor::Finding;

use super::fix;
use crate::exit::{self, expected};

/// Gives an error of the client its exit code and hint.
pub(super) fn explain(error: Error) -> anyhow::Error {
    // In the doctor's words, who looks at the process: better than a guess.
    of_recording(runtap_record::Error::of_runtime(error))
}

/// The same without a look at the process.
fn as_it_is(error: &Error) -> anyhow::Error {
    let code = match error {
        error if error.is_unknown_command() => exit::UNKNOWN_COMMAND,
        Error::Refused { .. } => exit::REFUSED,
        Error::Invalid(_) => exit::USAGE,
        Error::Objection { objection, .. } => of_objection(objection),
        error if error.is_unreachable() => exit::NO_TARGET,
        _ => exit::FAILED,
    };
    let hint = fix::hint(error);
    expected(code, error.to_string(), hint)
}

/// Gives an error of a recording its exit code and hint.
pub(super) fn of_recording(error: runtap_record::Error) -> anyhow::Error {
    match error {
        // It was looked at when it did not answer.
        runtap_record::Error::Runtime(error) => as_it_is(&error),
        // Their codes are known as they are.
        runtap_record::Error::Files(error) => error.into(),
        runtap_record::Error::Io(error) => error.into(),
        runtap_record::Error::Port(error) => error.into(),
        runtap_record::Error::NotReached { pid, finding } => not_reached(pid, &finding),
        error @ runtap_record::Error::Interrupted => expected(exit::PARTIAL, error.to_string(), None),
        error @ runtap_record::Error::NoParent => exit::usage(error.to_string()),
        error => error.into(),
    }
}

/// A process that can't be reached, and what to do about it.
pub(super) fn not_reached(pid: u32, finding: &Finding) -> anyhow::Error {
    expected(exit::NO_TARGET, format!("process {pid} {}", finding.detail), fix::text(&finding.fixes))
}

/// An error of one of several processes, which is named once.
pub(super) fn about(pid: Option<u32>, error: &anyhow::Error) -> anyhow::Error {
    let (text, label) = (format!("{error:#}"), pid.map(|pid| format!("process {pid}")));
    match label.filter(|label| !text.starts_with(label)) {
        Some(label) => anyhow::anyhow!("{label}: {text}"),
        None => anyhow::anyhow!(text),
    }
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
