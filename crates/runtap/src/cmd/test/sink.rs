//! Distribution of a run's events to the output and the reports.

use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anstream::AutoStream;
use runtap_mtp::suite::artifacts::{Collected, Collector};
use runtap_mtp::suite::listing;
use runtap_mtp::{ArtifactKeeper, Mode, ModuleId, RunEvent, RunSpec, Stop, StopLevel, TestInfo, code};
use runtap_test_report::events::summary;
use runtap_test_report::{Source as _, Spool};

use super::lines::{Lines, MAX_LINE, cleaned};
use super::list::TestList;
use super::live::{EventStream, totals};
use super::model::RunResults;
use super::progress::Progress;
use super::reports::{self, Reports};
use super::screen::{Screen, print_beside};
use super::settings::Settings;
use super::usage;
use crate::cli::Test;
use crate::exit::{FAILED, is_broken_pipe};
use crate::output::Output;
use crate::units::Things;

/// Receives the events of a run.
pub(super) struct Sink {
    results: RunResults,
    shown: RunOutput,
    /// Event reports, each with its title.
    live: Vec<(String, EventStream<Out>)>,
    reports: Reports,
    /// Whether a requested output could not be written.
    failed: bool,
    collector: Option<Arc<Collector>>,
    started: Instant,
    /// The time after which the run is stopped.
    timeout: Option<Duration>,
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
    List(TestList),
}

impl Sink {
    pub(super) fn new(
        options: &Test,
        settings: &Settings,
        spec: &RunSpec,
        output: Output,
    ) -> anyhow::Result<Self> {
        let reports = match spec.mode {
            Mode::Run => {
                let directory = options.results_directory.as_deref();
                reports::open(&settings.reports, directory, &spec.modules, output)?
            }
            _ => reports::check(&settings.reports).map(|()| Reports::default())?,
        };
        let collector = match (&options.collect_artifacts, spec.mode) {
            (Some(directory), Mode::Run) => Some(Arc::new(collector(directory, options, spec)?)),
            _ => None,
        };
        let shown = match options.list_tests {
            Some(format) => RunOutput::List(TestList::new(format, output.json(), &spec.modules)),
            None if output.json() && options.summary => RunOutput::Summary,
            None if output.json() => RunOutput::Events(EventStream::new(Box::new(io::stdout()))),
            None => {
                let screen = screen(options, spec, reports.uses_stdout(), output);
                RunOutput::Lines(Lines::new(screen, options.output, &spec.modules))
            }
        };
        let results = RunResults::new(&spec.modules)?;
        Ok(Self {
            results,
            shown,
            live: Vec::new(),
            reports,
            failed: false,
            collector,
            started: Instant::now(),
            timeout: options.timeout,
            output,
        })
    }

    /// Starts the event reports. Until then, reports of an earlier run stay unchanged.
    pub(super) fn begin(&mut self) -> anyhow::Result<()> {
        let live = self.reports.begin()?;
        self.live = live.into_iter().map(|(title, to)| (title, EventStream::new(to))).collect();
        Ok(())
    }

    /// Returns whether any output shows what applications print.
    pub(super) fn follows_output(&self) -> bool {
        matches!(self.shown, RunOutput::Events(_)) || !self.live.is_empty()
    }

    /// Returns the collector of the files that applications report.
    pub(super) fn keeper(&self) -> Option<Arc<dyn ArtifactKeeper>> {
        self.collector.clone().map(|collector| collector as Arc<dyn ArtifactKeeper>)
    }

    /// Adds facts about tests that were discovered before the run.
    pub(super) fn add_known_tests(&mut self, known: Vec<(ModuleId, TestInfo)>) {
        self.results.add_known_tests(known);
    }

    /// Returns all results so far; `None` if some are lost.
    pub(super) fn results(&self) -> Option<&Spool<File>> {
        self.results.complete()
    }

    /// Handles an event, and moves the texts of a result out of it; `stopped` tells whether the run was asked to stop. An
    /// output that can't be written is reported, and the run continues for the others.
    pub(super) fn take(&mut self, event: &mut RunEvent, stopped: bool) {
        if let Some(collector) = &self.collector {
            collector.event(event);
        }
        let interrupted = stopped.then(|| self.interruption(event));
        let result = self.modify(|results| results.take(event, interrupted));
        // Reports at the end contain the run's exit code, so change it first.
        if let RunEvent::RunEnded { exit_code, .. } = event
            && *exit_code == code::OK
            && self.failed
        {
            *exit_code = i32::from(FAILED);
        }
        let ts = u64::try_from(self.started.elapsed().as_nanos()).unwrap_or(u64::MAX);
        let spool = &self.results.spool;
        let mut unwritten = Vec::new();
        self.live.retain_mut(|(title, live)| {
            let error = live.event(ts, event, result.as_ref(), spool).err();
            let is_written = error.is_none();
            unwritten.extend(error.map(|error| (format!("the {title}"), error)));
            is_written
        });
        let shown = match &mut self.shown {
            RunOutput::Lines(lines) => lines.event(event, result.as_ref()),
            RunOutput::Events(events) => events.event(ts, event, result.as_ref(), spool),
            RunOutput::List(list) => {
                list.add_event(event);
                Ok(())
            }
            RunOutput::Summary | RunOutput::Nothing => Ok(()),
        };
        if let Err(error) = shown {
            self.shown = RunOutput::Nothing;
            unwritten.push(("what happens".to_owned(), error));
        }
        for (what, error) in unwritten {
            self.fail(&what, error);
        }
    }

