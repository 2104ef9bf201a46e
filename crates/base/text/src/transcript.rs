//! Recorded conversations: what `record` has written, what `inspect` shows of it, what `replay` has found.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io;

use serde::{Serialize, Serializer};
use serde_json::Value;

use crate::document::Partial;
use crate::units::{Bytes, Count, Things};
use crate::{Clean, Column, Print, Table, TextOptions};

/// `runtap.record/1`
#[derive(Debug, Serialize)]
pub struct RecordDocument {
    schema: &'static str,
    path: String,
    /// How many connections were made.
    pub connections: u64,
    /// How many messages and parts of streams passed.
    pub frames: u64,
    /// How many bytes they had.
    pub bytes: u64,
    streams: Vec<String>,
    /// Whether the transcript could not be written to its end.
    pub partial: bool,
}

impl RecordDocument {
    /// Of a transcript with these files for streams.
    pub fn new(path: String, streams: Vec<String>) -> Self {
        let (connections, frames, bytes) = (0, 0, 0);
        Self { schema: "runtap.record/1", path, connections, frames, bytes, streams, partial: false }
    }

    /// What was recorded, in one line.
    pub fn remark(&self) -> String {
        let Self { path, connections, frames, bytes, .. } = self;
        let (connections, bytes) = (Things(*connections, "connection"), Bytes(*bytes));
        format!("{path}: {connections}, {} messages and parts of streams, {bytes}", Count(*frames))
    }
}

/// A line of a transcript, or one of the messages in it.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct TranscriptRow {
    /// The number of the line.
    pub line: u64,
    /// When, in seconds since the recording began.
    pub t: Option<f64>,
    /// On which connection.
    pub conn: Option<String>,
    /// From whom to whom.
    pub dir: Option<String>,
    /// What it is.
    pub what: String,
    /// The command of a message.
    pub id: Option<String>,
    /// Its name.
    pub name: Option<String>,
    /// How many bytes it has.
    pub bytes: Option<u64>,
    /// The file with these bytes.
    pub file: Option<String>,
    /// Where they are in it.
    pub offset: Option<u64>,
    /// What it says.
    #[serde(serialize_with = "as_map")]
    pub fields: Vec<(String, Value)>,
}

fn as_map<S: Serializer>(fields: &[(String, Value)], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_map(fields.iter().map(|(name, value)| (name, value)))
}

/// The first members of `runtap.transcript/1`; its list `rows` follows, and then [`TranscriptTail`].
#[derive(Debug, Serialize)]
pub struct TranscriptHead {
    schema: &'static str,
    file: String,
}

impl TranscriptHead {
    /// Those for a file.
    pub fn new(file: String) -> Self {
        Self { schema: "runtap.transcript/1", file }
    }
}

/// The members of `runtap.transcript/1` that are known at the end of the file.
#[derive(Debug, Default, Serialize)]
pub struct TranscriptTail {
    /// How many connections there are.
    pub connections: u64,
    /// How many messages could not be decoded.
    pub undecoded: u64,
    /// What is missing at the end.
    pub partial: Option<Partial>,
}

/// The titles of a transcript's rows.
pub fn transcript_heading(options: &TextOptions<'_>) -> String {
    let heading = options.heading();
    format!(
        "{heading}{:>6}  {:>11}  {:<6}  {:<3}  {:>9}  MESSAGE{heading:#}\n",
        "LINE", "TIME", "CONN", "DIR", "SIZE"
    )
}

/// Streams of which parts are held back; with more, one of them is shown as two.
const MOST_STREAMS: usize = 4096;

/// Makes text of rows. The parts of a stream that follow each other on a connection are one line of it.
#[derive(Debug, Default)]
pub struct TranscriptText {
    /// The parts of streams that were not shown yet, and how many they are: by connection.
    streams: BTreeMap<String, (TranscriptRow, u64)>,
}

