//! Set operations on the methods of recordings: `runtap.jvm.sets/1`, and its table.

use std::io;

use runtap_bytefrog::readable;
use runtap_jvm::recording::{CalledMethods, Operation, SetRow, combine};
use runtap_text::units::{Count, Things};
use runtap_text::{Clean, Column, Print, Table, TextOptions};
use serde::Serialize;

use super::load::Operand;
use crate::cli::JvmReport;
use crate::output::Output;

#[derive(Debug, Serialize)]
struct Document {
    schema: &'static str,
    operands: Vec<OperandRow>,
    methods_count: usize,
    methods: Vec<MethodRow>,
}

#[derive(Debug, Serialize)]
struct OperandRow {
    /// `None` for the first operand.
    operation: Option<&'static str>,
    recording: String,
    /// The number of methods that ran in the recording.
    methods_count: usize,
    #[serde(skip)]
    sign: &'static str,
}

#[derive(Debug, Serialize)]
struct MethodRow {
    signature: String,
    name: String,
    /// The calls in each operand; `None` if the method did not run in it.
    calls: Vec<Option<u64>>,
    #[serde(skip)]
    total: u64,
}

impl From<SetRow> for MethodRow {
    fn from(row: SetRow) -> Self {
        Self {
            name: readable(&row.signature),
            total: row.total(),
            signature: row.signature,
            calls: row.calls,
        }
    }
}

pub(super) fn run(
    options: &JvmReport,
    first: &Operand,
    shown: &TextOptions<'_>,
    output: Output,
) -> anyhow::Result<u8> {
    let sets = &options.sets;
    // Unions come before intersections and differences, whatever the order on the command line.
    let others = [
        (Operation::Or, "or", &sets.or),
        (Operation::And, "and", &sets.and),
        (Operation::Minus, "minus", &sets.minus),
    ];
    let mut operands: Vec<(Option<(Operation, &'static str)>, Operand)> = Vec::new();
    for (operation, name, given) in others {
        for text in given {
            operands.push((Some((operation, name)), Operand::parse(text)?));
        }
    }
    let called = |operand: &Operand, agents: &[String]| -> anyhow::Result<(CalledMethods, u8)> {
        let mut called = CalledMethods::default();
        let code = operand.each(agents, options.slow(), output, |agent| {
            called.add(&agent.report());
        })?;
        Ok((called, code))
    };
    let (base, mut code) = called(first, &options.agent)?;
    let row = |operation: Option<(Operation, &'static str)>, operand: &Operand, called: &CalledMethods| {
        OperandRow {
            operation: operation.map(|(_, name)| name),
            recording: operand.label(),
            methods_count: called.len(),
            sign: operation.map_or("", |(operation, _)| operation.sign()),
        }
    };
    let mut rows = vec![row(None, first, &base)];
    let mut all = Vec::new();
    for (operation, operand) in &operands {
        // `--agent` selects agents of the first operand only; agents of the others may have other names.
        let (called, told) = called(operand, &[])?;
        code = code.max(told);
        rows.push(row(*operation, operand, &called));
        all.extend(operation.map(|(operation, _)| (operation, called)));
    }
    let mut methods: Vec<MethodRow> = combine(&base, &all).into_iter().map(Into::into).collect();
    let methods_count = methods.len();
    if output.json() {
        methods.truncate(options.number.filter(|number| *number > 0).unwrap_or(usize::MAX));
    }
    let document = Document { schema: "runtap.jvm.sets/1", operands: rows, methods_count, methods };
    if output.json() {
        output.document(&document)?;
    } else {
        output.print(&document, shown)?;
    }
    Ok(code)
}

impl Print for Document {
    fn print(&self, out: &mut dyn io::Write, options: &TextOptions<'_>) -> io::Result<()> {
        for operand in &self.operands {
            let sign = if operand.sign.is_empty() { " " } else { operand.sign };
            let ran = Things(operand.methods_count as u64, "method");
            writeln!(out, "{sign} {}: {ran} ran", Clean(&operand.recording))?;
        }
        writeln!(out, "= {}\n", Things(self.methods_count as u64, "method"))?;
        if self.methods.is_empty() {
            return Ok(());
        }
        // Methods of the first operand come first, sorted by their calls.
        let mut methods: Vec<&MethodRow> = self.methods.iter().collect();
        methods.sort_by_key(|method| {
            let first = method.calls.first().copied().flatten();
            std::cmp::Reverse((first, method.total))
        });
        let columns = [Column::number("CALLS"), Column::number("IN OTHERS"), Column::text("METHOD")];
        let mut table = Table::new("method", columns);
        table.fill(methods.into_iter(), options, |method| {
            let first = method.calls.first().copied().flatten();
            let others = method.total - first.unwrap_or(0);
            let ran = |ran: bool, calls: u64| if ran { Count(calls).to_string() } else { "-".to_owned() };
            let in_others = method.calls.iter().skip(1).any(Option::is_some);
            [ran(first.is_some(), first.unwrap_or(0)), ran(in_others, others), method.name.clone()]
        });
        table.print(out, options)
    }
}
