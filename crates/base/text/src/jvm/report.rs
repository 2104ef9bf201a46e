//! Reports on recordings: `runtap.jvm.KIND/1`, and tables that are readable at 80 columns.

use std::io;

use runtap_bytefrog::{Detail, fitted};
use runtap_jvm::report::{
    AgentRows, Losses, MethodName, MethodRow, NodeRow, PartRow, Parts, ReportKind, Rows,
};
use serde::Serialize;

use super::{MIN_NAME_WIDTH, fitted_name, missing_calls_hint, time, took};
use crate::units::{Count, Moment, Percent, Things};
use crate::{Clean, Column, Print, Table, TextOptions};

/// The maximum indentation of a tree; deeper rows show their depth as a number.
const MAX_INDENT: usize = 16;

/// A document of the schema `runtap.jvm.KIND/1`.
#[derive(Debug, Serialize)]
pub struct RowsDocument {
    schema: String,
    recording: String,
    agents: Vec<AgentRows>,
}

impl RowsDocument {
    /// Creates the document for a recording, with its name as the user specified it.
    pub fn new(kind: ReportKind, recording: String, agents: Vec<AgentRows>) -> Self {
        Self { schema: kind.schema(), recording, agents }
    }
}

impl Print for RowsDocument {
    fn print(&self, out: &mut dyn io::Write, options: &TextOptions<'_>) -> io::Result<()> {
        for (index, agent) in self.agents.iter().enumerate() {
            if index > 0 {
                writeln!(out)?;
            }
            let bold = options.heading();
            writeln!(out, "{bold}{}{bold:#}", Clean(&agent.title))?;
            print_rows(&agent.rows, agent.detail, out, options)?;
            let parts = agent.parts.as_ref().map(Parts::rows).unwrap_or_default();
            if !parts.is_empty() {
                print_parts(parts, out, options)?;
            }
        }
        Ok(())
    }
}

/// Prints the parts that were marked during recording.
fn print_parts(parts: &[PartRow], out: &mut dyn io::Write, options: &TextOptions<'_>) -> io::Result<()> {
    let bold = options.heading();
    writeln!(out, "\n{bold}Parts that were marked, by the collector's clock{bold:#}")?;
    let mut table =
        Table::new("part", [Column::number("FROM"), Column::number("TOOK"), Column::text("PART")]);
    table.fill(parts.iter(), options, |row| {
        let from = Moment(i64::try_from(row.start_ns).unwrap_or(i64::MAX)).to_string();
        let took = row.end_ns.map_or_else(|| "open".to_owned(), |end| time(end.saturating_sub(row.start_ns)));
        [from, took, row.name.clone()]
    });
    table.print(out, options)
}

/// Prints methods, each with its share of the total time.
fn print_methods(
    rows: &[MethodRow],
    none: &str,
    out: &mut dyn io::Write,
    options: &TextOptions<'_>,
) -> io::Result<()> {
    let number = Column::number;
    let whole = rows.iter().filter_map(MethodRow::own).fold(0, u64::saturating_add);
    let columns = [
        number("SELF"),
        number("%"),
        number("TOTAL"),
        number("CALLS"),
        number("EXC EXITS"),
        Column::text("METHOD"),
    ];
    let mut table = Table::new("method", columns);
    table.fill(rows.iter(), options, |row| {
        let is_more = row.without_end + row.untimed_entries > 0;
        let counted =
            |calls: Option<u64>| calls.map_or_else(|| "-".to_owned(), |calls| Count(calls).to_string());
        [
            took(row.own(), is_more),
            row.own().map_or_else(|| "-".to_owned(), |part| Percent { part, whole }.to_string()),
            took(row.total(), is_more),
            counted(row.entries),
            counted(row.exception_exits),
            fitted_name(&row.name, options, 52),
        ]
    });
    print_or_explain(rows.len(), none, &table, out, options)
}

