//! `runtap convert FILE`: converts a recording to other formats.

use std::fs;
use std::path::Path;

use runtap_convert::source::{ProfileSource as _, Recording};
use runtap_convert::{Converted, FileFormat, Note, WrittenFiles, plan, reject_overwriting};
use runtap_model::Trace;
use runtap_os::output::{Destination, without_extension};
use runtap_text::document::{ConvertDocument, OutputFile};
use runtap_text::{advice, conversion_message};

use super::jvm;
use super::recording::{partial_of, warn_if_partial};
use crate::cli::{AnyFormat, Convert, STDIN, unsuitable};
use crate::exit::{self, usage};
use crate::output::Output;

/// Converts a written file to its form in JSON documents.
pub(super) fn output_file(file: &runtap_convert::OutputFile) -> OutputFile {
    let (deep_stacks, cut_at_ns) = (file.deep_stacks, file.cut_at_ns);
    OutputFile { deep_stacks, cut_at_ns, ..OutputFile::new(&file.path, file.format.name(), file.bytes) }
}

pub(crate) fn run(options: &Convert, output: Output) -> anyhow::Result<u8> {
    let formats = AnyFormat::files(&options.to, options.format, options.output.as_deref());
    if let Some(operand) = jvm::find_operand(&options.file)? {
        return jvm::convert(&operand, &formats, options, output);
    }
    if formats.is_empty() {
        let names: Vec<&str> = FileFormat::all().map(FileFormat::name).collect();
        return Err(usage(format!("no format specified; choose one with --to ({})", names.join(", "))));
    }
    let content = (&options.content).into();
    Recording::check(&formats, &content).map_err(|why| usage(unsuitable(why)))?;
    if options.output.is_none() && lacks_directory(&options.file) {
        return Err(usage(format!(
            "{} is not a regular file, so the output has no default name; use -o",
            options.file.display()
        )));
    }
    let planned = plan(&formats, options.output.as_deref(), &without_extension(&options.file))?;
    reject_overwriting(&[&options.file], &planned)?;
    let to_stdout = planned.iter().any(|planned| planned.to == Destination::Stdout);
    let mut printer = NotePrinter::new(output);
    let Converted { made, recording } =
        runtap_convert::convert(&options.file, planned, &content, &mut |note| printer.print(&note))?;
    conclude(options, (made, printer.result), &recording, to_stdout, output)
}

/// Prints the notes of a conversion, and a line for each written file unless the result is a JSON document.
pub(super) struct NotePrinter {
    output: Output,
    /// The first error of printing.
    pub(super) result: anyhow::Result<()>,
}

impl NotePrinter {
    pub(super) fn new(output: Output) -> Self {
        Self { output, result: Ok(()) }
    }

    pub(super) fn print(&mut self, note: &Note) {
        match note {
            Note::Written(file) if !self.output.json() => {
                let line = self.output.print(&output_file(file), &self.output.options());
                if self.result.is_ok() {
                    self.result = line;
                }
            }
            note => say(note, self.output),
        }
    }
}

/// Prints the written files, then the failures and warnings, and returns the exit code.
fn conclude(
    options: &Convert,
    (made, print_result): (WrittenFiles, anyhow::Result<()>),
    recording: &Recording,
    to_stdout: bool,
    output: Output,
) -> anyhow::Result<u8> {
    let WrittenFiles { files, is_cut, failures } = made;
    let outputs: Vec<OutputFile> = files.iter().map(output_file).collect();
    let written = first(failures, output);
    if outputs.is_empty() {
        written?;
        let code = warn_if_partial(recording, output);
        return Ok(if is_cut { exit::PARTIAL } else { code });
    }
    if output.json() {
        let summary = ConvertDocument::new(&options.file, outputs, recording.lost(), partial_of(recording));
        output.document_beside(&summary, to_stdout)?;
    }
    let code = warn_if_partial(recording, output);
    written.and(print_result).map(|()| if is_cut { exit::PARTIAL } else { code })
}

/// Whether the input has no directory for its outputs: it is stdin or not a regular file.
fn lacks_directory(file: &Path) -> bool {
    file == Path::new(STDIN) || fs::metadata(file).is_ok_and(|meta| !meta.is_file())
}

/// Returns the first failure as the error and prints the others.
pub(super) fn first<E: Into<anyhow::Error>>(
    failures: impl IntoIterator<Item = E>,
    output: Output,
) -> anyhow::Result<()> {
    let mut failures = failures.into_iter().map(Into::into);
    let Some(first) = failures.next() else { return Ok(()) };
    for error in failures {
        let hint = exit::hint_of(&error);
        output.error(&error, hint.as_deref());
    }
    Err(first)
}

/// Prints a note about the result of a conversion.
pub(super) fn say(note: &Note, output: Output) {
    output.messages(conversion_message(note));
}

/// Prints the notes about a profile, with how to record missing data.
pub(super) fn print_notes(trace: &Trace, output: Output) {
    for note in runtap_convert::notes(trace) {
        say(&note, output);
    }
}

/// Returns the next step after a sink failed to write a file.
pub(crate) fn hint(error: &runtap_sinks::Error) -> Option<&'static str> {
    match error {
        runtap_sinks::Error::NoSamples { left_out: 1.., .. } => None,
        runtap_sinks::Error::NoSamples { view, recorded, .. } if view.is_sampled() => Some(match recorded {
            0 => {
                "'runtap trace' records CPU samples by default, or with --profile dotnet-sampled-thread-time, once the program \
                 runs managed code; allocations, collections, lock contention and more have views of their own, such as \
                 'runtap convert --view alloc'"
            }
            _ => "--view thread-time shows waiting threads too",
        }),
        runtap_sinks::Error::NoSamples { view, .. } => Some(advice::for_view(*view)),
        runtap_sinks::Error::NoTimeAxis(_) => {
            Some("Choose speedscope, firefox, pprof, folded or flamegraph.")
        }
        _ => None,
    }
}
