//! Where the events of a run go: to people or to programs, and into reports.

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

use super::lines::{LINE, Lines, cleaned};
use super::list::Listed;
use super::live::{Live, totals};
use super::model::Gathered;
use super::progress::Progress;
use super::reports::{self, Reports};
use super::screen::{Screen, beside};
use super::settings::Settings;
use super::usage;
use crate::cli::Test;
use crate::exit::{FAILED, is_broken_pipe};
use crate::output::Output;
use crate::units::Things;

/// Takes the events of one run.
pub(super) struct Sink {
    gathered: Gathered,
    shown: Shown,
    /// Reports that are written while things happen, each with what it is.
    live: Vec<(String, Live<Out>)>,
    reports: Reports,
    /// Something that was asked for can't be written.
    failed: bool,
    collector: Option<Arc<Collector>>,
    started: Instant,
    /// After this time the run is stopped.
    timeout: Option<Duration>,
    output: Output,
}

/// Where lines go: standard output, or standard error where that has a report.
type Out = Box<dyn Write + Send>;

/// What is printed.
enum Shown {
    Lines(Lines<Out>),
    Events(Live<Out>),
    /// One document at the end.
    Summary,
    /// Nobody reads it any more.
    Nothing,
    List(Listed),
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
            Some(format) => Shown::List(Listed::new(format, output.json(), &spec.modules)),
            None if output.json() && options.summary => Shown::Summary,
            None if output.json() => Shown::Events(Live::new(Box::new(io::stdout()))),
            None => {
                let screen = screen(options, spec, reports.take_stdout(), output);
                Shown::Lines(Lines::new(screen, options.output, &spec.modules))
            }
        };
        let gathered = Gathered::new(&spec.modules)?;
        Ok(Self {
            gathered,
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

    /// The run begins: before it, reports of another one stay as they are.
    pub(super) fn begin(&mut self) -> anyhow::Result<()> {
        let live = self.reports.begin()?;
        self.live = live.into_iter().map(|(title, to)| (title, Live::new(to))).collect();
        Ok(())
    }

    /// Whether somebody follows what applications print.
    pub(super) fn follows_output(&self) -> bool {
        matches!(self.shown, Shown::Events(_)) || !self.live.is_empty()
    }

    /// Who keeps the files that applications name.
    pub(super) fn keeper(&self) -> Option<Arc<dyn ArtifactKeeper>> {
        self.collector.clone().map(|collector| collector as Arc<dyn ArtifactKeeper>)
    }

    /// What was found out about tests before the run.
    pub(super) fn know(&mut self, known: Vec<(ModuleId, TestInfo)>) {
        self.gathered.know(known);
    }

    /// All results so far; `None` if some are lost.
    pub(super) fn results(&self) -> Option<&Spool<File>> {
        self.gathered.whole()
    }

    /// Takes in what has happened, and the texts of a result; `stopped`: the run was told to end. What can't be written is
    /// told, and the run goes on: the rest has its outcome.
    pub(super) fn take(&mut self, event: &mut RunEvent, stopped: bool) {
        if let Some(collector) = &self.collector {
            collector.event(event);
        }
        let interrupted = stopped.then(|| self.interruption(event));
        let result = self.keep(|gathered| gathered.take(event, interrupted));
        // Reports at the end are about the tests, and have the code of the run.
        if let RunEvent::RunEnded { exit_code, .. } = event
            && *exit_code == code::OK
            && self.failed
        {
            *exit_code = i32::from(FAILED);
        }
        let ts = u64::try_from(self.started.elapsed().as_nanos()).unwrap_or(u64::MAX);
        let spool = &self.gathered.spool;
        let mut unwritten = Vec::new();
        self.live.retain_mut(|(title, live)| {
            let error = live.event(ts, event, result.as_ref(), spool).err();
            let goes_on = error.is_none();
            unwritten.extend(error.map(|error| (format!("the {title}"), error)));
            goes_on
        });
        let shown = match &mut self.shown {
            Shown::Lines(lines) => lines.event(event, result.as_ref()),
            Shown::Events(events) => events.event(ts, event, result.as_ref(), spool),
            Shown::List(list) => {
                list.take(event);
                Ok(())
            }
            Shown::Summary | Shown::Nothing => Ok(()),
        };
        if let Err(error) = shown {
            self.shown = Shown::Nothing;
            unwritten.push(("what happens".to_owned(), error));
        }
        for (what, error) in unwritten {
            self.fail(&what, error);
        }
    }

    /// Nothing more is written there. If its reader has gone, that is no failure.
    fn fail(&mut self, what: &str, error: io::Error) {
        let error = anyhow::Error::new(error);
        if is_broken_pipe(&error) {
            return;
        }
        self.failed = true;
        let error = error.context(format!("{what} can't be written any more"));
        beside(|| self.output.error(&error, None));
    }

    /// Changes what is gathered. If results are lost by that, it is told.
    fn keep<T>(&mut self, change: impl FnOnce(&mut Gathered) -> T) -> T {
        let was_whole = self.gathered.lost.is_none();
        let done = change(&mut self.gathered);
        if was_whole && let Some(error) = &self.gathered.lost {
            self.failed |= self.reports.need_results();
            let folder = std::env::temp_dir();
            beside(|| {
                self.output.warning(format_args!(
                    "results can't be kept in {}: {error}; without them, the reports and the test history of this run can't be written",
                    folder.display()
                ));
            });
        }
        done
    }

    /// Why the run was told to end.
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

    /// Asks the applications for the classes of the tests that they have run, if a report shows them: results do not say
    /// them. `stop` ends that as well.
    pub(super) fn look_up(&mut self, spec: &RunSpec, exit_code: i32, stop: &Stop) {
        let modules = self.gathered.not_listed();
        let at_once = stop.level() == Some(StopLevel::Hard);
        let is_useless = at_once || modules.is_empty() || self.gathered.lost.is_some();
        if spec.mode != Mode::Run || is_useless || !self.reports.want_facts(exit_code) {
            return;
        }
        let limit = if stop.level().is_some() { spec.timeouts.grace } else { spec.timeouts.start };
        let silent = listing::list(spec, &modules, limit, stop, |module, test| {
            self.keep(|gathered| gathered.learn(module, &test));
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

    /// The run is over: what is written at the end. Returns whether everything is written that was asked for.
    pub(super) fn finish(mut self) -> anyhow::Result<bool> {
        self.keep(Gathered::settle);
        if let Some(collector) = &self.collector {
            tell_collected(&collector.finish(), self.output);
        }
        self.failed |= !std::mem::take(&mut self.reports).write(self.gathered.whole(), self.output);
        match std::mem::replace(&mut self.shown, Shown::Nothing) {
            Shown::Summary => self.summarize(),
            Shown::List(list) => list.finish(self.output)?,
            Shown::Lines(_) | Shown::Events(_) | Shown::Nothing => {}
        }
        Ok(!self.failed)
    }

    fn summarize(&mut self) {
        let spool = &mut self.gathered.spool;
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

/// Copies into this directory, or, without a name, into the usual one.
fn collector(directory: &str, options: &Test, spec: &RunSpec) -> anyhow::Result<Collector> {
    let results = options.results_directory.as_deref().unwrap_or_else(|| Path::new(""));
    let directory: PathBuf =
        if directory.is_empty() { results.join("test-artifacts") } else { directory.into() };
    Collector::new(&directory, &spec.modules).map_err(|error| {
        let advice = error.cause.advice().map(str::to_owned);
        usage(format!("{error}: {}", error.cause), advice)
    })
}

fn tell_collected(collected: &Collected, output: Output) {
    let Collected { directory, copies, rejected, more_rejected } = collected;
    let count = Things(*copies, "file");
    output.note(format_args!("collected {count} in {}", directory.display()));
    for (path, why) in rejected {
        let path = cleaned(&path.to_string_lossy(), LINE);
        output.warning(format_args!("not collected: {path}: {why}"));
    }
    if *more_rejected > 0 {
        output.warning(format_args!("not collected: {more_rejected} more"));
    }
}

/// Where people read; with the state of the run, drawn in place or as a line from time to time.
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
        Screen::with_beat(out, progress)
    } else {
        Screen::with_progress(out, progress, crate::output::size)
    }
}
