//! The differences between two recordings, method by method: `runtap.jvm.diff/1`, and its table.

use std::io;

use runtap_bytefrog::{Detail, Report, readable};
use runtap_jvm::recording::{Difference, MethodChange, MethodNumbers, Order};
use runtap_text::units::{Count, Things};
use runtap_text::{Clean, Column, Print, Table, TextOptions};
use serde::Serialize;

use super::super::text::time as shown_time;
use super::ended;
use super::load::{LoadedAgent, LoadedRecording, Operand};
use crate::cli::{JvmReport, JvmSort};
use crate::exit::usage;
use crate::output::Output;

#[derive(Debug, Serialize)]
struct Document {
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

impl ComparedRecording {
    fn new(
        operand: &Operand,
        difference: &Difference,
        is_timed: bool,
        of: impl Fn(&MethodChange) -> &MethodNumbers,
    ) -> Self {
        let ran = difference.methods.iter().map(&of).filter(|numbers| numbers.calls > 0);
        let sum = |sum: u64, more: u64| sum.saturating_add(more);
        Self {
            recording: operand.label(),
            methods: ran.clone().count(),
            calls: ran.clone().map(|numbers| numbers.calls).fold(0, sum),
            self_ns: is_timed.then(|| ran.map(|numbers| numbers.own).fold(0, sum)),
        }
    }
}

pub(super) fn run(
    options: &JvmReport,
    before: &Operand,
    after: &Operand,
    shown: &TextOptions<'_>,
    output: Output,
) -> anyhow::Result<u8> {
    let reports =
        |loaded: &LoadedRecording| -> Vec<Report> { loaded.agents.iter().map(LoadedAgent::report).collect() };
    let mut code = 0;
    let mut read = |operand: &Operand, agents: &[String]| -> anyhow::Result<Vec<Report>> {
        let loaded = operand.load(agents, options.slow())?;
        code = code.max(ended(&[&loaded], output));
        Ok(reports(&loaded))
    };
    let (first, second) = (read(before, &[])?, read(after, &options.agent)?);
    let is_timed = |report: &Report| matches!(report.detail(), Detail::Calls | Detail::Unsent);
    let is_timed = first.iter().chain(&second).all(is_timed);
    let sort = match options.sort {
        None if is_timed => JvmSort::Own,
        None | Some(JvmSort::Calls) => JvmSort::Calls,
        Some(sort) if is_timed => sort,
        Some(_) => {
            return Err(usage(
                "one of the recordings has counts or coverage only, without times: --sort calls",
            ));
        }
    };
    let order = Order::from(sort);
    let difference = Difference::new(&first, &second, order);
    let (methods_count, changed_count) = (difference.methods.len(), difference.changed);
    let sides = (
        ComparedRecording::new(before, &difference, is_timed, |it| &it.before),
        ComparedRecording::new(after, &difference, is_timed, |it| &it.after),
    );
    let rows = if output.json() {
        options.number.filter(|number| *number > 0).unwrap_or(usize::MAX)
    } else {
        changed_count
    };
    let methods = difference.methods.iter().take(rows).map(|method| Row {
        name: readable(&method.signature),
        signature: method.signature.clone(),
        calls: Comparison::of(method, Order::Calls),
        total_ns: is_timed.then(|| Comparison::of(method, Order::Total)),
        self_ns: is_timed.then(|| Comparison::of(method, Order::Own)),
    });
    let document = Document {
        schema: "runtap.jvm.diff/1",
        sort: match sort {
            JvmSort::Own => "self",
            JvmSort::Total => "total",
            JvmSort::Calls => "calls",
        },
        before: sides.0,
        after: sides.1,
        methods_count,
        changed_count,
        methods: methods.collect(),
        order,
    };
    if output.json() {
        output.document(&document)?;
    } else {
        output.print(&document, shown)?;
    }
    Ok(code)
}

fn signed(change: Comparison, show: impl Fn(u64) -> String) -> String {
    let sign = if change.after < change.before { "-" } else { "+" };
    format!("{sign}{}", show(change.after.abs_diff(change.before)))
}

impl Print for Document {
    fn print(&self, out: &mut dyn io::Write, options: &TextOptions<'_>) -> io::Result<()> {
        for (name, side) in [("before", &self.before), ("after", &self.after)] {
            writeln!(
                out,
                "{name:<6}  {}  {} of {}, {}",
                Clean(&side.recording),
                Things(side.calls, "call"),
                Things(side.methods as u64, "method"),
                side.self_ns.map_or_else(|| "no times".to_owned(), shown_time)
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
        let changed = |it: Comparison| signed(it, shown_time);
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
                        show(|it| shown_time(it.before)),
                        show(|it| shown_time(it.after)),
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
                        show(|it| shown_time(it.before)),
                        show(|it| shown_time(it.after)),
                        show(changed),
                        signed(*calls, count),
                    ]
                })
            }
        }
    }
}

impl Document {
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
        table.fill(self.methods.iter(), options, |row| {
            let [a, b, c, d] = numbers(row);
            [a, b, c, d, row.name.clone()]
        });
        table.print(out, options)
    }
}
