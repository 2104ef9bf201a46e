//! `runtap report FILE KIND`: answers from a recording, as a table or as one document.

mod events;
mod frames;
mod table;
mod tables;

use std::path::PathBuf;

use runtap_ingest::report::{Counters, Exceptions, Gc, Http, Jit, Locks, Logs, Loss, ThreadPool};
use runtap_ingest::{EventCounts, ProfileBuilder, ProfileOptions};
use runtap_model::{Trace, View};
use runtap_nettrace::{Item, Observe};
use serde::Serialize;

use self::events::EventsReport;
use self::frames::{AllocReport, ContentionReport, CpuReport};
use super::advice;
use super::recording::{Partial, has_become, partial_of, room_of, warn_if_partial};
use crate::cli::{Report, ReportKind};
use crate::exit::usage;
use crate::output::Output;
use crate::units::{Count, Things};
use runtap_files::Recording;

/// An answer.
trait Answer: Serialize {
    /// Keeps the first `n` of each list.
    fn limit(&mut self, n: usize);
    /// The answer for people. What comes from the target is cleaned.
    fn text(&self) -> String;
    /// Whether there is nothing to tell.
    fn is_empty(&self) -> bool;
}

/// `runtap.report.KIND/1`
#[derive(Serialize)]
struct Document<'a, T> {
    schema: String,
    file: &'a str,
    lost: u64,
    partial: Option<Partial>,
    #[serde(flatten)]
    answer: T,
}

/// How many rows of a list a table shows if nothing is said.
const ROWS: usize = 30;

struct Reporter<'a> {
    options: &'a Report,
    output: Output,
}

pub(crate) fn run(options: &Report, output: Output) -> anyhow::Result<u8> {
    if options.view.is_some() && options.kind != ReportKind::Cpu {
        return Err(usage("--view is for the report of kind cpu: the others have one of their own"));
    }
    if options.inclusive && options.kind != ReportKind::Cpu {
        return Err(usage(
            "--inclusive is for the report of kind cpu: the others are of events, not of stacks",
        ));
    }
    let reporter = Reporter { options, output };
    match options.kind {
        ReportKind::Cpu => reporter.profile(options.view.map_or(View::Cpu, Into::into)),
        ReportKind::Alloc => reporter.alloc(),
        ReportKind::Contention => reporter.contention(),
        ReportKind::Gc => reporter.of(Gc::default(), Gc::item, |it, _| it.finish()),
        ReportKind::Exceptions => reporter.of(Exceptions::default(), Exceptions::item, |it, _| it.finish()),
        ReportKind::Jit => reporter.of(Jit::default(), Jit::item, |it, _| it.finish()),
        ReportKind::Threadpool => reporter.of(ThreadPool::default(), ThreadPool::item, |it, _| it.finish()),
        ReportKind::Http => reporter.of(Http::default(), Http::item, |it, _| it.finish()),
        ReportKind::Counters => reporter.of(Counters::default(), Counters::item, |it, _| it.finish()),
        ReportKind::Logs => reporter.of(Logs::default(), Logs::item, |it, _| it.finish()),
        ReportKind::Loss => {
            reporter.of(Loss::default(), Loss::item, |it, recording| it.finish(recording.lost()))
        }
        ReportKind::Events => {
            let take = |counts: &mut EventCounts, item: &Item<'_>| match item {
                Item::Event(event) => counts.add(event),
                Item::Metadata(metadata) => counts.redefined(metadata.id),
                _ => {}
            };
            reporter.of(EventCounts::new(), take, |counts, _| EventsReport::new(&counts))
        }
    }
}

/// The profile of a recording that was read.
fn put_together(builder: ProfileBuilder, recording: &mut Recording) -> Trace {
    let options = ProfileOptions { room: room_of(recording), ..ProfileOptions::default() };
    let trace = builder.finish(&options);
    has_become(recording, &trace);
    trace
}

impl Reporter<'_> {
    /// Reads the recording and answers.
    fn of<C, T: Answer>(
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

    fn profile(&self, view: View) -> anyhow::Result<u8> {
        self.of(ProfileBuilder::of(view), ProfileBuilder::item, |builder, recording| {
            let trace = put_together(builder, recording);
            advice::say_if_nameless(&trace, self.output);
            // .NET 9 marks running threads as waiting ones: then all samples say more than none.
            let few = trace.ticks(view).saturating_mul(100) < trace.ticks(View::ThreadTime);
            let view = if self.options.view.is_none() && few {
                self.output.warning(format_args!(
                    "only {} of {} samples are in the view '{view}', so all of them are shown; --view cpu insists",
                    Count(trace.ticks(view)),
                    Count(trace.ticks(View::ThreadTime))
                ));
                View::ThreadTime
            } else {
                view
            };
            CpuReport::new(&trace, view, self.options.inclusive)
        })
    }

    fn alloc(&self) -> anyhow::Result<u8> {
        self.of(ProfileBuilder::of(View::Alloc), ProfileBuilder::item, |builder, recording| {
            AllocReport::new(&put_together(builder, recording))
        })
    }

    fn contention(&self) -> anyhow::Result<u8> {
        let both = (Locks::default(), ProfileBuilder::of(View::Contention));
        let item = |(locks, builder): &mut (Locks, ProfileBuilder), item: &Item<'_>| {
            locks.item(item);
            builder.item(item);
        };
        self.of(both, item, |(locks, builder), recording| {
            ContentionReport::new(locks.finish(), &put_together(builder, recording))
        })
    }

    /// A recording does not say what was asked for: the program may also have done nothing of the kind.
    fn nothing(&self) -> String {
        let Report { kind, view, .. } = self.options;
        let view = view.map_or(View::Cpu, Into::into);
        let of_view = if *kind == ReportKind::Cpu { format!(" in the view '{view}'") } else { String::new() };
        let subject = kind.subject();
        let advice = match view {
            // Somebody insisted; else all samples are shown.
            View::Cpu if *kind == ReportKind::Cpu && self.options.view.is_some() => {
                "--view thread-time shows waiting threads too"
            }
            view => advice::for_report(*kind, view),
        };
        format!(
            "no {subject}{of_view} in this recording: there were none, or they were not asked for; {advice}"
        )
    }

    fn answer(&self, mut answer: impl Answer, recording: &Recording) -> anyhow::Result<u8> {
        let Self { options, output } = self;
        let kind = options.kind.name();
        let lost = recording.lost();
        let nothing = answer.is_empty().then(|| self.nothing());
        if let Some(n) = options.number {
            answer.limit(n);
        } else if !output.json() {
            answer.limit(ROWS);
        }
        if lost > 0 && options.kind != ReportKind::Loss {
            output.warning(format_args!(
                "the target dropped {}: numbers may be too low",
                Things(lost, "event")
            ));
        }
        if output.json() {
            let schema = format!("runtap.report.{kind}/1");
            let file = PathBuf::from(&options.file).display().to_string();
            if let Some(nothing) = nothing {
                output.note(nothing);
            }
            output.document(&Document {
                schema,
                file: &file,
                lost,
                partial: partial_of(recording),
                answer,
            })?;
        } else {
            // Tables of zeros would look as if all had been measured.
            output.text(nothing.map_or_else(|| answer.text(), |nothing| format!("{nothing}\n")))?;
        }
        Ok(warn_if_partial(recording, *output))
    }
}
