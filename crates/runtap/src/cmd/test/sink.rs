//! Where the events of a run go: to people or to programs, and into reports.

use std::fs::File;
use std::io::{self, BufWriter, Stdout};
use std::path::{Path, PathBuf};
use std::time::Instant;

use runtap_mtp::{Mode, RunEvent, RunSpec};
use runtap_outputs::Draft;
use runtap_test_report::events::Events;
use runtap_test_report::{Format, Message, Source as _, Spool, TestResult, Totals};

use super::lines::Lines;
use super::list::Listed;
use super::model::{Gathered, level, shown_artifact};
use super::usage;
use crate::cli::Test;
use crate::output::Output;

/// Takes the events of one run.
pub(super) struct Sink {
    gathered: Gathered,
    shown: Shown,
    reports: Vec<(Format, Draft)>,
    started: Instant,
}

/// What is printed.
enum Shown {
    Lines(Lines<anstream::Stdout>),
    Events(Events<Stdout>),
    /// One document at the end.
    Summary,
    List(Listed),
}

impl Sink {
    pub(super) fn new(options: &Test, spec: &RunSpec, output: Output) -> anyhow::Result<Self> {
        let shown = match options.list_tests {
            Some(format) => Shown::List(Listed::new(format, output.json(), &spec.modules)),
            None if output.json() && options.summary => Shown::Summary,
            None if output.json() => Shown::Events(Events::new(io::stdout())),
            None => Shown::Lines(Lines::new(anstream::stdout(), options.output, &spec.modules)),
        };
        let reports = if spec.mode == Mode::Run { reports(options)? } else { Vec::new() };
        let gathered = Gathered::new(&spec.modules, spec.retries > 0)?;
        Ok(Self { gathered, shown, reports, started: Instant::now() })
    }

    pub(super) fn take(&mut self, event: &RunEvent) -> anyhow::Result<()> {
        let result = self.gathered.take(event)?;
        match &mut self.shown {
            Shown::Lines(lines) => lines.event(event, result.as_ref().map(|result| &result.last))?,
            Shown::Events(events) => {
                let ts = u64::try_from(self.started.elapsed().as_nanos()).unwrap_or(u64::MAX);
                write_event(events, ts, event, result.as_ref(), &self.gathered.spool)?;
            }
            Shown::List(list) => list.take(event),
            Shown::Summary => {}
        }
        Ok(())
    }

    /// The run is over: what is written at the end.
    pub(super) fn finish(self, output: Output) -> anyhow::Result<()> {
        let spool = &self.gathered.spool;
        match self.shown {
            Shown::Summary => {
                let totals = totals(spool)?;
                runtap_test_report::events::summary(io::stdout(), spool.run(), spool.modules(), &totals)?;
            }
            Shown::List(list) => list.finish(output)?,
            Shown::Lines(_) | Shown::Events(_) => {}
        }
        for (format, draft) in self.reports {
            let mut file = BufWriter::new(draft.file());
            format.write(spool, &mut file)?;
            file.into_inner().map_err(io::IntoInnerError::into_error)?;
            let path = draft.appear_whole()?;
            output.note(format_args!("{} report: {}", format.name(), path.display()));
        }
        Ok(())
    }
}

fn totals(spool: &Spool<File>) -> io::Result<Vec<Totals>> {
    (0..spool.modules().len()).map(|module| spool.totals(module)).collect()
}

/// `FORMAT[=PATH]`, opened before anything is started.
fn reports(options: &Test) -> anyhow::Result<Vec<(Format, Draft)>> {
    let one = |text: &String| {
        let (name, path) =
            text.split_once('=').map_or((text.as_str(), None), |(name, path)| (name, Some(path)));
        let Some(format) = Format::from_name(name) else {
            let known: Vec<_> = Format::ALL.iter().map(|format| format.name()).collect();
            return Err(usage(format!("'{name}' is no report"), format!("one of {}", known.join(", "))));
        };
        let path = path.map_or_else(
            || {
                let directory = options.results_directory.as_deref().unwrap_or_else(|| Path::new(""));
                directory.join(format!("test-results.{}", format.extension().trim_start_matches('.')))
            },
            PathBuf::from,
        );
        Ok((format, Draft::of(&path)?))
    };
    options.report.iter().map(one).collect()
}

fn write_event(
    events: &mut Events<Stdout>,
    ts: u64,
    event: &RunEvent,
    result: Option<&TestResult>,
    spool: &Spool<File>,
) -> io::Result<()> {
    let of = |module: &runtap_mtp::ModuleId| spool.modules().get(module.0);
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
