//! Transcripts of connections: results of `record`, contents shown by `inspect`, and results of `replay`.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io;
use std::path::Path;

use runtap_transcript::Row;
use serde::{Serialize, Serializer};
use serde_json::Value;

use crate::document::Partial;
use crate::rows::RowPrinter;
use crate::units::{Bytes, Count, Things};
use crate::{Clean, Column, Output, Print, Table, TextOptions};

/// The document `runtap.record/1`.
#[derive(Debug, Serialize)]
pub struct RecordDocument {
    schema: &'static str,
    path: String,
    /// Number of connections.
    pub connections: u64,
    /// Number of messages and parts of streams.
    pub frames: u64,
    /// Number of bytes in these.
    pub bytes: u64,
    streams: Vec<String>,
    /// Whether the transcript is incomplete because writing failed.
    pub partial: bool,
}

impl RecordDocument {
    /// Creates the document for a transcript with these stream files.
    pub fn new(path: String, streams: Vec<String>) -> Self {
        let (connections, frames, bytes) = (0, 0, 0);
        Self { schema: "runtap.record/1", path, connections, frames, bytes, streams, partial: false }
    }

    /// Summarizes the recording in one line.
    pub fn remark(&self) -> String {
        let Self { path, connections, frames, bytes, .. } = self;
        let (connections, bytes) = (Things(*connections, "connection"), Bytes(*bytes));
        format!("{path}: {connections}, {} messages and parts of streams, {bytes}", Count(*frames))
    }
}

/// A line of a transcript, or a message in it.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct TranscriptRow {
    /// Line number.
    pub line: u64,
    /// Time in seconds since the start of the recording.
    pub t: Option<f64>,
    /// Name of the connection.
    pub conn: Option<String>,
    /// Direction.
    pub dir: Option<String>,
    /// Type of the line.
    #[serde(rename = "what")]
    pub kind: String,
    /// Command of the message.
    pub id: Option<String>,
    /// Name of the command.
    pub name: Option<String>,
    /// Number of bytes.
    pub bytes: Option<u64>,
    /// File that contains the bytes.
    pub file: Option<String>,
    /// Offset of the bytes in that file.
    pub offset: Option<u64>,
    /// Decoded fields.
    #[serde(serialize_with = "as_map")]
    pub fields: Vec<(String, Value)>,
}

impl From<Row> for TranscriptRow {
    fn from(row: Row) -> Self {
        let Row { line, t, conn, dir, side, kind, id, name, bytes, file, fields, .. } = row;
        let (file, offset) = file.unzip();
        let fields = fields.into_iter().flatten().map(|field| (field.name, field.value)).collect();
        let id = id.map(|id| format!("{id:#06x}"));
        Self { line, t, conn, dir: dir.or(side), kind, id, name, bytes, file, offset, fields }
    }
}

fn as_map<S: Serializer>(fields: &[(String, Value)], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_map(fields.iter().map(|(name, value)| (name, value)))
}

/// The members of `runtap.transcript/1` after the list.
#[derive(Debug, Default, Serialize)]
pub struct TranscriptTail {
    /// Number of connections.
    pub connections: u64,
    /// Number of messages that could not be decoded.
    pub undecoded: u64,
    /// What is missing at the end.
    pub partial: Option<Partial>,
}

/// Prints the rows of a transcript: `runtap.transcript/1`, or text.
#[derive(Debug)]
pub struct TranscriptPrinter {
    rows: RowPrinter,
    text: TranscriptText,
}

impl TranscriptPrinter {
    /// Creates the printer for a file. Names of connections should have at most `conn_width` characters.
    pub fn new(file: &Path, conn_width: usize, output: Output) -> io::Result<Self> {
        let text = TranscriptText::new(conn_width);
        let heading = text.heading(&output.options());
        Ok(Self { rows: RowPrinter::new("runtap.transcript/1", file, "rows", heading, output)?, text })
    }

    /// Prints rows.
    pub fn rows(&mut self, rows: Vec<Row>) -> io::Result<()> {
        for row in rows.into_iter().map(TranscriptRow::from) {
            if self.rows.output.json() {
                self.rows.element(&row)?;
            } else {
                self.rows.line(self.text.row(row, &self.rows.output.options()))?;
            }
        }
        Ok(())
    }