fn print_rows(
    rows: &Rows,
    detail: Detail,
    out: &mut dyn io::Write,
    options: &TextOptions<'_>,
) -> io::Result<()> {
    // If the agent sent no calls, an empty table says nothing about the program.
    let none = |of_calls| missing_calls_hint(detail).unwrap_or(of_calls);
    let number = Column::number;
    match rows {
        Rows::Methods(rows) => print_methods(rows, none("no method was called"), out, options),
        Rows::Tree(rows) => {
            let columns = [number("TOTAL"), number("SELF"), number("CALLS"), Column::text("METHOD")];
            let mut table = Table::new("row", columns);
            table.fill(rows.iter(), options, |row| {
                let depth = row.depth.min(MAX_INDENT);
                let deeper = if row.depth > MAX_INDENT { format!("[{}] ", row.depth) } else { String::new() };
                [
                    took(row.total(), row.cut + row.open > 0),
                    took(row.own(), row.cut + row.open > 0),
                    Count(row.calls).to_string(),
                    format!(
                        "{}{deeper}{}{}",
                        "  ".repeat(depth),
                        fitted_name(&row.name.text(), options, 36 + 2 * depth),
                        remarks(row)
                    ),
                ]
            });
            print_or_explain(rows.len(), none("no method was called"), &table, out, options)
        }
        Rows::Exceptions(rows) => {
            let columns =
                [number("TIMES"), Column::text("WHAT"), Column::text("EXCEPTION"), Column::text("METHOD")];
            let mut table = Table::new("place", columns);
            table.fill(rows.iter(), options, |row| {
                let simple = row.exception.text().rsplit('.').next().unwrap_or_default();
                let shown = if options.width.is_some() { simple } else { row.exception.text() };
                let line = row.line.map_or_else(String::new, |line| format!(":{line}"));
                let other_columns = 20 + shown.chars().count() + line.len();
                [
                    Count(row.count).to_string(),
                    row.fate.to_owned(),
                    shown.to_owned(),
                    format!("{}{line}", fitted_name(&row.name.text(), options, other_columns)),
                ]
            });
            print_or_explain(rows.len(), none("no exception was thrown"), &table, out, options)
        }
        Rows::Segments(rows) => {
            let columns =
                [number("FROM"), number("TOOK"), number("CALLS"), number("METHODS"), Column::text("MARKER")];
            let mut table = Table::new("segment", columns);
            table.fill(rows.iter(), options, |row| {
                let took = row.end_ns.map(|end| u64::try_from(end.saturating_sub(row.start_ns)).unwrap_or(0));
                let truncated = if row.truncated { " (methods had no room)" } else { "" };
                [
                    Moment(row.start_ns).to_string(),
                    took.map_or_else(|| "open".to_owned(), time),
                    Count(row.calls).to_string(),
                    Count(row.methods.len() as u64).to_string(),
                    format!("{}={}{truncated}", row.key, row.value),
                ]
            });
            print_or_explain(rows.len(), "the program has set no markers", &table, out, options)
        }
        Rows::Slow(rows) => {
            let columns = [
                number("TOOK"),
                number("AT"),
                number("THREAD"),
                number("DEPTH"),
                Column::text("METHOD, CALLED BY"),
            ];
            let mut table = Table::new("call", columns);
            table.fill(rows.iter(), options, |row| {
                let mut callers = row.path.iter().rev();
                let method = callers.next().map_or_else(String::new, MethodName::text);
                let by: Vec<String> =
                    callers.take(3).map(|caller| fitted(&caller.text(), MIN_NAME_WIDTH)).collect();
                let by = if by.is_empty() { String::new() } else { format!(" < {}", by.join(" < ")) };
                [
                    time(row.took_ns),
                    Moment(row.start_ns).to_string(),
                    row.thread.to_string(),
                    row.depth.to_string(),
                    format!("{}{by}", fitted_name(&method, options, 43)),
                ]
            });
            print_or_explain(
                rows.len(),
                none("no call took that long: --slow sets the time"),
                &table,
                out,
                options,
            )
        }
        Rows::Threads(rows) => {
            let columns = [number("THREAD"), number("TOTAL"), number("CALLS"), Column::text("NAME")];
            let mut table = Table::new("thread", columns);
            table.fill(rows.iter(), options, |row| {
                let ended = if row.ended { " (ended)" } else { "" };
                [
                    row.id.to_string(),
                    time(row.total_ns),
                    Count(row.entries).to_string(),
                    format!("{}{ended}", row.name.as_deref().unwrap_or("-")),
                ]
            });
            print_or_explain(rows.len(), none("no thread has called anything"), &table, out, options)
        }
        Rows::Classes(rows) => {
            let columns = [Column::text("WHAT"), number("TIMES"), Column::text("CLASS")];
            let mut table = Table::new("class", columns);
            table.fill(rows.iter(), options, |row| {
                [row.outcome.to_owned(), Count(row.count).to_string(), row.class.clone()]
            });
            print_or_explain(rows.len(), "no class was loaded", &table, out, options)
        }
        Rows::Losses(losses) => losses.print(out, options),
    }
}

