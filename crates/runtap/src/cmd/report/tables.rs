//! The tables of answers that are made of events.

use runtap_clr::report::{
    CounterKind, CounterSeries, CountersReport, ExceptionsReport, GcReport, HttpReport, JitReport,
    LogsReport, Side, ThreadPoolReport,
};

use super::Answer;
use super::table::{Table, at, dash, ns, number};
use crate::output::Clean;
use crate::units::{Bytes, Count, Things};

impl Answer for GcReport {
    fn text(&self) -> String {
        let [gen0, gen1, gen2] = self.collections_by_generation;
        let others = match self.other_suspensions {
            none if none.timed_count == 0 => String::new(),
            of => format!(
                "\n{}, {} in all, threads stood still for the collector without a collection",
                Things(of.timed_count, "time"),
                ns(of.total_ns)
            ),
        };
        let mut table = Table::new(format_args!(
            "{}: {} of generation 2, {} of 1, {} of 0; {} asked for by the program\n\
             {}, {} in all, the longest {}, 95 % up to {}{others}",
            Things(self.collections_count, "collection"),
            Count(gen2),
            Count(gen1.saturating_sub(gen2)),
            Count(gen0.saturating_sub(gen1)),
            Count(self.induced_count),
            Things(self.pauses.timed_count, "pause"),
            ns(self.pauses.total_ns),
            ns(self.pauses.max_ns),
            ns(self.pauses.p95_ns)
        ));
        table.heading(format_args!(
            "{:>6} {:>3}  {:<16} {:<10} {:>14} {:>10} {:>10} {:>12} {:>12}",
            "NUMBER", "GEN", "REASON", "KIND", "AT", "PAUSE", "TIME", "HEAP AFTER", "PROMOTED"
        ));
        for it in &self.collections {
            let heap = |of: fn(&runtap_clr::report::HeapSizes) -> u64| {
                it.heap_after.as_ref().map_or_else(dash, |heap| Bytes(of(heap)).to_string())
            };
            table.row(format_args!(
                "{:>6} {:>3}  {:<16} {:<10} {:>14} {:>10} {:>10} {:>12} {:>12}",
                it.number,
                it.generation,
                it.reason,
                it.kind,
                at(it.start_ns),
                ns(it.pause_ns),
                it.duration_ns.map_or_else(dash, ns),
                heap(|heap| heap.total_bytes),
                heap(|heap| heap.promoted_bytes)
            ));
        }
        table.text()
    }
}

impl Answer for ExceptionsReport {
    fn text(&self) -> String {
        let mut table = Table::new(format_args!(
            "{} thrown, {} thrown once more",
            Things(self.thrown_count, "exception"),
            Count(self.rethrown_count)
        ));
        table.heading(format_args!("{:>8} {:>8}  TYPE: FIRST MESSAGE", "THROWN", "AGAIN"));
        for it in &self.types {
            table.row(format_args!(
                "{:>8} {:>8}  {}: {}",
                Count(it.thrown_count),
                Count(it.rethrown_count),
                Clean(&it.name),
                Clean(&it.first_message)
            ));
        }
        table.heading(format_args!("\n{:>14} {:>8}  EXCEPTION", "AT", "THREAD"));
        for it in &self.exceptions {
            let again = if it.rethrown { " (again)" } else { "" };
            let (name, message) = (Clean(&it.name), Clean(&it.message));
            table.row(format_args!("{:>14} {:>8}  {name}: {message}{again}", at(it.ts_ns), it.thread));
        }
        table.text()
    }
}

impl Answer for JitReport {
    fn text(&self) -> String {
        let mut table = Table::new(format_args!(
            "{} compiled ({} made at run time), {} of machine code, {} in the compiler; {} came precompiled",
            Things(self.compiled_count, "method"),
            Count(self.dynamic_count),
            Bytes(self.code_bytes),
            ns(self.compile_times.total_ns),
            Count(self.precompiled_count)
        ));
        table.heading(format_args!("{:<20} {:>8} {:>12}", "TIER", "METHODS", "CODE"));
        for tier in &self.tiers {
            let (methods, code) = (Count(tier.methods_count), Bytes(tier.code_bytes).to_string());
            table.row(format_args!("{:<20} {methods:>8} {code:>12}", tier.tier));
        }
        table
            .heading(format_args!("\n{:>14} {:>10} {:>10}  {:<18} METHOD", "AT", "COMPILER", "CODE", "TIER"));
        for it in &self.methods {
            table.row(format_args!(
                "{:>14} {:>10} {:>10}  {:<18} {}",
                at(it.ts_ns),
                it.compile_ns.map_or_else(dash, ns),
                Bytes(it.code_bytes.into()).to_string(),
                it.tier,
                Clean(&it.name)
            ));
        }
        table.text()
    }
}

