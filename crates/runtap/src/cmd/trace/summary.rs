//! What `trace` says when it is over.

use runtap_record::{Files, Outcome, Stops};
use runtap_text::document::{Partial, Remark, TraceDocument, TracedProcess};

use crate::cmd::advice;
use crate::cmd::convert::output_file;
use crate::cmd::failure::of_recording;
use crate::cmd::silence;
use crate::exit;
use crate::output::Output;
use crate::units::Things;

/// Says what there is; the exit code for it.
///
/// # Errors
/// Something that was asked for is not there. What could be made was told.
pub(super) fn conclude(outcome: Outcome, stops: &Stops, output: Output) -> anyhow::Result<u8> {
    let Outcome { made, failed, to_stdout, is_unread, .. } = outcome;
    if is_unread {
        return Ok(exit::OK);
    }
    let several = made.iter().map(|files| files.parts.len()).sum::<usize>() > 1;
    let mut summary = Summary { stdout_is_taken: to_stdout, ..Summary::default() };
    let mut verdict = Verdict::default();
    for files in made {
        let label = format!("process {}", files.parts.first().map_or(0, |part| part.pid));
        let mut errors = summary.take(files).into_iter();
        let first = errors.next();
        for error in errors {
            let error = of_recording(error);
            output.error(&error, exit::hint_of(&error).as_deref());
        }
        match first {
            None => {}
            Some(error) if error.is_closed_pipe() => return Ok(exit::OK),
            // What has run no managed code has nothing to show; the others have.
            Some(error) if several && error.is_nothing_to_show() => {
                let error = of_recording(error);
                output.warning(format_args!("{label}: {error}"));
                verdict.empty.get_or_insert(error);
            }
            Some(error) => {
                // A disk that is full keeps what it has.
                verdict.missing |= error.is_full_disk();
                verdict.error.get_or_insert_with(|| of_recording(error));
            }
        }
    }
    for (label, error) in failed {
        let error = of_recording(error);
        if summary.is_empty() && verdict.error.is_none() {
            verdict.error = Some(error);
        } else {
            verdict.missing = true;
            let text = format!("{error:#}");
            let why = text
                .strip_prefix(&format!("{label} "))
                .map_or_else(|| text.clone(), |rest| format!("it {rest}"));
            let hint = exit::hint_of(&error).map_or_else(String::new, |hint| format!(" ({hint})"));
            output.warning(format_args!("{label} was not recorded: {why}{hint}"));
        }
    }
    if summary.is_empty() {
        // Without an error somebody asked for the end before there was anything.
        if let Some(error) = verdict.error {
            return Err(error);
        }
        if output.json() {
            // Why is said on stderr.
            summary.document.notes.push("nothing was recorded");
            summary.print_document(output)?;
        }
        return Ok(stops.exit_code().unwrap_or(exit::OK));
    }
    let printed = summary.print(output);
    verdict.missing |= summary.document.partial.is_some() || summary.is_cut;
    if !summary.stdout_is_taken && summary.document.outputs.is_empty() {
        verdict.error = verdict.error.or(verdict.empty);
    }
    match verdict.error {
        // The rest is what is missing.
        Some(error) if verdict.missing => {
            output.error(&error, None);
            Ok(exit::PARTIAL)
        }
        Some(error) => Err(error),
        None => printed.map(|()| if verdict.missing { exit::PARTIAL } else { exit::OK }),
    }
}

/// What did not go well.
#[derive(Debug, Default)]
struct Verdict {
    /// The first failure.
    error: Option<anyhow::Error>,
    /// The first of several recordings that there was nothing to make of.
    empty: Option<anyhow::Error>,
    /// Something was recorded, and something is missing.
    missing: bool,
}

/// What was recorded, and how it is told.
#[derive(Debug, Default)]
struct Summary {
    document: TraceDocument,
    /// By a result, so that the summary goes to stderr.
    stdout_is_taken: bool,
    /// A file, or what went to stdout, ends early.
    is_cut: bool,
    /// No buffer of a target that dropped events can have been full.
    was_never_full: bool,
}

/// The recording of one process, without files yet.
fn traced(part: &runtap_record::Part) -> TracedProcess {
    let partial = |missing| Partial { offset: part.readable_to, reason: silence::reason(missing) };
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
        notes: part.silence.iter().map(silence::note).collect(),
        is_readable: part.is_readable,
    }
}

impl Summary {
    /// One more process, or several with files that hold all of them; what went wrong comes back.
    fn take(&mut self, files: Files) -> Vec<runtap_record::Error> {
        let Files { parts, files, is_cut, left_out, errors } = files;
        let filled = parts.iter().filter(|part| part.lost > 0).map(|part| part.may_have_filled);
        self.was_never_full = (self.document.lost == 0 || self.was_never_full) && filled.max() != Some(true);
        self.document.take(parts.iter().map(traced).collect(), files.iter().map(output_file).collect());
        self.is_cut |= is_cut;
        if let Some(left_out) = left_out {
            // It names what is missing from the recording too.
            self.document.partial = Some(left_out.into());
        }
        errors
    }

    fn is_empty(&self) -> bool {
        self.document.processes.is_empty()
    }

    fn print_document(&self, output: Output) -> anyhow::Result<()> {
        output.document_beside(&self.document, self.stdout_is_taken)
    }

    /// Prints it: as JSON on stdout; as text the files on stdout, the figures on stderr.
    fn print(&self, output: Output) -> anyhow::Result<()> {
        for remark in self.document.remarks() {
            match remark {
                Remark::Note(note) => output.note(note),
                Remark::Warning(warning) => output.warning(warning),
            }
        }
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
            (false, _) => output.print(&self.document, &output.options()),
        }
    }
}
