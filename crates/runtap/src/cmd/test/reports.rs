//! Messages about the reports of a run.

use runtap_mtp::suite::report::{ReportError, WriteError, Written};
use runtap_os::output::Error as FileError;

use super::usage;
use crate::exit::{hint_of, is_broken_pipe};
use crate::output::Output;

/// Creates the error for requested reports that are impossible.
pub(super) fn usage_error(error: ReportError) -> anyhow::Error {
    match error {
        ReportError::File(error) => output_error(&error),
        error => usage(error.to_string(), error.hint()),
    }
}

/// Creates the error for an output that cannot be created, which counts as invalid usage.
pub(super) fn output_error(error: &FileError) -> anyhow::Error {
    let advice = error.cause.advice().map(str::to_owned);
    usage(format!("{error}: {}", error.cause), advice)
}

/// Converts an error so that [`hint_of`] and [`is_broken_pipe`] recognize its cause.
pub(super) fn write_error(error: WriteError) -> anyhow::Error {
    match error {
        WriteError::Io(error) => error.into(),
        WriteError::File(error) => error.into(),
        error => error.into(),
    }
}

/// Prints where the report with this title is, or why it was not written. Returns whether it was written.
pub(super) fn print_outcome(title: &str, written: Result<Written, WriteError>, output: Output) -> bool {
    match written.map_err(write_error) {
        Ok(Written::File(format, path)) => {
            output.note(format_args!("{} report: {}", format.name(), path.display()));
        }
        Ok(Written::GitHubAnnotations) => {
            output.note("no summary for GitHub: GITHUB_STEP_SUMMARY is not set");
        }
        Err(error) if !is_broken_pipe(&error) => {
            let hint = hint_of(&error);
            output.error(&error.context(format!("cannot write the {title}")), hint.as_deref());
            return false;
        }
        _ => {}
    }
    true
}
