//! Exit codes and hints for errors of the libraries.

use runtap_diag::Error;
use runtap_diag::preflight::Objection;
#[cfg(target_os = "linux")]
use runtap_jvm_attach::AttachError;
#[cfg(target_os = "linux")]
use runtap_target::attach_messages;
use runtap_target::doctor::Finding;
use runtap_target::fixes;
use runtap_text::Output;

#[cfg(target_os = "linux")]
use crate::exit::with_message;
use crate::exit::{self, expected};

/// Converts an error of the client to one with an exit code and a hint.
pub(super) fn explain(error: Error) -> anyhow::Error {
    // `of_runtime` examines the process, so the finding of the doctor replaces a guess.
    recording_error(runtap_record::Error::of_runtime(error))
}

/// Converts an error of the client without examining the process.
fn explain_unexamined(error: &Error) -> anyhow::Error {
    let code = match error {
        error if error.is_unknown_command() => exit::UNKNOWN_COMMAND,
        Error::Refused { .. } => exit::REFUSED,
        Error::Invalid(_) => exit::USAGE,
        Error::Objection { objection, .. } => objection_code(objection),
        error if error.is_unreachable() => exit::NO_TARGET,
        _ => exit::FAILED,
    };
    let hint = fixes::client_hint(error);
    expected(code, error.to_string(), hint)
}

/// Converts an error of a recording to one with an exit code and a hint.
pub(super) fn recording_error(error: runtap_record::Error) -> anyhow::Error {
    match error {
        // The process has already been examined.
        runtap_record::Error::Runtime(error) => explain_unexamined(&error),
        // Converted as they are: `exit::code_of` recognizes these types.
        runtap_record::Error::Files(error) => error.into(),
        runtap_record::Error::Io(error) => error.into(),
        runtap_record::Error::Port(error) => error.into(),
        runtap_record::Error::NotReached { pid, finding } => not_reached(pid, &finding),
        error @ runtap_record::Error::Interrupted => expected(exit::PARTIAL, error.to_string(), None),
        error @ runtap_record::Error::NoJvmCounters { .. } => {
            expected(exit::NO_TARGET, error.to_string(), None)
        }
        error @ runtap_record::Error::NoParent => exit::usage(error.to_string()),
        error => error.into(),
    }
}

/// Creates the error for a Java program that can't be attached to.
#[cfg(target_os = "linux")]
pub(super) fn attach_error(error: &AttachError) -> anyhow::Error {
    let code = match error {
        AttachError::NoProcess { .. }
        | AttachError::NotPermitted { .. }
        | AttachError::Protected { .. }
        | AttachError::NotAJvm { .. }
        | AttachError::OpenJ9 { .. }
        | AttachError::Stopped { .. }
        | AttachError::SignalNotHandled { .. }
        | AttachError::NotListening { .. }
        | AttachError::Connect { .. } => exit::NO_TARGET,
        AttachError::Musl { .. }
        | AttachError::ReadOnlyTemp { .. }
        | AttachError::Disabled { .. }
        | AttachError::NotLoaded(_)
        | AttachError::AgentRefused { .. }
        | AttachError::NotDumped { .. }
        | AttachError::Rejected { .. } => exit::REFUSED,
        _ => exit::FAILED,
    };
    with_message(code, attach_messages::attach_error(error))
}

/// Creates the error for an unreachable process, with the finding and its fix.
pub(super) fn not_reached(pid: u32, finding: &Finding) -> anyhow::Error {
    expected(exit::NO_TARGET, format!("process {pid} {}", finding.detail), fixes::text(&finding.fixes))
}

/// Prints the error of one of several processes, after its id unless the message starts with the id. Returns the exit code.
pub(super) fn print_process_error(pid: Option<u32>, error: &anyhow::Error, output: Output) -> u8 {
    let (text, label) = (format!("{error:#}"), pid.map(|pid| format!("process {pid}")));
    let label = label.filter(|label| !text.starts_with(label)).map(|label| label + ": ");
    output.error(label.unwrap_or_default() + &text, &[], exit::hint_of(error).as_deref());
    exit::code_of(error)
}

/// Returns the exit code of an objection to a command.
fn objection_code(objection: &Objection) -> u8 {
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
