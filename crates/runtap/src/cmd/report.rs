//! `runtap report FILE KIND`: answers from a recording, as a table or as one document.

use runtap_clr::report::{
    AllocReport, Collect, ContentionReport, Counters, CpuReport, Exceptions, Gc, Http, Jit, Locks, Logs,
    Loss, Report, ReportKind, ThreadPool,
};
use runtap_clr::{EventCounts, ProfileBuilder};
use runtap_convert::finish;
use runtap_model::View;
use runtap_nettrace::{Item, Observe};
use runtap_text::document::ReportDocument;
use runtap_text::{Print, TextOptions};

use super::advice;
use super::recording::{loss, partial_of, warn_if_partial};
use crate::cli;
use crate::exit::usage;
use crate::output::Output;
use crate::units::Count;
use runtap_convert::source::Recording;

/// How many rows of a list a table shows if nothing is said.
const ROWS: usize = 30;
/// The part of all samples in the view `cpu`, as one in so many, below which the others are mentioned.
const FEW: u64 = 10;

struct Reporter<'a> {
    options: &'a cli::Report,
    output: Output,
}

pub(crate) fn run(options: &cli::Report, output: Output) -> anyhow::Result<u8> {
    if options.view.is_some() && options.kind != ReportKind::Cpu {
        return Err(usage("--view applies only to the report cpu: the others have a view of their own"));
    }
    if options.inclusive && options.kind != ReportKind::Cpu {
        return Err(usage(
            "--inclusive applies only to the report cpu: the others are made of events, not of stacks",
        ));
    }
    let reporter = Reporter { options, output };
    match options.kind {
        ReportKind::Cpu => reporter.profile(options.view.unwrap_or(View::Cpu)),
        ReportKind::Alloc => reporter.alloc(),
        ReportKind::Contention => reporter.contention(),
        ReportKind::Gc => reporter.collected::<Gc>(),
        ReportKind::Exceptions => reporter.collected::<Exceptions>(),
        ReportKind::Jit => reporter.collected::<Jit>(),
        ReportKind::Threadpool => reporter.collected::<ThreadPool>(),
        ReportKind::Http => reporter.collected::<Http>(),
        ReportKind::Counters => reporter.collected::<Counters>(),
        ReportKind::Logs => reporter.collected::<Logs>(),
        ReportKind::Events => reporter.collected::<EventCounts>(),
        ReportKind::Loss => {
            reporter.of(Loss::default(), Loss::item, |it, recording| it.report(recording.lost()))
        }
    }
}

impl Reporter<'_> {
    /// Reads the recording and answers.
    fn of<C, T: Report + Print>(
        &self,
        mut collector: C,
        mut item: impl FnMut(&mut C, &Item<'_>),
        finish: impl FnOnce(C, &mut Recording) -> T,
    ) -> anyhow::Result<u8> {
        let mut recording = Recording::open(&self.options.file)?;
        recording.read(|it| item(&mut collector, it))?;
        let answer = finish(collector, &mut recording);
        self.answer(answer, &recording)
    }

    /// The answer of a collector.
    fn collected<C: Collect<Report: Print>>(&self) -> anyhow::Result<u8> {
        self.of(C::default(), C::item, |it, _| it.finish())
    }

    fn profile(&self, view: View) -> anyhow::Result<u8> {
        self.of(ProfileBuilder::of(view), ProfileBuilder::item, |builder, recording| {
            let trace = finish(builder, recording);
            advice::say_notes(&trace, self.output);
            // All samples say more than none.
            let view = if self.options.view.is_none() && trace.shows_little_in(view) {
                self.output.warning(format_args!(
                    "only {} of {} samples are in the view '{view}', so all of them are shown; use --view cpu to show only those",
                    Count(trace.ticks(view)),
                    Count(trace.ticks(View::ThreadTime))
                ));
                View::ThreadTime
            } else {
                if self.options.view.is_none()
                    && let Some(doubtful) = trace.doubtful_ticks()
                {
                    self.output.warning(advice::doubtful(trace.ticks(view), doubtful));
                } else if self.options.view.is_none() && view == View::Cpu {
                    let (shown, all) = (trace.ticks(view), trace.ticks(View::ThreadTime));
                    if shown > 0 && shown.saturating_mul(FEW) < all {
                        self.output.note(advice::few(shown, all));
                    }
                }
                view
            };
            CpuReport::new(&trace, view, self.options.inclusive)
        })
    }

    fn alloc(&self) -> anyhow::Result<u8> {
        self.of(ProfileBuilder::of(View::Alloc), ProfileBuilder::item, |builder, recording| {
            AllocReport::new(&finish(builder, recording))
        })
    }

    fn contention(&self) -> anyhow::Result<u8> {
        let both = (Locks::default(), ProfileBuilder::of(View::Contention));
        let item = |(locks, builder): &mut (Locks, ProfileBuilder), item: &Item<'_>| {
            locks.item(item);
            builder.item(item);
        };
        self.of(both, item, |(locks, builder), recording| {
            ContentionReport::new(locks.finish(), &finish(builder, recording))
        })
    }

    /// A recording does not say what was asked for: if that was recorded, the program has done nothing of the kind.
    fn nothing(&self) -> String {
        let cli::Report { kind, view, .. } = self.options;
        let view = view.unwrap_or(View::Cpu);
        let of_view = if *kind == ReportKind::Cpu { format!(" in the view '{view}'") } else { String::new() };
        let subject = advice::subject(*kind);
        let advice = match view {
            // Somebody insisted; else all samples are shown.
            View::Cpu if *kind == ReportKind::Cpu && self.options.view.is_some() => {
                "--view thread-time shows waiting threads too"
            }
            view => advice::for_report(*kind, view),
        };
        format!("no {subject}{of_view} in this recording: there were none, if they were recorded; {advice}")
    }

    fn answer(&self, mut report: impl Report + Print, recording: &Recording) -> anyhow::Result<u8> {
        let Self { options, output } = self;
        let lost = recording.lost();
        let nothing = report.is_empty().then(|| self.nothing());
        if let Some(loss) = loss(recording).filter(|_| options.kind != ReportKind::Loss) {
            output.warning(format_args!("{loss}; numbers may be too low"));
        }
        if output.json() {
            if let Some(nothing) = nothing {
                output.note(nothing);
            }
            report.limit(options.number.unwrap_or(usize::MAX));
            let (file, partial) = (options.file.display().to_string(), partial_of(recording));
            output.document(&ReportDocument::new(options.kind, &file, lost, partial, report))?;
        } else if let Some(nothing) = nothing {
            // Tables of zeros would look as if all had been measured.
            output.text(format_args!("{nothing}\n"))?;
        } else {
            output.print(&report, &table_options(options.number, *output))?;
        }
        Ok(warn_if_partial(recording, *output))
    }
}

/// How tables look that have as many rows as were asked for.
pub(super) fn table_options(rows: Option<usize>, output: Output) -> TextOptions<'static> {
    let rows = Some(rows.unwrap_or(ROWS));
    TextOptions { rows, more: Some("-n shows more"), advice: Some(advice::missing), ..output.options() }
}
