//! Reports based on the runtime's events.

use std::io;

use runtap_clr::report::{
    CounterKind, CounterSeries, CountersReport, ExceptionsReport, GcReport, HttpReport, JitReport,
    LogsReport, Side, ThreadPoolReport,
};
use runtap_model::order;

use super::{known, number};
use crate::options::Missing;
use crate::units::{Bytes, Count, Moment, Nanoseconds, Things};
use crate::{Column, Print, Table, TextOptions};

impl Print for GcReport {
    fn print(&self, out: &mut dyn io::Write, options: &TextOptions<'_>) -> io::Result<()> {
        let [gen0, gen1, gen2] = self.collections_by_generation;
        writeln!(
            out,
            "{}: {} of generation 0, {} of generation 1, {} of generation 2; {} induced",
            Things(self.collections_count, "collection"),
            Count(gen0.saturating_sub(gen1)),
            Count(gen1.saturating_sub(gen2)),
            Count(gen2),
            Count(self.induced_count)
        )?;
        writeln!(
            out,
            "{}: total {}, max {}, p95 {}",
            Things(self.pauses.timed_count, "pause"),
            Nanoseconds(self.pauses.total_ns),
            Nanoseconds(self.pauses.max_ns),
            Nanoseconds(self.pauses.p95_ns)
        )?;
        let others = self.other_suspensions;
        if others.timed_count > 0 {
            writeln!(
                out,
                "{} without a collection (total {})",
                Things(others.timed_count, "GC suspension"),
                Nanoseconds(others.total_ns)
            )?;
        }
        writeln!(out)?;
        let columns = [
            Column::number("GC"),
            Column::number("GEN"),
            Column::text("REASON"),
            Column::text("TYPE"),
            Column::number("START"),
            Column::number("PAUSE"),
            Column::number("DURATION"),
            Column::number("HEAP AFTER"),
            Column::number("PROMOTED"),
        ];
        let mut table = Table::new("collection", columns);
        table.fill(self.collections.iter(), options, |it| {
            [
                it.number.to_string(),
                it.generation.to_string(),
                it.reason.to_owned(),
                it.kind.to_owned(),
                Moment(it.start_ns).to_string(),
                Nanoseconds(it.pause_ns).to_string(),
                known(it.duration_ns.map(Nanoseconds)),
                known(it.heap_after.map(|heap| Bytes(heap.total_bytes))),
                known(it.heap_after.map(|heap| Bytes(heap.promoted_bytes))),
            ]
        });
        table.print(out, options)
    }
}

impl Print for ExceptionsReport {
    fn print(&self, out: &mut dyn io::Write, options: &TextOptions<'_>) -> io::Result<()> {
        let thrown = Things(self.thrown_count, "exception");
        match self.rethrown_count {
            Some(n) => writeln!(out, "{thrown} thrown, {} rethrown\n", Count(n))?,
            None => writeln!(
                out,
                "{thrown} thrown; number of rethrown ones unknown (.NET 9 and later do not report them)\n"
            )?,
        }
        let columns =
            [Column::number("THROWN"), Column::number("RETHROWN"), Column::text("TYPE: FIRST MESSAGE")];
        let mut table = Table::new("type", columns);
        table.fill(self.types.iter(), options, |it| {
            [
                Count(it.thrown_count).to_string(),
                known(it.rethrown_count.map(Count)),
                format!("{}: {}", it.name, it.first_message),
            ]
        });
        table.print(out, options)?;
        writeln!(out)?;
        let columns = [Column::number("TIME"), Column::number("THREAD"), Column::text("EXCEPTION")];
        let mut table = Table::new("exception", columns);
        table.fill(self.exceptions.iter(), options, |it| {
            let again = if it.rethrown { " (rethrown)" } else { "" };
            [
                Moment(it.ts_ns).to_string(),
                it.thread.to_string(),
                format!("{}: {}{again}", it.name, it.message),
            ]
        });
        table.print(out, options)
    }
}