    /// Ends the output.
    pub fn finish(mut self, tail: &TranscriptTail) -> io::Result<()> {
        if !self.rows.output.json() {
            return self.rows.output.text(self.text.finish());
        }
        self.rows.finish(tail)
    }
}

/// Maximum number of streams whose parts are merged; with more, a stream may be shown in several lines.
const MAX_MERGED_STREAMS: usize = 4096;

/// Formats rows as text. Consecutive parts of a stream on a connection are merged to one line.
#[derive(Debug)]
pub struct TranscriptText {
    /// Width of the names of connections.
    conn_width: usize,
    /// By connection: the first part of a stream that has not been shown yet, and the number of parts.
    streams: BTreeMap<String, (TranscriptRow, u64)>,
}

impl TranscriptText {
    /// Creates the text of a transcript. Names of connections should have at most `conn_width` characters.
    pub fn new(conn_width: usize) -> Self {
        Self { conn_width: conn_width.max("CONN".len()), streams: BTreeMap::new() }
    }

    /// Returns the heading of the rows.
    fn heading(&self, options: &TextOptions<'_>) -> String {
        let (heading, width) = (options.heading(), self.conn_width);
        format!(
            "{heading}{:>6}  {:>11}  {:<width$}  {:<3}  {:>9}  MESSAGE{heading:#}\n",
            "LINE", "TIME", "CONN", "DIR", "SIZE"
        )
    }

    /// Returns the text of a row, preceded by that of a stream that ends before it.
    pub fn row(&mut self, row: TranscriptRow, options: &TextOptions<'_>) -> String {
        let conn = row.conn.clone().unwrap_or_default();
        if row.kind == "stream" {
            match self.streams.get_mut(&conn) {
                Some((first, parts)) => {
                    first.bytes = Some(first.bytes.unwrap_or(0).saturating_add(row.bytes.unwrap_or(0)));
                    *parts += 1;
                }
                None => {
                    self.streams.insert(conn, (row, 1));
                }
            }
            let is_full = self.streams.len() > MAX_MERGED_STREAMS;
            let first = if is_full { self.streams.pop_first() } else { None };
            return first.map(|(_, stream)| self.of_stream(&stream)).unwrap_or_default();
        }
        let mut text = self.streams.remove(&conn).map(|stream| self.of_stream(&stream)).unwrap_or_default();
        text.push_str(&self.text_of(&row, options));
        text
    }

    /// Returns the text of the remaining streams.
    pub fn finish(&mut self) -> String {
        std::mem::take(&mut self.streams).values().map(|stream| self.of_stream(stream)).collect()
    }

    fn of_stream(&self, (row, parts): &(TranscriptRow, u64)) -> String {
        let file = row.file.as_ref().map_or_else(String::new, |file| format!(" in {}", Clean(file)));
        let mut text = self.start(row);
        let _ = writeln!(text, "stream: {}{file}", Things(*parts, "part"));
        text
    }

    fn start(&self, row: &TranscriptRow) -> String {
        let time = row.t.map_or_else(String::new, |t| format!("{t:.6}"));
        let bytes = row.bytes.map_or_else(String::new, |bytes| bytes.to_string());
        let (conn, dir) = (row.conn.as_deref().unwrap_or_default(), row.dir.as_deref().unwrap_or_default());
        let (conn, dir) = (Clean(conn).to_string(), Clean(dir).to_string());
        let width = self.conn_width;
        format!("{:>6}  {time:>11}  {conn:<width$}  {dir:<3}  {bytes:>9}  ", row.line)
    }

