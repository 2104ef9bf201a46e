//! Export of recordings to files for viewers, with the same writers as for other recordings.

use std::path::Path;
use std::time::Duration;

use runtap_convert::source::ProfileSource as _;
use runtap_convert::{Content, FileFormat, convert_profiles, plan, reject_overwriting};
use runtap_jvm::recording::{JavaSource, LoadedRecording, Operand, views};
use runtap_os::output::Destination;
use runtap_text::document::{ConvertDocument, OutputFile};
use runtap_text::jvm::missing_calls_hint;
use runtap_text::{NotePrinter, Output, unsuitable};

use super::{classify_error, warn};
use crate::cmd::convert;
use crate::exit::{self, usage};
use runtap_text::units::Things;

/// The files to write from a recording.
#[derive(Debug)]
pub(super) struct Export<'a> {
    pub(super) operand: &'a Operand,
    pub(super) agents: &'a [String],
    pub(super) slow: Duration,
    pub(super) formats: &'a [FileFormat],
    pub(super) output: Option<&'a Path>,
    pub(super) content: Content,
}

pub(super) fn run(export: &Export<'_>, output: Output) -> anyhow::Result<u8> {
    let Export { operand, formats, content, .. } = export;
    if formats.is_empty() || formats.iter().any(|format| format.sink().is_none()) {
        let names: Vec<&str> =
            FileFormat::all().filter(|format| format.sink().is_some()).map(FileFormat::name).collect();
        return Err(usage(format!("choose a format with --to ({})", names.join(", "))));
    }
    JavaSource::check(formats, content).map_err(|why| usage(unsuitable(why)))?;
    let planned = plan(formats, export.output, &operand.base())?;
    let loaded = operand.load(export.agents, export.slow).map_err(classify_error)?;
    reject_missing_calls(&loaded)?;
    reject_overwriting(&loaded.files(), &planned)?;
    let to_stdout = planned.iter().any(|planned| planned.to == Destination::Stdout);
    let code = warn(&loaded, output);
    let mut source = JavaSource::new(loaded);
    let mut printer = NotePrinter::new(output);
    let written = convert_profiles(&mut source, planned, content, &mut |note| printer.print(&note))
        .map_err(profile_error)?;
    let left_out = source.left_out();
    if left_out > 0 {
        output.warning(format_args!(
            "{} of time omitted at the end; select a part, {}#1s..2s",
            Things(left_out, "piece"),
            operand.path.display()
        ));
    }
    let outputs: Vec<_> = written.files.iter().map(OutputFile::from).collect();
    if output.json() && !outputs.is_empty() {
        let partial = source.partial().map(Into::into);
        let document = ConvertDocument::new(&operand.path, outputs, source.lost(), partial);
        output.document_on_free_stream(&document, to_stdout)?;
    }
    if written.failures.iter().any(runtap_convert::Error::is_nothing_to_show) {
        let [_, calls] = views();
        let advice = if content.view == Some(calls) {
            "no method was called"
        } else {
            "all calls are shorter than the resolution of the agent's clock; --view calls shows how often methods are called"
        };
        return Err(exit::expected(exit::FAILED, format!("there is nothing to show: {advice}"), None));
    }
    convert::first(written.failures, output)?;
    printer.result?;
    Ok(if written.is_cut || left_out > 0 { exit::PARTIAL } else { code })
}

/// Rejects recordings without calls, because callers are unknown.
pub(super) fn reject_missing_calls(loaded: &LoadedRecording) -> anyhow::Result<()> {
    match loaded.missing_calls().and_then(missing_calls_hint) {
        None => Ok(()),
        Some(hint) => Err(exit::expected(exit::FAILED, format!("there are no calls to show: {hint}"), None)),
    }
}

/// Adds an exit code and a hint to an error of reading profiles.
pub(super) fn profile_error(error: runtap_convert::Error) -> anyhow::Error {
    match error {
        runtap_convert::Error::Source(error) => {
            error.downcast().map_or_else(anyhow::Error::from_boxed, |error| classify_error(*error))
        }
        error => error.into(),
    }
}
