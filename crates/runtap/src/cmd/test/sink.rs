//! Distribution of a run's events to the output and the reports.

use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anstream::AutoStream;
use runtap_mtp::suite::artifacts::Collector;
use runtap_mtp::suite::report::{EventStream, Problem, Reporter, Reports};
use runtap_mtp::{ArtifactKeeper, Mode, Module, ModuleId, RunEvent, RunSpec, Stop, TestInfo};
use runtap_test_report::Spool;
use runtap_text::test::{Lines, Progress, Screen, TestList, explain, messages, print_beside};

use super::request::Request;
use super::{print_output, reports};
use crate::cli::{ListFormat, Test};
use crate::exit::is_broken_pipe;
use crate::output::Output;

/// Receives the events of a run.
pub(super) struct Sink {
    reporter: Reporter,
    shown: RunOutput,
    modules: Vec<Module>,
    output: Output,
}

/// The output for lines: standard output, or standard error if a report uses standard output.
type Out = Box<dyn Write + Send>;

/// The output of a run.
enum RunOutput {
    Lines(Lines<Out>),
    Events(EventStream<Out>),
    /// A single document at the end.
    Summary,
    /// The reader has gone, so nothing is printed.
    Nothing,
    List {
        list: TestList,
        json: bool,
    },
}

impl Sink {
    pub(super) fn new(
        options: &Test,
        request: &Request,
        spec: &RunSpec,
        output: Output,
    ) -> anyhow::Result<Self> {
        let reports = match spec.mode {
            Mode::Run => {
                let directory = options.results_directory.as_deref();
                Reports::open(&request.reports, directory, &spec.modules, output.json())
            }
            _ => Reports::check(&request.reports).map(|()| Reports::default()),
        };
        let reports = reports.map_err(reports::usage_error)?;
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
                let screen = screen(options, spec, reports.uses_stdout(), output);
                let here = std::env::current_dir().ok();
                RunOutput::Lines(Lines::new(screen, options.output, &spec.modules, here.as_deref()))
            }
        };
        let reporter = Reporter::new(&spec.modules, reports, collector, options.timeout, explain);
        Ok(Self {
            reporter: reporter.map_err(reports::write_error)?,
            shown,
            modules: spec.modules.clone(),
            output,
        })
    }

    /// Starts the event reports. Until then, reports of an earlier run stay unchanged.
    pub(super) fn begin(&mut self) -> anyhow::Result<()> {
        Ok(self.reporter.begin()?)
    }

    /// Returns whether any output shows what applications print.
    pub(super) fn follows_output(&self) -> bool {
        matches!(self.shown, RunOutput::Events(_)) || self.reporter.is_live()
    }

    /// Returns the collector of the files that applications report.
    pub(super) fn keeper(&self) -> Option<Arc<dyn ArtifactKeeper>> {
        self.reporter.collector().map(|collector| Arc::clone(collector) as Arc<dyn ArtifactKeeper>)
    }

    /// Adds facts about tests that were discovered before the run.
    pub(super) fn add_known_tests(&mut self, known: Vec<(ModuleId, TestInfo)>) {
        self.reporter.add_known_tests(known);
    }

    /// Returns all results so far; `None` if some are lost.
    pub(super) fn results(&self) -> Option<&Spool<File>> {
        self.reporter.results()
    }

    /// Handles an event, and moves the texts of a result out of it; `stopped` tells whether the run was asked to stop. An
    /// output that can't be written is reported, and the run continues for the others.
    pub(super) fn take(&mut self, event: &mut RunEvent, stopped: bool) {
        let reported = self.reporter.event(event, stopped);
        let result = reported.result.as_ref();
        let shown = match &mut self.shown {
            RunOutput::Lines(lines) => lines.event(event, result),
            RunOutput::Events(events) => events.event(reported.ts, event, result, self.reporter.spool()),
            RunOutput::List { list, .. } => {
                list.add_event(event);
                Ok(())
            }
            RunOutput::Summary | RunOutput::Nothing => Ok(()),
        };
        self.report_problems(reported.problems);
        if let Err(error) = shown {
            self.shown = RunOutput::Nothing;
            self.fail("the events", error);
        }
    }

    /// Prints problems of the reports.
    fn report_problems(&mut self, problems: Vec<Problem>) {
        let output = self.output;
        for problem in problems {
            match problem {
                Problem::NotWritten(title, error) => self.fail(&format!("the {title}"), error),
                problem => {
                    let message = messages::problem(&problem, &self.modules);
                    print_beside(|| output.messages(message));
                }
            }
        }
    }

    /// Reports that an output has failed, unless its reader has gone.
    fn fail(&mut self, what: &str, error: io::Error) {
        let error = anyhow::Error::new(error);
        if is_broken_pipe(&error) {
            return;
        }
        self.reporter.fail();
        let error = error.context(format!("cannot write {what} any further"));
        print_beside(|| self.output.error(&error, None));
    }

    /// Requests the classes of the tests that have run if a report shows classes. `stop` ends the requests as well.
    pub(super) fn request_facts(&mut self, spec: &RunSpec, exit_code: i32, stop: &Stop) {
        let problems = self.reporter.request_facts(spec, exit_code, stop);
        self.report_problems(problems);
    }

    /// Writes the final output. Returns whether everything that was requested is written.
    pub(super) fn finish(mut self) -> anyhow::Result<bool> {
        let problems = self.reporter.settle();
        self.report_problems(problems);
        let output = self.output;
        if let Some(collector) = self.reporter.collector() {
            output.messages(messages::collected(&collector.finish()));
        }
        let mut are_written = true;
        self.reporter.write(output.json(), |title, written| {
            are_written &= reports::print_outcome(title, written, output);
        });
        if !are_written {
            self.reporter.fail();
        }
        match std::mem::replace(&mut self.shown, RunOutput::Nothing) {
            RunOutput::Summary => {
                if let Err(error) = self.reporter.write_summary(io::stdout()) {
                    self.fail("the summary", error);
                }
            }
            RunOutput::List { list, json } => show_list(&list, json, output)?,
            RunOutput::Lines(_) | RunOutput::Events(_) | RunOutput::Nothing => {}
        }
        Ok(!self.reporter.has_failed())
    }
}