impl TranscriptText {
    /// The text for a row, and for the stream that has ended with it.
    pub fn row(&mut self, row: TranscriptRow, options: &TextOptions<'_>) -> String {
        let conn = row.conn.clone().unwrap_or_default();
        if row.what == "stream" {
            match self.streams.get_mut(&conn) {
                Some((first, parts)) => {
                    first.bytes = Some(first.bytes.unwrap_or(0).saturating_add(row.bytes.unwrap_or(0)));
                    *parts += 1;
                }
                None => {
                    self.streams.insert(conn, (row, 1));
                }
            }
            let is_full = self.streams.len() > MOST_STREAMS;
            let first = if is_full { self.streams.pop_first() } else { None };
            return first.map(|(_, stream)| of_stream(&stream)).unwrap_or_default();
        }
        let mut text = self.streams.remove(&conn).map(|stream| of_stream(&stream)).unwrap_or_default();
        text.push_str(&text_of(&row, options));
        text
    }

    /// The text for streams that are there to the end.
    pub fn finish(&mut self) -> String {
        std::mem::take(&mut self.streams).values().map(of_stream).collect()
    }
}

fn of_stream((row, parts): &(TranscriptRow, u64)) -> String {
    let file = row.file.as_ref().map_or_else(String::new, |file| format!(" in {}", Clean(file)));
    let mut text = start(row);
    let _ = writeln!(text, "stream: {}{file}", Things(*parts, "part"));
    text
}

fn start(row: &TranscriptRow) -> String {
    let time = row.t.map_or_else(String::new, |t| format!("{t:.6}"));
    let bytes = row.bytes.map_or_else(String::new, |bytes| bytes.to_string());
    let (conn, dir) = (row.conn.as_deref().unwrap_or_default(), row.dir.as_deref().unwrap_or_default());
    let (conn, dir) = (Clean(conn).to_string(), Clean(dir).to_string());
    format!("{:>6}  {time:>11}  {conn:<6}  {dir:<3}  {bytes:>9}  ", row.line)
}

/// A line for the row, and one for each of its fields.
fn text_of(row: &TranscriptRow, options: &TextOptions<'_>) -> String {
    let mut text = start(row);
    let what = Clean(&row.what).to_string();
    // Writing to a String can't fail.
    let _ = match (&row.name, &row.id) {
        (Some(name), Some(id)) => write!(text, "{what} {} ({})", Clean(name), Clean(id)),
        (Some(name), None) if !name.eq_ignore_ascii_case(&what) => write!(text, "{what} {}", Clean(name)),
        (None, Some(id)) => write!(text, "{what} {}", Clean(id)),
        _ => write!(text, "{what}"),
    };
    text.push('\n');
    let dim = options.dim();
    for (name, value) in &row.fields {
        let value = match value {
            Value::String(value) => Clean(value).to_string(),
            value => Clean(&value.to_string()).to_string(),
        };
        let _ = writeln!(text, "{:>46}{dim}{}{dim:#} = {value}", "", Clean(name));
    }
    text
}

/// A field that is different in a replay.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct DifferenceRow {
    /// Its name.
    pub field: String,
    /// What was recorded.
    pub recorded: Option<Value>,
    /// What there is now.
    pub now: Option<Value>,
    /// It says who somebody is, and always differs.
    pub identity: bool,
}

/// A request that was played.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ExchangeRow {
    /// The recorded connection.
    pub conn: Option<String>,
    /// The line of the transcript with the request.
    pub line: Option<u64>,
    /// The command.
    pub id: Option<String>,
    /// Its name.
    pub name: Option<&'static str>,
    /// What has become of it.
    pub verdict: &'static str,
    /// What is different.
    pub differences: Vec<DifferenceRow>,
    /// The first byte of the request that is different.
    pub offset: Option<u64>,
    /// Why it was not sent or answered.
    pub reason: Option<String>,
    /// Bytes of the answer, where they were counted.
    pub bytes: Option<u64>,
    /// Bytes that it had when it was recorded.
    pub recorded_bytes: u64,
}

/// `runtap.replay/1`
#[derive(Debug, Serialize)]
pub struct ReplayDocument {
    schema: &'static str,
    file: String,
    /// Whose part was played.
    part: &'static str,
    /// Whether everything was as it was recorded.
    pub same: bool,
    /// What was played.
    pub exchanges: Vec<ExchangeRow>,
}

impl ReplayDocument {
    /// Of a transcript.
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
                row.reason.clone().unwrap_or_else(|| told(row)),
            ]
        });
        table.print(out, options)
    }
}

/// The differences of a request in one line.
fn told(row: &ExchangeRow) -> String {
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