    /// Reports that an output has failed, unless its reader has gone.
    fn fail(&mut self, what: &str, error: io::Error) {
        let error = anyhow::Error::new(error);
        if is_broken_pipe(&error) {
            return;
        }
        self.failed = true;
        let error = error.context(format!("{what} can't be written any more"));
        print_beside(|| self.output.error(&error, None));
    }

    /// Changes the results. If results are lost by that, prints a warning.
    fn modify<T>(&mut self, change: impl FnOnce(&mut RunResults) -> T) -> T {
        let was_complete = self.results.lost.is_none();
        let done = change(&mut self.results);
        if was_complete && let Some(error) = &self.results.lost {
            self.failed |= self.reports.needs_results();
            let folder = std::env::temp_dir();
            print_beside(|| {
                self.output.warning(format_args!(
                    "results can't be kept in {}: {error}; without them, the reports and the test history of this run can't be written",
                    folder.display()
                ));
            });
        }
        done
    }

    /// Returns the reason why the run was stopped.
    fn interruption(&self, event: &RunEvent) -> &'static str {
        match event {
            RunEvent::RunEnded { exit_code: code::TOO_MANY_FAILED, .. } => {
                "too many tests failed (--max-fail)"
            }
            _ if self.timeout.is_some_and(|timeout| self.started.elapsed() >= timeout) => {
                "its time was over (--timeout)"
            }
            _ => "it was stopped by a signal",
        }
    }

    /// Requests the classes of the tests that have run from the applications, because results lack them, if a report shows
    /// classes. `stop` ends the requests as well.
    pub(super) fn request_facts(&mut self, spec: &RunSpec, exit_code: i32, stop: &Stop) {
        let modules = self.results.not_listed();
        let is_hard_stop = stop.level() == Some(StopLevel::Hard);
        let is_useless = is_hard_stop || modules.is_empty() || self.results.lost.is_some();
        if spec.mode != Mode::Run || is_useless || !self.reports.needs_facts(exit_code) {
            return;
        }
        let limit = if stop.level().is_some() { spec.timeouts.grace } else { spec.timeouts.start };
        let silent = listing::list(spec, &modules, limit, stop, |module, test| {
            self.modify(|results| results.add_late_facts(module, &test));
        });
        let silent = silent.unwrap_or_else(|error| {
            self.output.warning(format_args!("no application can list its tests: {error}"));
            modules
        });
        for module in silent {
            if let Some(module) = spec.modules.get(module.0) {
                let text = format_args!("{module} did not list its tests: reports may lack their classes");
                self.output.note(text);
            }
        }
    }

    /// Writes the final output. Returns whether everything that was requested is written.
    pub(super) fn finish(mut self) -> anyhow::Result<bool> {
        self.modify(RunResults::settle);
        if let Some(collector) = &self.collector {
            report_collected(&collector.finish(), self.output);
        }
        self.failed |= !std::mem::take(&mut self.reports).write(self.results.complete(), self.output);
        match std::mem::replace(&mut self.shown, RunOutput::Nothing) {
            RunOutput::Summary => self.summarize(),
            RunOutput::List(list) => list.finish(self.output)?,
            RunOutput::Lines(_) | RunOutput::Events(_) | RunOutput::Nothing => {}
        }
        Ok(!self.failed)
    }

    fn summarize(&mut self) {
        let spool = &mut self.results.spool;
        let run = spool.run_mut();
        if self.failed && run.exit_code == code::OK {
            run.exit_code = i32::from(FAILED);
        }
        let written =
            totals(spool).and_then(|totals| summary(io::stdout(), spool.run(), spool.modules(), &totals));
        if let Err(error) = written {
            self.fail("the summary", error);
        }
    }
}

/// Creates a collector that copies into this directory, or into the default one if the name is empty.
fn collector(directory: &str, options: &Test, spec: &RunSpec) -> anyhow::Result<Collector> {
    let results = options.results_directory.as_deref().unwrap_or_else(|| Path::new(""));
    let directory: PathBuf =
        if directory.is_empty() { results.join("test-artifacts") } else { directory.into() };
    Collector::new(&directory, &spec.modules).map_err(|error| {
        let advice = error.cause.advice().map(str::to_owned);
        usage(format!("{error}: {}", error.cause), advice)
    })
}

fn report_collected(collected: &Collected, output: Output) {
    let Collected { directory, copies, rejected, more_rejected } = collected;
    let count = Things(*copies, "file");
    output.note(format_args!("collected {count} in {}", directory.display()));
    for (path, why) in rejected {
        let path = cleaned(&path.to_string_lossy(), MAX_LINE);
        output.warning(format_args!("not collected: {path}: {why}"));
    }
    if *more_rejected > 0 {
        output.warning(format_args!("not collected: {more_rejected} more"));
    }
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