/// Creates a collector that copies into this directory, or into the default one if the name is empty.
fn collector(directory: &str, options: &Test, spec: &RunSpec) -> anyhow::Result<Collector> {
    let results = options.results_directory.as_deref().unwrap_or_else(|| Path::new(""));
    let directory: PathBuf =
        if directory.is_empty() { results.join("test-artifacts") } else { directory.into() };
    Collector::new(&directory, &spec.modules).map_err(|error| reports::output_error(&error))
}

fn show_list(list: &TestList, json: bool, output: Output) -> anyhow::Result<()> {
    for warning in list.warnings() {
        output.warning(warning);
    }
    for (error, (stdout, stderr)) in list.errors() {
        output.warning(error);
        print_output(stdout, stderr, output);
    }
    if json { output.document(list) } else { output.print(list, &output.options()) }
}

/// Returns the screen for text output, with progress drawn in place or as lines from time to time.
fn screen(options: &Test, spec: &RunSpec, stdout_is_taken: bool, output: Output) -> Screen<Out> {
    let progress = Progress::new(spec.modules.len());
    let out: Out = match (stdout_is_taken, options.no_ansi) {
        (true, true) => Box::new(AutoStream::never(io::stderr())),
        (true, false) => Box::new(AutoStream::auto(io::stderr())),
        (false, true) => Box::new(AutoStream::never(io::stdout())),
        (false, false) => Box::new(AutoStream::auto(io::stdout())),
    };
    if options.no_progress || output.is_quiet() {
        Screen::plain(out)
    } else if stdout_is_taken || options.no_ansi || !output.can_draw() {
        Screen::with_status_lines(out, progress)
    } else {
        Screen::with_progress(out, progress, crate::output::size)
    }
}
