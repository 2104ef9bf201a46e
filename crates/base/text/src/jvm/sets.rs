//! Set operations on the methods of recordings: `runtap.jvm.sets/1`, and its table.

use std::io;

use runtap_bytefrog::readable;
use runtap_jvm::recording::{Operation, SetRow};
use runtap_model::order;
use serde::Serialize;

use crate::units::{Count, Things};
use crate::{Clean, Column, Print, Table, TextOptions};

/// A document of the schema `runtap.jvm.sets/1`.
#[derive(Debug, Serialize)]
pub struct SetsDocument {
    schema: &'static str,
    operands: Vec<OperandRow>,
    methods_count: usize,
    methods: Vec<MethodRow>,
}

/// A recording whose methods are combined with those of others.
#[derive(Debug, Serialize)]
pub struct OperandRow {
    /// `None` for the first operand.
    operation: Option<&'static str>,
    recording: String,
    /// The number of methods that ran in the recording.
    methods_count: usize,
    #[serde(skip)]
    sign: &'static str,
}

impl OperandRow {
    /// Creates the row of a recording in which this number of methods ran. `operation` is `None` for the first recording.
    pub fn new(operation: Option<Operation>, recording: String, methods_count: usize) -> Self {
        let (name, sign) = (operation.map(Operation::name), operation.map_or("", Operation::sign));
        Self { operation: name, recording, methods_count, sign }
    }
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

impl SetsDocument {
    /// Creates the document with at most `limit` methods.
    pub fn new(operands: Vec<OperandRow>, methods: Vec<SetRow>, limit: Option<usize>) -> Self {
        let methods_count = methods.len();
        let methods = methods.into_iter().take(limit.unwrap_or(usize::MAX)).map(Into::into).collect();
        Self { schema: "runtap.jvm.sets/1", operands, methods_count, methods }
    }
}

impl Print for SetsDocument {
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
        order::sort_by_key(&mut methods, |method| {
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