impl Print for JitReport {
    fn print(&self, out: &mut dyn io::Write, options: &TextOptions<'_>) -> io::Result<()> {
        write!(
            out,
            "{} compiled ({} dynamic) in {}, {} of native code; ",
            Things(self.compiled_count, "method"),
            Count(self.dynamic_count),
            Nanoseconds(self.compile_times.total_ns),
            Bytes(self.code_bytes)
        )?;
        match self.precompiled_count {
            Some(n) => writeln!(out, "{} loaded precompiled\n", Count(n))?,
            None => writeln!(
                out,
                "number loaded precompiled not recorded ('--clrevents jit+compilationdiagnostic' records them)\n"
            )?,
        }
        let columns = [Column::number("METHODS"), Column::number("CODE SIZE"), Column::text("TIER")];
        let mut table = Table::new("tier", columns);
        // There are only a few tiers.
        table.fill(self.tiers.iter(), &TextOptions { rows: None, ..*options }, |it| {
            let (methods, code) = (Count(it.methods_count), Bytes(it.code_bytes));
            [methods.to_string(), code.to_string(), it.tier.to_owned()]
        });
        table.print(out, options)?;
        writeln!(out)?;
        if self.methods.is_empty() {
            return writeln!(out, "{}", options.missing(Missing::CompiledMethods));
        }
        let mut methods: Vec<_> = self.methods.iter().collect();
        if options.rows.is_some_and(|rows| rows < methods.len()) {
            // Prefer the slowest methods.
            order::sort_by_key(&mut methods, |method| std::cmp::Reverse(method.compile_ns));
        }
        let columns = [
            Column::number("TIME"),
            Column::number("JIT TIME"),
            Column::number("CODE SIZE"),
            Column::text("TIER"),
            Column::text("METHOD"),
        ];
        let mut table = Table::new("method", columns);
        table.fill(methods.into_iter(), options, |it| {
            [
                Moment(it.ts_ns).to_string(),
                known(it.compile_ns.map(Nanoseconds)),
                Bytes(it.code_bytes.into()).to_string(),
                it.tier.to_owned(),
                it.name.clone(),
            ]
        });
        table.print(out, options)
    }
}

impl Print for ThreadPoolReport {
    fn print(&self, out: &mut dyn io::Write, options: &TextOptions<'_>) -> io::Result<()> {
        let count = |n: u32| Count(n.into());
        let peak = self.workers_peak_count.map(|n| format!("peak {}", count(n)));
        let last = self.workers_last_count.map(|n| format!("final {}", count(n)));
        let workers: Vec<_> = [peak, last].into_iter().flatten().collect();
        let workers = if workers.is_empty() { "number not recorded".to_owned() } else { workers.join(", ") };
        let limits = match (self.min_workers_count, self.max_workers_count) {
            (Some(min), Some(max)) => format!("min {}, max {}", count(min), count(max)),
            _ => "min/max not recorded".to_owned(),
        };
        writeln!(
            out,
            "Worker threads: {workers} ({limits}); {} started, {} stopped.",
            Count(self.workers_started_count),
            Count(self.workers_stopped_count),
        )?;
        let starvation = Things(self.starvation_count, "time");
        match (self.enqueued_count, self.dequeued_count) {
            (Some(enqueued), Some(dequeued)) => writeln!(
                out,
                "Starvation detected {starvation}; {} queued, {} taken.\n",
                Things(enqueued, "work item"),
                Count(dequeued)
            )?,
            _ => writeln!(out, "Starvation detected {starvation}; work items not recorded.\n")?,
        }
        if self.adjustments.is_empty() {
            return writeln!(out, "{}", options.missing(Missing::ThreadPoolAdjustments));
        }
        let columns = [
            Column::number("TIME"),
            Column::number("THREADS"),
            Column::number("WORK ITEMS/S"),
            Column::text("REASON"),
        ];
        let mut table = Table::new("adjustment", columns);
        table.fill(self.adjustments.iter(), options, |it| {
            [
                Moment(it.ts_ns).to_string(),
                it.workers_count.to_string(),
                format!("{:.1}", it.throughput_per_s),
                it.reason.to_owned(),
            ]
        });
        table.print(out, options)
    }
}

impl Print for HttpReport {
    fn print(&self, out: &mut dyn io::Write, options: &TextOptions<'_>) -> io::Result<()> {
        writeln!(
            out,
            "server: {}, {} failed with an unhandled exception",
            Things(self.server_requests_count, "request"),
            Count(self.server_exceptions_count),
        )?;
        writeln!(
            out,
            "client: {}, {} without a complete response, {} with an error status",
            Things(self.client_requests_count, "request"),
            Count(self.client_failures_count),
            Count(self.client_error_statuses_count)
        )?;
        if self.overlapping_count > 0 {
            writeln!(
                out,
                "{} overlapped: durations are unknown, and so are failures and statuses unless all had the same; {}",
                Things(self.overlapping_count, "request"),
                options.missing(Missing::RequestIds)
            )?;
        }
        writeln!(out)?;
        let columns = [
            Column::text("SIDE"),
            Column::number("REQUESTS"),
            Column::number("FAILED"),
            Column::number("MEDIAN"),
            Column::number("P95"),
            Column::number("MAX"),
            Column::text("REQUEST"),
        ];
        let mut table = Table::new("endpoint", columns);
        table.fill(self.endpoints.iter(), options, |it| {
            let side = if it.side == Side::Server { "server" } else { "client" };
            let statuses = it.statuses.iter().map(|(status, n)| format!("{status}: {}", Count(*n)));
            let unknown = (it.unknown_statuses_count > 0)
                .then(|| format!("unknown: {}", Count(it.unknown_statuses_count)));
            let statuses: Vec<String> = statuses.chain(unknown).collect();
            let statuses =
                if statuses.is_empty() { String::new() } else { format!(" ({})", statuses.join(", ")) };
            let time = |ns: u64| known((it.durations.timed_count > 0).then_some(Nanoseconds(ns)));
            let method = it.method.as_ref().map_or_else(String::new, |method| format!("{method} "));
            [
                side.to_owned(),
                Count(it.requests_count).to_string(),
                known(it.failed_count.map(Count)),
                time(it.durations.p50_ns),
                time(it.durations.p95_ns),
                time(it.durations.max_ns),
                format!("{method}{}{statuses}", it.path),
            ]
        });
        table.print(out, options)
    }
}

