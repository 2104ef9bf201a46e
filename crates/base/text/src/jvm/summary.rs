//! The report on a trace as text: tables that are readable at 80 columns.

use std::cmp::Reverse;
use std::io;

use runtap_bytefrog::{Detail, MethodReport, Report, readable};
use runtap_jvm::BrokenRules;
use runtap_jvm::recording::{ClassCounts, LoadedAgent};
use runtap_model::order;

use super::{fitted_name, missing_calls_hint, time, took};
use crate::units::{Count, Moment, Things};
use crate::{Clean, Column, Print, Table, TextOptions};

/// The width of the numbers in front of a method's name.
const NUMBERS_WIDTH: usize = 45;

/// A report with its title.
#[derive(Debug)]
pub struct ReportText<'a> {
    /// The agent, described in one line.
    pub title: String,
    /// The report.
    pub report: &'a Report,
    /// The numbers of the agent's reports on classes.
    pub classes: ClassCounts,
    /// The rules that the agent has broken, including those on its connections.
    pub broken: BrokenRules,
}

/// The reports on all agents of recordings, one after the other.
#[derive(Debug)]
pub struct AgentReports<'a>(pub Vec<&'a LoadedAgent>);

impl Print for AgentReports<'_> {
    fn print(&self, out: &mut dyn io::Write, options: &TextOptions<'_>) -> io::Result<()> {
        for (index, agent) in self.0.iter().enumerate() {
            if index > 0 {
                writeln!(out)?;
            }
            let report = agent.report();
            let text = ReportText {
                title: agent.title(),
                report: &report,
                classes: agent.classes(),
                broken: agent.broken().with_report(&report),
            };
            text.print(out, options)?;
        }
        Ok(())
    }
}

fn heading(out: &mut dyn io::Write, options: &TextOptions<'_>, text: &str) -> io::Result<()> {
    let bold = options.heading();
    writeln!(out, "\n{bold}{text}{bold:#}")
}

