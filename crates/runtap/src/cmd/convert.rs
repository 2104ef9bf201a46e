//! `runtap convert FILE`: converts a recording to other formats.

use std::fs;
use std::path::Path;

use runtap_convert::source::{ProfileSource as _, Recording};
use runtap_convert::{Converted, FileFormat, WrittenFiles, plan, reject_overwriting};
use runtap_os::output::{Destination, without_extension};
use runtap_text::document::{ConvertDocument, OutputFile};
use runtap_text::{NotePrinter, Output, unsuitable};

use super::jvm;
use super::recording::{partial_of, warn_if_partial};
use crate::cli::{AnyFormat, Convert, STDIN};
use crate::exit::{self, usage};

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
    let WrittenFiles { files, is_cut, failures } = made;
    let outputs: Vec<OutputFile> = files.iter().map(OutputFile::from).collect();
    let written = first(failures, output);
    if outputs.is_empty() {
        written?;
        let code = warn_if_partial(&recording, output);
        return Ok(if is_cut { exit::PARTIAL } else { code });
    }
    if output.json() {
        let summary = ConvertDocument::new(&options.file, outputs, recording.lost(), partial_of(&recording));
        output.document_on_free_stream(&summary, to_stdout)?;
    }
    let code = warn_if_partial(&recording, output);
    written?;
    printer.result?;
    Ok(if is_cut { exit::PARTIAL } else { code })
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
        exit::print_error(&error, output);
    }
    Err(first)
}
