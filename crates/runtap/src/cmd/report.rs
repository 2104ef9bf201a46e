//! `runtap report FILE KIND`: summarizes a recording as a table or a JSON document.

use runtap_clr::report::{
    AllocReport, Collect, ContentionReport, Counters, CpuReport, Exceptions, Gc, Http, Jit, Locks, Logs,
    Loss, Report, ReportKind, ThreadPool,
};
use runtap_clr::{EventCounts, ProfileBuilder};
use runtap_convert::finish;
use runtap_convert::source::{Recording, is_heap_file, read_heap};
use runtap_model::View;
use runtap_nettrace::{Observe, StreamItem};
use runtap_text::document::{HeapDocument, HeapSource, ReportDocument};
use runtap_text::{Output, Print, TextOptions, advice, conversion_message};

use super::jvm;
use super::recording::{loss_message, partial_of, warn_if_partial};
use crate::cli;
use crate::exit::{self, usage};

/// The default number of rows in a table.
const DEFAULT_ROWS: usize = 30;

struct Reporter<'a> {
    kind: ReportKind,
    options: &'a cli::Report,
    output: Output,
}

pub(crate) fn run(options: &cli::Report, output: Output) -> anyhow::Result<u8> {
    let may_be_heap = options.kind.is_empty() || options.kind.eq_ignore_ascii_case("heap");
    if (options.sort.is_some() || options.path.is_some()) && !may_be_heap {
        return Err(usage("--sort and --path apply only to report heap"));
    }
    if let Some(operand) = jvm::find_operand(&options.file)? {
        return jvm::report_kind(&operand, options, output);
    }
    let is_heap = options.kind.is_empty() && is_heap_file(&options.file);
    if options.kind.is_empty() && !is_heap {
        // A missing file is the more likely mistake than a missing KIND.
        Recording::open(&options.file)?;
    }
    let kind = if is_heap { ReportKind::Heap } else { cli::report_kind(&options.kind)? };
    if (options.view.is_some() || options.inclusive) && kind != ReportKind::Cpu {
        return Err(usage("--view and --inclusive apply only to report cpu; all other reports count events"));
    }
    let reporter = Reporter { kind, options, output };
    match kind {
        ReportKind::Cpu => reporter.profile(options.view.unwrap_or(View::Cpu)),
        ReportKind::Alloc => reporter.alloc(),
        ReportKind::Contention => reporter.contention(),
        ReportKind::Gc => reporter.report_collected::<Gc>(),
        ReportKind::Exceptions => reporter.report_collected::<Exceptions>(),
        ReportKind::Jit => reporter.report_collected::<Jit>(),
        ReportKind::Threadpool => reporter.report_collected::<ThreadPool>(),
        ReportKind::Http => reporter.report_collected::<Http>(),
        ReportKind::Counters => reporter.report_collected::<Counters>(),
        ReportKind::Logs => reporter.report_collected::<Logs>(),
        ReportKind::Events => reporter.report_collected::<EventCounts>(),
        ReportKind::Heap => reporter.heap(),
        ReportKind::Loss => {
            reporter.read(Loss::default(), Loss::item, |it, recording| it.report(recording.lost()))
        }
    }
}

impl Reporter<'_> {
    /// Reads the recording into a collector and prints the report that `finish` creates.
    fn read<C, T: Report + Print>(
        &self,
        mut collector: C,
        mut item: impl FnMut(&mut C, &StreamItem<'_>),
        finish: impl FnOnce(C, &mut Recording) -> T,
    ) -> anyhow::Result<u8> {
        let mut recording = Recording::open(&self.options.file)?;
        recording.read(&mut |it| item(&mut collector, it))?;
        let report = finish(collector, &mut recording);
        self.print(report, &recording)
    }

    /// Reads the recording into a collector and prints its report.
    fn report_collected<C: Collect<Report: Print>>(&self) -> anyhow::Result<u8> {
        self.read(C::default(), C::item, |it, _| it.finish())
    }

    fn profile(&self, view: View) -> anyhow::Result<u8> {
        self.read(ProfileBuilder::of(view), ProfileBuilder::item, |builder, recording| {
            let trace = finish(builder, recording);
            let notes = runtap_convert::notes(&trace);
            self.output.messages(notes.iter().filter_map(conversion_message));
            let (view, message) =
                self.options.view.map_or_else(|| advice::default_view(&trace), |view| (view, None));
            self.output.messages(message);
            CpuReport::new(&trace, view, self.options.inclusive)
        })
    }

    fn alloc(&self) -> anyhow::Result<u8> {
        self.read(ProfileBuilder::of(View::Alloc), ProfileBuilder::item, |builder, recording| {
            AllocReport::new(&finish(builder, recording))
        })
    }

    fn contention(&self) -> anyhow::Result<u8> {
        let both = (Locks::default(), ProfileBuilder::of(View::Contention));
        let item = |(locks, builder): &mut (Locks, ProfileBuilder), item: &StreamItem<'_>| {
            locks.item(item);
            builder.item(item);
        };
        self.read(both, item, |(locks, builder), recording| {
            ContentionReport::new(locks.finish(), &finish(builder, recording))
        })
    }

    fn heap(&self) -> anyhow::Result<u8> {
        let Self { options, output, .. } = self;
        let (order, path) = (options.sort.unwrap_or_default(), options.path.as_deref());
        let mut report =
            HeapDocument::new(HeapSource::File(&options.file), read_heap(&options.file)?, order, path);
        report.limit(options.number.filter(|_| output.json()).unwrap_or(usize::MAX));
        output.show_with(&report, &table_options(options.number, *output))?;
        let Some(reason) = report.missing() else { return Ok(exit::OK) };
        output.warning(format_args!("{} is partial: {reason}", options.file.display()));
        Ok(exit::PARTIAL)
    }

    fn print(&self, mut report: impl Report + Print, recording: &Recording) -> anyhow::Result<u8> {
        let Self { kind, options, output } = self;
        let lost = recording.lost();
        let nothing = report.is_empty().then(|| advice::empty_report(*kind, options.view));
        if let Some(loss) = loss_message(recording).filter(|_| *kind != ReportKind::Loss) {
            output.warning(format_args!("{loss}; numbers may be too low"));
        }
        if output.json() {
            if let Some(nothing) = nothing {
                output.note(nothing);
            }
            report.limit(options.number.unwrap_or(usize::MAX));
            let (file, partial) = (options.file.display().to_string(), partial_of(recording));
            output.document(&ReportDocument::new(*kind, &file, lost, partial, report))?;
        } else if let Some(nothing) = nothing {
            // A table of zeros would look like a measurement.
            output.text(format_args!("{nothing}\n"))?;
        } else {
            output.print(&report, &table_options(options.number, *output))?;
        }
        Ok(warn_if_partial(recording, *output))
    }
}

/// Returns the options for a table with this number of rows, or the default number.
pub(super) fn table_options(rows: Option<usize>, output: Output) -> TextOptions<'static> {
    let rows = Some(rows.unwrap_or(DEFAULT_ROWS));
    TextOptions { rows, more: Some("-n shows more"), advice: Some(advice::missing), ..output.options() }
}
