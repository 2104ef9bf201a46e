//! Where the events of a run go: to people or to programs, and into reports.

use std::fs::File;
use std::io::{self, Stdout, Write};
use std::time::{Duration, Instant};

use anstream::AutoStream;
use runtap_mtp::{Mode, ModuleId, RunEvent, RunSpec, Stop, StopLevel, TestInfo, code};
use runtap_test_report::events::Events;
use runtap_test_report::{Message, Source as _, Spool, TestResult, Totals};
use runtap_test_run::listing;

use super::lines::Lines;
use super::list::Listed;
use super::model::{Gathered, level, shown_artifact};
use super::progress::Progress;
use super::reports::{self, Reports};
use super::screen::Screen;
use super::settings::Settings;
use crate::cli::Test;
use crate::output::Output;

/// Takes the events of one run.
pub(super) struct Sink {
    gathered: Gathered,
    shown: Shown,
    reports: Reports,
    started: Instant,
    /// After this time the run is stopped.
    timeout: Option<Duration>,
}

/// Where lines go: standard output, or standard error where that has a report.
type Out = Box<dyn Write + Send>;

/// What is printed.
enum Shown {
    Lines(Lines<Out>),
    Events(Events<Stdout>),
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
        let shown = match options.list_tests {
            Some(format) => Shown::List(Listed::new(format, output.json(), &spec.modules)),
            None if output.json() && options.summary => Shown::Summary,
            None if output.json() => Shown::Events(Events::new(io::stdout())),
            None => {
                let screen = screen(options, spec, reports.take_stdout(), output);
                Shown::Lines(Lines::new(screen, options.output, &spec.modules))
            }
        };
        let gathered = Gathered::new(&spec.modules, settings.has_retries())?;
        Ok(Self { gathered, shown, reports, started: Instant::now(), timeout: options.timeout })
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
        let interrupted = stopped.then(|| self.interruption(event));
        let result = self.gathered.take(event, interrupted)?;
        let shown = match &mut self.shown {
            Shown::Lines(lines) => lines.event(event, result.as_ref()),
            Shown::Events(events) => {
                let ts = u64::try_from(self.started.elapsed().as_nanos()).unwrap_or(u64::MAX);
                write_event(events, ts, event, result.as_ref(), &self.gathered.spool)
            }
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
        self.reports.write(spool, output)
    }
}

/// Where people read; with the state of the run, if it can be drawn in place.
fn screen(options: &Test, spec: &RunSpec, stdout_is_taken: bool, output: Output) -> Screen<Out> {
    if stdout_is_taken {
        let err = io::stderr();
        let err = if options.no_ansi { AutoStream::never(err) } else { AutoStream::auto(err) };
        return Screen::plain(Box::new(err));
    }
    let out = io::stdout();
    let out = if options.no_ansi { AutoStream::never(out) } else { AutoStream::auto(out) };
    if options.no_ansi || options.no_progress || !output.can_draw() {
        return Screen::plain(Box::new(out));
    }
    Screen::with_progress(Box::new(out), Progress::new(spec.modules.len()), crate::output::size)
}

fn totals(spool: &Spool<File>) -> io::Result<Vec<Totals>> {
    (0..spool.modules().len()).map(|module| spool.totals(module)).collect()
}

fn write_event(
    events: &mut Events<Stdout>,
    ts: u64,
    event: &RunEvent,
    result: Option<&TestResult>,
    spool: &Spool<File>,
) -> io::Result<()> {
    let of = |module: &ModuleId| spool.modules().get(module.0);
    match event {
        RunEvent::RunStarted { .. } => events.run_start(ts, spool.run()),
        RunEvent::Introduced { module, .. } => of(module).map_or(Ok(()), |it| events.module_start(ts, it)),
        RunEvent::TestStarted { module, uid, name, attempt, .. } => of(module).map_or(Ok(()), |it| {
            events.test_start(ts, it, uid, name, usize::try_from(*attempt).unwrap_or(usize::MAX))
        }),
        RunEvent::TestEnded { module, .. } => match (of(module), result) {
            (Some(module), Some(result)) => events.test_result(ts, module, result),
            _ => Ok(()),
        },
        RunEvent::Artifact { module, artifact } => of(module).map_or(Ok(()), |it| {
            events.artifact(ts, it, &shown_artifact(artifact), artifact.test_uid.as_deref())
        }),
        RunEvent::Message { module, severity, text } => of(module).map_or(Ok(()), |it| {
            events.message(ts, it, &Message { level: level(*severity), text: text.clone() })
        }),
        RunEvent::ModuleEnded { module, .. } => {
            of(module).map_or(Ok(()), |it| events.module_end(ts, it, &spool.totals(module.0)?))
        }
        RunEvent::RunEnded { .. } => events.run_end(ts, spool.run(), spool.modules(), &totals(spool)?),
        _ => Ok(()),
    }
}
