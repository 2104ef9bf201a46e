//! The reports and the output of a run, from its options.

use std::io;
use std::path::{Path, PathBuf};

use runtap_mtp::suite::artifacts::Collector;
use runtap_mtp::suite::report::{EventStream, ReportError, Reporter, Reports, WriteError};
use runtap_mtp::{Mode, RunSpec};
use runtap_os::output::Error as FileError;
use runtap_text::Output;
use runtap_text::test::{LineOptions, RunOutput, RunPrinter, TestList, explain};

use super::request::Request;
use super::usage;
use crate::cli::{ListFormat, Test};

/// Opens the reports.
pub(super) fn open(
    options: &Test,
    request: &Request,
    spec: &RunSpec,
    output: Output,
) -> anyhow::Result<RunPrinter> {
    let reports = match spec.mode {
        Mode::Run => {
            let directory = options.results_directory.as_deref();
            Reports::open(&request.reports, directory, &spec.modules, output.json())
        }
        _ => Reports::check(&request.reports).map(|()| Reports::default()),
    };
    let reports = reports.map_err(|error| match error {
        ReportError::File(error) => output_error(&error),
        error => usage(error.to_string(), error.hint()),
    })?;
    let collector = match (&options.collect_artifacts, spec.mode) {
        (Some(directory), Mode::Run) => Some(collector(directory, options, spec)?),
        _ => None,
    };
    let shown = match options.list_tests {
        Some(format) => RunOutput::List {
            list: TestList::new(&spec.modules),
            json: output.json() || format == ListFormat::Json,
        },
        None if output.json() && options.summary => RunOutput::Summary,
        None if output.json() => RunOutput::Events(EventStream::new(Box::new(io::stdout()))),
        None => {
            let lines = LineOptions {
                detail: options.output,
                ansi: !options.no_ansi,
                progress: !options.no_progress,
                stdout_is_taken: reports.uses_stdout(),
            };
            RunOutput::lines(lines, &spec.modules, output)
        }
    };
    let reporter = Reporter::new(&spec.modules, reports, collector, options.timeout, explain);
    let reporter = reporter.map_err(|error| match error {
        // Converted as they are: `exit::hint_of` recognizes these types.
        WriteError::Io(error) => error.into(),
        WriteError::File(error) => error.into(),
        error => anyhow::Error::from(error),
    })?;
    Ok(RunPrinter::new(reporter, shown, spec.modules.clone(), output))
}

/// Creates a collector that copies into this directory, or into the default one if the name is empty.
fn collector(directory: &str, options: &Test, spec: &RunSpec) -> anyhow::Result<Collector> {
    let results = options.results_directory.as_deref().unwrap_or_else(|| Path::new(""));
    let directory: PathBuf =
        if directory.is_empty() { results.join("test-artifacts") } else { directory.into() };
    Collector::new(&directory, &spec.modules).map_err(|error| output_error(&error))
}

/// Creates the error for an output that cannot be created, which counts as invalid usage.
fn output_error(error: &FileError) -> anyhow::Error {
    let advice = error.cause.advice().map(str::to_owned);
    usage(format!("{error}: {}", error.cause), advice)
}
