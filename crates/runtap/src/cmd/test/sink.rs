//! Where the events of a run go: to people or to programs, and into reports.

use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anstream::AutoStream;
use runtap_mtp::{ArtifactKeeper, Mode, ModuleId, RunEvent, RunSpec, Stop, StopLevel, TestInfo, code};
use runtap_test_report::{Source as _, Spool};
use runtap_test_run::artifacts::{Collected, Collector};
use runtap_test_run::listing;

use super::lines::{LINE, Lines, cleaned};
use super::list::Listed;
use super::live::{Live, totals};
use super::model::Gathered;
use super::progress::Progress;
use super::reports::{self, Reports};
use super::screen::Screen;
use super::settings::Settings;
use super::usage;
use crate::cli::Test;
use crate::output::Output;
use crate::units::Things;

/// Takes the events of one run.
pub(super) struct Sink {
    gathered: Gathered,
    shown: Shown,
    /// Reports that are written while things happen.
    live: Vec<Live<Out>>,
    reports: Reports,
    collector: Option<Arc<Collector>>,
    started: Instant,
    /// After this time the run is stopped.
    timeout: Option<Duration>,
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
            collector,
            started: Instant::now(),
            timeout: options.timeout,
        })
    }

    /// The run begins: before it, reports of another one stay as they are.
    pub(super) fn begin(&mut self) -> anyhow::Result<()> {
        self.live = self.reports.begin()?.into_iter().map(Live::new).collect();
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

    /// All results so far.
    pub(super) fn results(&self) -> &Spool<File> {
        &self.gathered.spool
    }

    /// Takes in what has happened, and the texts of a result; `stopped`: the run was told to end.
    pub(super) fn take(&mut self, event: &mut RunEvent, stopped: bool) -> anyhow::Result<()> {
        if let Some(collector) = &self.collector {
            collector.event(event);
        }
        let interrupted = stopped.then(|| self.interruption(event));
        let result = self.gathered.take(event, interrupted)?;
        let ts = u64::try_from(self.started.elapsed().as_nanos()).unwrap_or(u64::MAX);
        for live in &mut self.live {
            live.event(ts, event, result.as_ref(), &self.gathered.spool)?;
        }
        let shown = match &mut self.shown {
            Shown::Lines(lines) => lines.event(event, result.as_ref()),
            Shown::Events(events) => events.event(ts, event, result.as_ref(), &self.gathered.spool),
            Shown::List(list) => {
                list.take(event);
                Ok(())
            }
            Shown::Summary | Shown::Nothing => Ok(()),
        };
        match shown {
            // The tests are run for their outcome and for reports, too.
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => self.shown = Shown::Nothing,
            shown => shown?,
        }
        Ok(())
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
    pub(super) fn look_up(
        &mut self,
        spec: &RunSpec,
        exit_code: i32,
        stop: &Stop,
        output: Output,
    ) -> anyhow::Result<()> {
        let modules = self.gathered.not_listed();
        let at_once = stop.level() == Some(StopLevel::Hard);
        if spec.mode != Mode::Run || at_once || modules.is_empty() || !self.reports.want_facts(exit_code) {
            return Ok(());
        }
        let limit = if stop.level().is_some() { spec.timeouts.grace } else { spec.timeouts.start };
        let mut kept = Ok(());
        let silent = listing::list(spec, &modules, limit, stop, |module, test| {
            if kept.is_ok() {
                kept = self.gathered.learn(module, &test);
            }
        })?;
        kept?;
        for module in silent {
            if let Some(module) = spec.modules.get(module.0) {
                output.note(format_args!("{module} did not list its tests: reports may lack their classes"));
            }
        }
        Ok(())
    }

    /// The run is over: what is written at the end.
    pub(super) fn finish(mut self, output: Output) -> anyhow::Result<()> {
        self.gathered.spool.settle()?;
        let spool = &self.gathered.spool;
        match self.shown {
            Shown::Summary => {
                let totals = totals(spool)?;
                runtap_test_report::events::summary(io::stdout(), spool.run(), spool.modules(), &totals)?;
            }
            Shown::List(list) => list.finish(output)?,
            Shown::Lines(_) | Shown::Events(_) | Shown::Nothing => {}
        }
        if let Some(collector) = self.collector {
            tell_collected(&collector.finish(), output);
        }
        self.reports.write(spool, output)
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
    let Collected { directory, copies, refused, more_refused } = collected;
    let count = Things(*copies, "file");
    output.note(format_args!("collected {count} in {}", directory.display()));
    for (path, why) in refused {
        let path = cleaned(&path.to_string_lossy(), LINE);
        output.warning(format_args!("not collected: {path}: {why}"));
    }
    if *more_refused > 0 {
        output.warning(format_args!("not collected: {more_refused} more"));
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
