//! The summary and exit code of `trace`.

use runtap_record::{Files, RecordingOutcome, Stops, messages};
use runtap_text::document::{OutputFile, Partial, TraceDocument, TracedProcess};
use runtap_text::{Output, advice};

use crate::cmd::failure::recording_error;
use crate::exit;
use runtap_text::units::Things;

/// Prints the summary of a recording and returns the exit code.
///
/// # Errors
/// A requested output was not written. The outputs that were written have been printed.
pub(super) fn conclude(outcome: RecordingOutcome, stops: &Stops, output: Output) -> anyhow::Result<u8> {
    let RecordingOutcome { made, failed, to_stdout, is_unread, .. } = outcome;
    if is_unread {
        return Ok(exit::OK);
    }
    let several = made.iter().map(|files| files.parts.len()).sum::<usize>() > 1;
    let mut summary = Summary { stdout_is_taken: to_stdout, ..Summary::default() };
    let mut failures = Failures::default();
    for files in made {
        let label = format!("process {}", files.parts.first().map_or(0, |part| part.pid));
        let mut errors = summary.add(files).into_iter();
        let first = errors.next();
        for error in errors {
            exit::print_error(&recording_error(error), output);
        }
        match first {
            None => {}
            Some(error) if error.is_closed_pipe() => return Ok(exit::OK),
            // One process without samples does not make the recordings of the others useless.
            Some(error) if several && error.is_nothing_to_show() => {
                let error = recording_error(error);
                output.warning(format_args!("{label}: {error}"));
                failures.empty.get_or_insert(error);
            }
            Some(error) => {
                // With a full disk, the part written so far remains.
                failures.missing |= error.is_full_disk();
                failures.error.get_or_insert_with(|| recording_error(error));
            }
        }
    }
    for (label, error) in failed {
        let error = recording_error(error);
        if summary.is_empty() && failures.error.is_none() {
            failures.error = Some(error);
        } else {
            failures.missing = true;
            let text = format!("{error:#}");
            let why = text
                .strip_prefix(&format!("{label} "))
                .map_or_else(|| text.clone(), |rest| format!("it {rest}"));
            let hint = exit::hint_of(&error).map_or_else(String::new, |hint| format!(" ({hint})"));
            output.warning(format_args!("{label} was not recorded: {why}{hint}"));
        }
    }
    if summary.is_empty() {
        // Without an error, the user stopped the recording before anything was recorded.
        if let Some(error) = failures.error {
            return Err(error);
        }
        if output.json() {
            // The reason is on stderr.
            summary.document.notes.push("nothing was recorded");
            summary.print_document(output)?;
        }
        return Ok(stops.exit_code().unwrap_or(exit::OK));
    }
    let printed = summary.print(output);
    failures.missing |= summary.document.partial.is_some() || summary.is_truncated;
    if !summary.stdout_is_taken && summary.document.outputs.is_empty() {
        failures.error = failures.error.or(failures.empty);
    }
    match failures.error {
        // Something was recorded, so the result is partial.
        Some(error) if failures.missing => {
            output.error(exit::full_text(&error), &[], None);
            Ok(exit::PARTIAL)
        }
        Some(error) => Err(error),
        None => printed.map(|()| if failures.missing { exit::PARTIAL } else { exit::OK }),
    }
}

/// The failures of a recording.
#[derive(Debug, Default)]
struct Failures {
    /// The first failure.
    error: Option<anyhow::Error>,
    /// The first error of a process without anything to show, if several were recorded.
    empty: Option<anyhow::Error>,
    /// Whether a part of the recording is missing.
    missing: bool,
}

/// The recorded processes and their files.
#[derive(Debug, Default)]
struct Summary {
    document: TraceDocument,
    /// Whether stdout carries a recording, so that the summary goes to stderr.
    stdout_is_taken: bool,
    /// Whether a file or the output on stdout is truncated.
    is_truncated: bool,
    /// Whether none of the buffers of targets that dropped events can have been full.
    was_never_full: bool,
}

/// Converts the recording of a process to its form in the document, without files.
fn traced_process(part: &runtap_record::Part) -> TracedProcess {
    let partial = |missing| Partial {
        offset: part.readable_to,
        reason: messages::missing(missing, |partial| Partial::from(partial).reason),
    };
    TracedProcess {
        pid: part.pid,
        name: part.name.clone(),
        outputs: Vec::new(),
        events: part.events,
        lost: part.lost,
        bytes: part.bytes,
        duration_ns: u64::try_from(part.duration.as_nanos()).unwrap_or(u64::MAX),
        partial: part.missing.as_ref().map(partial),
        command: part.command.clone(),
        downgrades: part.downgrades.iter().map(ToString::to_string).collect(),
        notes: part.silence.iter().map(|silence| messages::silence(silence, advice::NAMES)).collect(),
        is_readable: part.is_readable,
    }
}

impl Summary {
    /// Adds the files of one or several processes and returns their errors.
    fn add(&mut self, files: Files) -> Vec<runtap_record::Error> {
        let Files { parts, files, is_cut, left_out, errors } = files;
        let filled = parts.iter().filter(|part| part.lost > 0).map(|part| part.may_have_filled);
        self.was_never_full = (self.document.lost == 0 || self.was_never_full) && filled.max() != Some(true);
        self.document
            .take(parts.iter().map(traced_process).collect(), files.iter().map(OutputFile::from).collect());
        self.is_truncated |= is_cut;
        if let Some(left_out) = left_out {
            // This also covers what is missing from the recording itself.
            self.document.partial = Some(left_out.into());
        }
        errors
    }

    fn is_empty(&self) -> bool {
        self.document.processes.is_empty()
    }

    fn print_document(&self, output: Output) -> anyhow::Result<()> {
        Ok(output.document_on_free_stream(&self.document, self.stdout_is_taken)?)
    }

    /// Prints the summary: a JSON document on stdout, or as text with the files on stdout and the figures on stderr.
    fn print(&self, output: Output) -> anyhow::Result<()> {
        output.messages(self.document.messages());
        let lost = self.document.lost;
        if lost > 0 {
            output.warning(format_args!(
                "the target dropped at least {}, {}",
                Things(lost, "event"),
                if self.was_never_full { advice::TOO_LARGE } else { advice::FULL_OR_TOO_LARGE }
            ));
        }
        if output.json() && !self.stdout_is_taken {
            return self.print_document(output);
        }
        output.note(self.document.figures());
        match (self.stdout_is_taken, output.json()) {
            (true, true) => self.print_document(output),
            (true, false) => Ok(()),
            (false, _) => Ok(output.print(&self.document, &output.options())?),
        }
    }
}