    /// Returns a line for the row, and one for each of its fields.
    fn text_of(&self, row: &TranscriptRow, options: &TextOptions<'_>) -> String {
        let mut text = self.start(row);
        let kind = Clean(&row.kind).to_string();
        // Writing to a `String` cannot fail.
        let _ = match (&row.name, &row.id) {
            (Some(name), Some(id)) => write!(text, "{kind} {} ({})", Clean(name), Clean(id)),
            (Some(name), None) if !name.eq_ignore_ascii_case(&kind) => write!(text, "{kind} {}", Clean(name)),
            (None, Some(id)) => write!(text, "{kind} {}", Clean(id)),
            _ => write!(text, "{kind}"),
        };
        text.push('\n');
        let (dim, indent) = (options.dim(), self.conn_width + 40);
        for (name, value) in &row.fields {
            let value = match value {
                Value::String(value) => Clean(value).to_string(),
                value => Clean(&value.to_string()).to_string(),
            };
            let _ = writeln!(text, "{:>indent$}{dim}{}{dim:#} = {value}", "", Clean(name));
        }
        text
    }
}

/// A field that differs in a replay.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct DifferenceRow {
    /// Name of the field.
    pub field: String,
    /// Recorded value.
    pub recorded: Option<Value>,
    /// Value in the replay.
    pub now: Option<Value>,
    /// Whether the field identifies a process or session and therefore always differs.
    pub identity: bool,
}

/// A replayed request.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ExchangeRow {
    /// Name of the recorded connection.
    pub conn: Option<String>,
    /// Line of the transcript that contains the request.
    pub line: Option<u64>,
    /// Command of the request.
    pub id: Option<String>,
    /// Name of the command.
    pub name: Option<&'static str>,
    /// Result of the comparison.
    pub verdict: &'static str,
    /// Fields that differ.
    pub differences: Vec<DifferenceRow>,
    /// Offset of the first byte of the request that differs.
    pub offset: Option<u64>,
    /// Why the request was not sent or not answered.
    pub reason: Option<String>,
    /// Number of bytes in the answer, if counted.
    pub bytes: Option<u64>,
    /// Number of bytes in the recorded answer.
    pub recorded_bytes: u64,
}

/// The document `runtap.replay/1`.
#[derive(Debug, Serialize)]
pub struct ReplayDocument {
    schema: &'static str,
    file: String,
    /// The side that was replayed.
    part: &'static str,
    /// Whether everything was the same as recorded.
    pub same: bool,
    /// The replayed requests.
    pub exchanges: Vec<ExchangeRow>,
}

impl ReplayDocument {
    /// Creates the document for a transcript.
    pub fn new(file: String, part: &'static str, same: bool, exchanges: Vec<ExchangeRow>) -> Self {
        Self { schema: "runtap.replay/1", file, part, same, exchanges }
    }
}

impl Print for ReplayDocument {
    fn print(&self, out: &mut dyn io::Write, options: &TextOptions<'_>) -> io::Result<()> {
        let columns = [
            Column::text("CONN"),
            Column::number("LINE"),
            Column::text("REQUEST"),
            Column::text("RESULT"),
            Column::number("BYTES"),
            Column::number("RECORDED"),
            Column::text("DIFFERENCES"),
        ];
        let mut table = Table::new("request", columns);
        table.fill(self.exchanges.iter(), options, |row| {
            let name = row.name.map(str::to_owned).or_else(|| row.id.clone());
            [
                row.conn.clone().unwrap_or_default(),
                row.line.map(|line| line.to_string()).unwrap_or_default(),
                name.unwrap_or_else(|| "none".to_owned()),
                row.verdict.to_owned(),
                row.bytes.map(|bytes| bytes.to_string()).unwrap_or_default(),
                row.recorded_bytes.to_string(),
                row.reason.clone().unwrap_or_else(|| differences_text(row)),
            ]
        });
        table.print(out, options)
    }
}

/// Describes the differences of a request in one line.
fn differences_text(row: &ExchangeRow) -> String {
    let value = |value: &Option<Value>| match value {
        Some(Value::String(text)) => text.clone(),
        Some(value) => value.to_string(),
        None => "nothing".to_owned(),
    };
    let of = |it: &DifferenceRow| format!("{}: {} was {}", it.field, value(&it.now), value(&it.recorded));
    let counted = row.differences.iter().filter(|difference| !difference.identity);
    let mut parts: Vec<String> = counted.map(of).collect();
    parts.extend(row.offset.map(|offset| format!("from byte {offset} on")));
    parts.join("; ")
}