impl Answer for ThreadPoolReport {
    fn text(&self) -> String {
        let known = |n: Option<u32>| n.map_or_else(dash, |n| n.to_string());
        let mut table = Table::new(format_args!(
            "worker threads: {} at most, {} at the end (allowed {} to {}); {} started, {} stopped\n\
             starved {}; {} queued, {} taken",
            known(self.workers_peak_count),
            known(self.workers_last_count),
            known(self.min_workers_count),
            known(self.max_workers_count),
            Count(self.workers_started_count),
            Count(self.workers_stopped_count),
            Things(self.starvation_count, "time"),
            Things(self.enqueued_count, "work item"),
            Count(self.dequeued_count)
        ));
        table.heading(format_args!("{:>14} {:>8}  {:>14}  REASON", "AT", "WORKERS", "WORK PER S"));
        for it in &self.adjustments {
            table.row(format_args!(
                "{:>14} {:>8}  {:>14.1}  {}",
                at(it.ts_ns),
                it.workers_count,
                it.throughput_per_s,
                it.reason
            ));
        }
        table.text()
    }
}

impl Answer for HttpReport {
    fn text(&self) -> String {
        let mut table = Table::new(format_args!(
            "{} answered, {} with an exception that nobody handled; {} sent, {} without an answer, {} \
             answered with an error",
            Things(self.server_requests_count, "request"),
            Count(self.server_exceptions_count),
            Count(self.client_requests_count),
            Count(self.client_failures_count),
            Count(self.client_error_statuses_count)
        ));
        table.heading(format_args!(
            "{:<6} {:>8} {:>7} {:>10} {:>10} {:>10}  REQUEST",
            "SIDE", "COUNT", "FAILED", "MEDIAN", "95 %", "LONGEST"
        ));
        for it in &self.endpoints {
            let side = if it.side == Side::Server { "server" } else { "client" };
            let statuses = it.statuses.iter().map(|(status, n)| format!("{status}: {}", Count(*n)));
            let statuses: Vec<String> = statuses.collect();
            let statuses =
                if statuses.is_empty() { String::new() } else { format!(" ({})", statuses.join(", ")) };
            let time = |time: u64| if it.durations.timed_count == 0 { dash() } else { ns(time) };
            table.row(format_args!(
                "{side:<6} {:>8} {:>7} {:>10} {:>10} {:>10}  {}{}{}{statuses}",
                Count(it.requests_count),
                Count(it.failed_count),
                time(it.durations.p50_ns),
                time(it.durations.p95_ns),
                time(it.durations.max_ns),
                Clean(it.method.as_deref().unwrap_or_default()),
                if it.method.is_some() { " " } else { "" },
                Clean(&it.path)
            ));
        }
        table.text()
    }
}

impl Answer for CountersReport {
    fn text(&self) -> String {
        let mut table = Table::new(format_args!(
            "{} series; {} of instruments, limits reached {}",
            Count(self.series_count),
            Things(self.errors_count, "failure"),
            Things(self.limits_reached_count, "time")
        ));
        table.heading(format_args!(
            "{:>6} {:>14} {:>14} {:>14} {:>14}  COUNTER",
            "POINTS", "LAST", "LAST DELTA", "MIN", "MAX"
        ));
        for series in &self.series {
            let CounterSeries { provider, name, unit, tags_text: tags, .. } = series;
            let open = if tags.is_empty() { "" } else { " {" };
            let close = if tags.is_empty() { "" } else { "}" };
            let blank = if unit.is_empty() { "" } else { " " };
            table.row(format_args!(
                "{:>6} {:>14} {:>14} {:>14} {:>14}  {}/{}{open}{}{close}{blank}{}{}",
                Count(series.points_count),
                number(series.value),
                number(series.delta),
                number(series.min),
                number(series.max),
                Clean(provider),
                Clean(name),
                Clean(tags),
                Clean(unit),
                Clean(&distribution(series))
            ));
        }
        table.text()
    }
}

/// `: 1,200 values, sum 60600; 0.5=51 0.95=96` of a histogram.
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

impl Answer for LogsReport {
    fn text(&self) -> String {
        let mut table = Table::new(format_args!(
            "{}{}{}",
            Things(self.messages_count, "message"),
            self.exceptions_count.map_or_else(String::new, |n| format!(", {} with an exception", Count(n))),
            self.scopes_count.map_or_else(
                || "; exceptions and scopes come with keywords 2 or 8".to_owned(),
                |n| format!(", {}", Things(n, "scope"))
            )
        ));
        table.heading(format_args!("{:>8}  {:<12} CATEGORY", "MESSAGES", "LEVEL"));
        for it in &self.by_level {
            let messages = Count(it.messages_count);
            table.row(format_args!("{messages:>8}  {:<12} {}", it.level, Clean(&it.category)));
        }
        table.heading(format_args!("\n{:>14}  {:<12} MESSAGE", "AT", "LEVEL"));
        for it in &self.messages {
            let (category, message) = (Clean(&it.category), Clean(&it.message));
            table.row(format_args!("{:>14}  {:<12} {category}: {message}", at(it.ts_ns), it.level));
        }
        table.text()
    }
}
