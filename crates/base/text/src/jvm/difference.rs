//! The differences between two recordings, method by method: `runtap.jvm.diff/1`, and its table.

use std::io;

use runtap_bytefrog::readable;
use runtap_jvm::recording::{Difference, MethodChange, MethodTotals, Order};
use serde::Serialize;

use super::time;
use crate::units::{Count, Things};
use crate::{Clean, Column, Print, Table, TextOptions};

/// A document of the schema `runtap.jvm.diff/1`.
#[derive(Debug, Serialize)]
pub struct DifferenceDocument {
    schema: &'static str,
    /// The number by whose change the methods are sorted.
    sort: &'static str,
    before: ComparedRecording,
    after: ComparedRecording,
    methods_count: usize,
    changed_count: usize,
    methods: Vec<Row>,
    #[serde(skip)]
    order: Order,
}

#[derive(Debug, Serialize)]
struct ComparedRecording {
    recording: String,
    methods: usize,
    calls: u64,
    /// `None` if one of the recordings has no times.
    self_ns: Option<u64>,
}

#[derive(Debug, Serialize)]
struct Row {
    signature: String,
    name: String,
    calls: Comparison,
    /// `None` if one of the recordings has no times.
    total_ns: Option<Comparison>,
    self_ns: Option<Comparison>,
}

#[derive(Debug, Clone, Copy, Serialize)]
struct Comparison {
    before: u64,
    after: u64,
    change: i64,
}

impl Comparison {
    fn of(method: &MethodChange, order: Order) -> Self {
        let change = method.change(order);
        Self {
            before: order.of(&method.before),
            after: order.of(&method.after),
            change: i64::try_from(change).unwrap_or(if change < 0 { i64::MIN } else { i64::MAX }),
        }
    }
}

impl DifferenceDocument {
    /// Creates the document with at most `limit` methods. `recordings` are the names of both recordings.
    pub fn new(difference: &Difference, recordings: [String; 2], limit: Option<usize>) -> Self {
        let Difference { order, has_times, .. } = *difference;
        let compared = |recording: String, totals: MethodTotals| ComparedRecording {
            recording,
            methods: totals.methods,
            calls: totals.calls,
            self_ns: has_times.then_some(totals.own),
        };
        let ([before, after], [totals_before, totals_after]) = (recordings, difference.totals());
        let methods = difference.methods.iter().take(limit.unwrap_or(usize::MAX)).map(|method| Row {
            name: readable(&method.signature),
            signature: method.signature.clone(),
            calls: Comparison::of(method, Order::Calls),
            total_ns: has_times.then(|| Comparison::of(method, Order::Total)),
            self_ns: has_times.then(|| Comparison::of(method, Order::Own)),
        });
        Self {
            schema: "runtap.jvm.diff/1",
            sort: order.name(),
            before: compared(before, totals_before),
            after: compared(after, totals_after),
            methods_count: difference.methods.len(),
            changed_count: difference.changed,
            methods: methods.collect(),
            order,
        }
    }
}

fn signed(change: Comparison, show: impl Fn(u64) -> String) -> String {
    let sign = if change.after < change.before { "-" } else { "+" };
    format!("{sign}{}", show(change.after.abs_diff(change.before)))
}

impl Print for DifferenceDocument {
    fn print(&self, out: &mut dyn io::Write, options: &TextOptions<'_>) -> io::Result<()> {
        for (name, side) in [("before", &self.before), ("after", &self.after)] {
            writeln!(
                out,
                "{name:<6}  {}  {} of {}, {}",
                Clean(&side.recording),
                Things(side.calls, "call"),
                Things(side.methods as u64, "method"),
                side.self_ns.map_or_else(|| "no times".to_owned(), time)
            )?;
        }
        let dim = options.dim();
        if self.changed_count == 0 {
            return writeln!(out, "\n{dim}no method changed{dim:#}");
        }
        writeln!(out)?;
        // Show the sort key in full and only the changes of the other numbers, to fit the line.
        let of_time = |row: Option<Comparison>, show: fn(Comparison) -> String| {
            row.map_or_else(|| "-".to_owned(), show)
        };
        let changed = |it: Comparison| signed(it, time);
        let count = |n| Count(n).to_string();
        match self.order {
            Order::Calls => {
                let columns = ["CALLS BEFORE", "AFTER", "CHANGE", "SELF"];
                self.table(columns, out, options, |row| {
                    let Row { calls, self_ns, .. } = row;
                    [
                        count(calls.before),
                        count(calls.after),
                        signed(*calls, count),
                        of_time(*self_ns, changed),
                    ]
                })
            }
            Order::Total => {
                let columns = ["TOTAL BEFORE", "AFTER", "CHANGE", "CALLS"];
                self.table(columns, out, options, |row| {
                    let Row { total_ns: it, calls, .. } = row;
                    let show = |of: fn(Comparison) -> String| of_time(*it, of);
                    [
                        show(|it| time(it.before)),
                        show(|it| time(it.after)),
                        show(changed),
                        signed(*calls, count),
                    ]
                })
            }
            Order::Own => {
                let columns = ["SELF BEFORE", "AFTER", "CHANGE", "CALLS"];
                self.table(columns, out, options, |row| {
                    let Row { self_ns: it, calls, .. } = row;
                    let show = |of: fn(Comparison) -> String| of_time(*it, of);
                    [
                        show(|it| time(it.before)),
                        show(|it| time(it.after)),
                        show(changed),
                        signed(*calls, count),
                    ]
                })
            }
        }
    }
}

impl DifferenceDocument {
    fn table(
        &self,
        [a, b, c, d]: [&'static str; 4],
        out: &mut dyn io::Write,
        options: &TextOptions<'_>,
        numbers: impl Fn(&Row) -> [String; 4],
    ) -> io::Result<()> {
        let number = Column::number;
        let mut table =
            Table::new("method", [number(a), number(b), number(c), number(d), Column::text("METHOD")]);
        table.fill(self.methods.iter().take(self.changed_count), options, |row| {
            let [a, b, c, d] = numbers(row);
            [a, b, c, d, row.name.clone()]
        });
        table.print(out, options)
    }
}