/// Prints a table, or the reason why it is empty.
fn print_or_explain<const N: usize>(
    rows: usize,
    none: &str,
    table: &Table<N>,
    out: &mut dyn io::Write,
    options: &TextOptions<'_>,
) -> io::Result<()> {
    if rows == 0 {
        let dim = options.dim();
        return writeln!(out, "{dim}{none}{dim:#}");
    }
    table.print(out, options)
}

/// Returns remarks about calls that the numbers of a row do not show.
fn remarks(row: &NodeRow) -> String {
    let all = [(row.exception_exits, "ended by exceptions"), (row.cut, "cut"), (row.open, "open")];
    let parts: Vec<String> =
        all.iter().filter(|(n, _)| *n > 0).map(|(n, what)| format!("{} {what}", Count(*n))).collect();
    if parts.is_empty() { String::new() } else { format!("  ({})", parts.join(", ")) }
}

impl Print for Losses {
    fn print(&self, out: &mut dyn io::Write, options: &TextOptions<'_>) -> io::Result<()> {
        let lines = [
            (self.missing, "event", "never came"),
            (self.repeated, "event", "came with a number that was used, or given up"),
            (self.dropped, "event", "were dropped by the agent"),
            (self.drops_of_unknown_size, "drop", "of unknown size"),
            (self.untimed_entries, "call", "only counted: times, callers and threads are without them"),
            (self.data_breaks, "data break", "in which nothing was recorded"),
            (self.ends_without_beginning, "call", "ended that had not begun"),
            (
                self.cut_calls,
                "call",
                "whose end was not seen: the time is known up to the loss, or not at all",
            ),
            (self.open_calls, "call", "had not ended"),
            (self.untold, "call", "not in the call tree: it was full"),
            (self.without_room, "event", "had no room"),
            (self.too_deep, "call", "deeper than stacks are kept"),
        ];
        let mut is_whole = true;
        // Not a loss: the user suspended recording.
        if self.suspensions > 0 {
            let events = Things(self.suspended, "event");
            writeln!(out, "{events} not recorded while recording was suspended")?;
        }
        for (count, thing, what) in lines {
            if count > 0 {
                is_whole = false;
                writeln!(out, "{} {what}", Things(count, thing))?;
            }
        }
        for damage in &self.damage {
            is_whole = false;
            let (stream, reason) = (Clean(&damage.stream), Clean(&damage.reason));
            writeln!(out, "{stream} can't be read beyond offset {}: {reason}", damage.offset)?;
        }
        if !self.unfinished.is_empty() {
            is_whole = false;
            writeln!(out, "the recording ends before these connections: {}", self.unfinished.join(", "))?;
        }
        for error in &self.errors {
            is_whole = false;
            writeln!(out, "the agent has reported: {}", Clean(error))?;
        }
        if is_whole && self.rules.is_empty() {
            return writeln!(out, "nothing is missing");
        }
        if self.rules.is_empty() {
            return Ok(());
        }
        writeln!(out)?;
        let columns = [Column::text("RULE"), Column::number("TIMES"), Column::text("WHAT")];
        let mut table = Table::new("rule", columns);
        table.fill(self.rules.iter(), options, |row| {
            let first = row.first.first().map_or_else(String::new, |first| format!(": {first}"));
            [row.id.to_owned(), Count(row.count).to_string(), format!("{}{first}", row.summary)]
        });
        table.print(out, options)
    }
}