impl Print for CountersReport {
    fn print(&self, out: &mut dyn io::Write, options: &TextOptions<'_>) -> io::Result<()> {
        writeln!(
            out,
            "{} time series; {}, limits reached {}\n",
            Count(self.series_count),
            Things(self.errors_count, "instrument error"),
            Things(self.limits_reached_count, "time")
        )?;
        let columns = [
            Column::number("POINTS"),
            Column::number("LAST"),
            Column::number("LAST DELTA"),
            Column::number("MIN"),
            Column::number("MAX"),
            Column::text("COUNTER"),
        ];
        let mut table = Table::new("counter", columns);
        table.fill(self.series.iter(), options, |series| {
            let CounterSeries { provider, name, unit, tags_text: tags, .. } = series;
            let tags = if tags.is_empty() { String::new() } else { format!(" {{{tags}}}") };
            let blank = if unit.is_empty() { "" } else { " " };
            [
                Count(series.points_count).to_string(),
                number(series.value),
                number(series.delta),
                number(series.min),
                number(series.max),
                format!(
                    "{provider}/{name}{tags}{blank}{unit}{}{}",
                    instruments(series),
                    distribution(series)
                ),
            ]
        });
        table.print(out, options)
    }
}

/// Describes a series of several instruments, with their sum: ` of 2 instruments, total 62`. Empty for other series.
fn instruments(series: &CounterSeries) -> String {
    let Some(count) = series.instruments_count else { return String::new() };
    let total = series.total.map_or_else(String::new, |total| format!(", total {}", number(Some(total))));
    format!(" of {count} instruments{total}")
}

/// Describes a histogram: `: 1,200 values, sum 60600; 0.5=51 0.95=96`. Empty for other counters.
fn distribution(series: &CounterSeries) -> String {
    if series.kind != CounterKind::Histogram {
        return String::new();
    }
    let mut text = format!(": {}, sum {}", Things(series.count.unwrap_or(0), "value"), number(series.sum));
    let quantiles = series.quantiles.iter().flatten().map(|(share, value)| format!("{share}={value}"));
    let quantiles: Vec<String> = quantiles.collect();
    if !quantiles.is_empty() {
        text = format!("{text}; {}", quantiles.join(" "));
    }
    text
}

impl Print for LogsReport {
    fn print(&self, out: &mut dyn io::Write, options: &TextOptions<'_>) -> io::Result<()> {
        let mut totals = Things(self.messages_count, "message").to_string();
        if let Some(n) = self.exceptions_count {
            totals = format!("{totals}, {} with an exception", Count(n));
        }
        if let Some(n) = self.scopes_count {
            totals = format!("{totals}, {}", Things(n, "scope"));
        }
        if self.exceptions_count.is_none() {
            totals = format!("{totals}; {}", options.missing(Missing::LogExceptions));
        }
        writeln!(out, "{totals}\n")?;
        let columns = [Column::number("MESSAGES"), Column::text("LEVEL"), Column::text("CATEGORY")];
        let mut table = Table::new("category", columns);
        // Show all rows, so that they add up to the total.
        table.fill(self.by_level.iter(), &TextOptions { rows: None, ..*options }, |it| {
            [Count(it.messages_count).to_string(), it.level.to_owned(), it.category.clone()]
        });
        table.print(out, options)?;
        writeln!(out)?;
        let columns = [Column::number("TIME"), Column::text("LEVEL"), Column::text("CATEGORY: MESSAGE")];
        let mut table = Table::new("message", columns);
        table.fill(self.messages.iter(), options, |it| {
            let message = format!("{}: {}", it.category, it.message);
            [Moment(it.ts_ns).to_string(), it.level.to_owned(), message]
        });
        table.print(out, options)
    }
}