impl ReportText<'_> {
    /// Returns the number of calls ended by an exception. Saturates, because agents may send any numbers.
    fn thrown(&self) -> u64 {
        self.report.methods.iter().map(MethodReport::thrown).fold(0, u64::saturating_add)
    }

    /// Prints the totals, and what is missing.
    fn totals(&self, out: &mut dyn io::Write) -> io::Result<()> {
        let counters = &self.report.counters;
        let called = self.report.methods.iter().filter(|method| method.has_run).count() as u64;
        let detail = self.report.detail();
        match detail {
            Detail::Calls => writeln!(
                out,
                "{} of {} in {}; {} thrown, {} ended by an exception",
                Things(counters.calls(), "call"),
                Things(called, "method"),
                Things(self.report.threads.len() as u64, "thread"),
                Things(counters.exceptions, "exception"),
                Things(self.thrown(), "call"),
            )?,
            Detail::Counts => writeln!(
                out,
                "{} of {}, {} ended by an exception",
                Things(counters.calls(), "call"),
                Things(called, "method"),
                Things(self.thrown(), "call"),
            )?,
            Detail::Coverage => writeln!(out, "{} ran", Things(called, "method"))?,
            Detail::Unsent => {}
        }
        if let Some(hint) = missing_calls_hint(detail) {
            writeln!(out, "{hint}")?;
        }
        let untimed = counters.counted_besides();
        if untimed > 0 {
            writeln!(
                out,
                "{} only counted, because the collector was too slow for {}: times, callers and threads are without them",
                Things(untimed, "call"),
                Things(counters.degraded, "thread"),
            )?;
        }
        let ClassCounts { transformed, ignored, failed } = self.classes;
        if transformed + ignored + failed > 0 {
            write!(out, "{} transformed, {} ignored", Things(transformed, "class"), Count(ignored))?;
            writeln!(out, ", {} failed", Count(failed))?;
        }
        for (count, what) in [
            (counters.missing, "never came"),
            (counters.dropped, "were dropped by the agent, which was not read fast enough"),
            (counters.suspended, "not recorded while recording was suspended"),
            (counters.repeated, "came with a number that was used, or given up"),
            (counters.orphans, "ended a call that had not begun"),
            (self.report.beyond, "had no room"),
        ] {
            if count > 0 {
                writeln!(out, "{} {what}", Things(count, "event"))?;
            }
        }
        for (count, what) in [
            (counters.drops_unknown, "drop", "of unknown size"),
            (counters.data_breaks, "data break", "in which nothing was recorded"),
            (counters.suspensions, "suspension", "of a thread's recording"),
            (self.report.without_node, "call", "not in the call tree: it was full"),
            (self.report.too_deep, "call", "deeper than stacks are kept"),
        ]
        .map(|(count, thing, what)| (Things(count, thing), what))
        {
            if count.0 > 0 {
                writeln!(out, "{count} {what}")?;
            }
        }
        let open = counters.entries.saturating_sub(counters.exits).saturating_sub(counters.bubbles);
        if open > 0 {
            writeln!(out, "{} without an end", Things(open, "call"))?;
        }
        Ok(())
    }

    fn methods(&self, out: &mut dyn io::Write, options: &TextOptions<'_>) -> io::Result<()> {
        let mut methods: Vec<&MethodReport> =
            self.report.methods.iter().filter(|method| method.has_run).collect();
        if methods.is_empty() {
            return Ok(());
        }
        order::sort_by_key(&mut methods, |method| Reverse((method.own(), method.total(), method.calls())));
        let by = match self.report.detail() {
            Detail::Calls => "Methods, by the time in them",
            Detail::Counts => "Methods, by calls",
            Detail::Coverage | Detail::Unsent => "Methods that ran",
        };
        heading(out, options, by)?;
        let mut table = Table::new(
            "method",
            [
                Column::number("self"),
                Column::number("total"),
                Column::number("calls"),
                Column::number("exc exits"),
                Column::text("method"),
            ],
        );
        table.fill(methods.into_iter(), options, |method| {
            let counted = |is_known: bool, calls: u64| {
                if is_known { Count(calls).to_string() } else { "-".to_owned() }
            };
            [
                took(method.own(), method.is_partly_timed()),
                took(method.total(), method.is_partly_timed()),
                counted(method.calls() > 0, method.calls()),
                counted(method.counts_ends(), method.thrown()),
                fitted_name(&readable(&method.signature), options, NUMBERS_WIDTH),
            ]
        });
        table.print(out, options)
    }

    fn exceptions(&self, out: &mut dyn io::Write, options: &TextOptions<'_>) -> io::Result<()> {
        let mut places: Vec<_> = self.report.exceptions.iter().collect();
        if places.is_empty() {
            return Ok(());
        }
        order::sort_by_key(&mut places, |place| Reverse(place.count));
        heading(out, options, "Exceptions: where they begin and end")?;
        let mut table = Table::new(
            "place",
            [
                Column::number("times"),
                Column::text("what"),
                Column::text("exception"),
                Column::text("method"),
            ],
        );
        table.fill(places.into_iter(), options, |place| {
            let simple = place.exception.rsplit('.').next().unwrap_or_default();
            let exception = if options.width.is_some() { simple } else { &place.exception };
            let at = place.line.map_or_else(String::new, |line| format!(":{line}"));
            let other_columns = 20 + Clean(exception).to_string().chars().count() + at.len();
            [
                Count(place.count).to_string(),
                place.fate.name().to_owned(),
                exception.to_owned(),
                format!("{}{at}", fitted_name(&readable(&place.signature), options, other_columns)),
            ]
        });
        table.print(out, options)
    }

    fn segments(&self, out: &mut dyn io::Write, options: &TextOptions<'_>) -> io::Result<()> {
        if self.report.segments.is_empty() {
            return Ok(());
        }
        heading(out, options, "Segments: what ran from a marker to the next of its key")?;
        let mut table = Table::new(
            "segment",
            [
                Column::number("from"),
                Column::number("took"),
                Column::number("calls"),
                Column::number("methods"),
                Column::text("marker"),
            ],
        );
        table.fill(self.report.segments.iter(), options, |segment| {
            let shown = &segment.segment;
            let took = shown.end.map(|end| u64::try_from(end.saturating_sub(shown.start)).unwrap_or(0));
            let truncated = if shown.truncated { " (methods had no room)" } else { "" };
            [
                Moment(shown.start).to_string(),
                took.map_or_else(|| "open".to_owned(), time),
                Count(shown.entries).to_string(),
                Count(segment.calls.len() as u64).to_string(),
                format!("{} = {}{truncated}", shown.key, shown.value),
            ]
        });
        table.print(out, options)
    }

    fn slow_calls(&self, out: &mut dyn io::Write, options: &TextOptions<'_>) -> io::Result<()> {
        if self.report.slow_calls.is_empty() {
            return Ok(());
        }
        heading(out, options, "Slow calls")?;
        let mut table = Table::new(
            "call",
            [
                Column::number("took"),
                Column::number("at"),
                Column::number("thread"),
                Column::number("depth"),
                Column::text("method"),
            ],
        );
        table.fill(self.report.slow_calls.iter(), options, |call| {
            let last = call.path.last().map_or("", |last| &**last);
            [
                time(call.took),
                Moment(call.start).to_string(),
                call.thread.to_string(),
                call.depth.to_string(),
                fitted_name(&readable(last), options, NUMBERS_WIDTH),
            ]
        });
        table.print(out, options)
    }

    fn findings(&self, out: &mut dyn io::Write, options: &TextOptions<'_>) -> io::Result<()> {
        let rules = self.broken.rules();
        if rules.is_empty() {
            return Ok(());
        }
        heading(out, options, "Rules that the agent has broken (docs/bytefrog-rules.md)")?;
        let mut table =
            Table::new("rule", [Column::text("rule"), Column::number("times"), Column::text("what")]);
        table.fill(rules.iter(), options, |finding| {
            let first = finding.first.first().map_or_else(String::new, |first| format!(": {first}"));
            [
                finding.rule.to_string(),
                Count(finding.count).to_string(),
                format!("{}{first}", finding.rule.summary()),
            ]
        });
        table.print(out, options)
    }
}

impl Print for ReportText<'_> {
    fn print(&self, out: &mut dyn io::Write, options: &TextOptions<'_>) -> io::Result<()> {
        let bold = options.heading();
        writeln!(out, "{bold}{}{bold:#}", Clean(&self.title))?;
        self.totals(out)?;
        self.methods(out, options)?;
        self.exceptions(out, options)?;
        self.segments(out, options)?;
        self.slow_calls(out, options)?;
        self.findings(out, options)
    }
}
