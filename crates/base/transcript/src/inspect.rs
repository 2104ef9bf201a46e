//! Conversion of a transcript for display: its lines in order, with all messages decoded.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::protocol::{Decoded, Fields, Protocol};
use crate::{Close, Entry, Exit, Field, Frame, Header, Located, Open};

/// A row for display: a line of a transcript, or one of its messages.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Row {
    /// The number of the line, from 1.
    pub line: u64,
    /// The time in seconds since the start of the recording.
    pub t: Option<f64>,
    /// The name of the connection.
    pub conn: Option<String>,
    /// The direction of a message, as it was recorded.
    pub dir: Option<String>,
    /// The direction that a `close` line ends; `None` if it ends the connection.
    pub side: Option<String>,
    /// The kind of the line; for a message, [`Decoded::kind`].
    pub kind: String,
    /// The number of a message that its protocol calls a frame, from 1, over all connections.
    pub frame: Option<u64>,
    /// The number of a message in its protocol.
    pub id: Option<i64>,
    /// The name of a message in its protocol.
    pub name: Option<String>,
    /// The number of bytes.
    pub bytes: Option<u64>,
    /// The file that has these bytes, and their offset in it.
    pub file: Option<(String, u64)>,
    /// The decoded parts; `None` if there are too many to list, or none.
    pub fields: Option<Vec<Field>>,
    /// The most important content, in one line.
    pub summary: String,
    /// All content, one part per line.
    pub details: Vec<String>,
    /// The recorded error, or why the bytes could not be decoded.
    pub error: Option<String>,
    /// Whether some of the bytes could not be decoded.
    pub is_undecoded: bool,
}

impl Row {
    fn new(line: u64, t: f64, kind: &str) -> Self {
        Self { line, t: Some(t), kind: kind.to_owned(), ..Self::default() }
    }

    fn with(self, decoded: Decoded) -> Self {
        let Decoded { kind, id, name, bytes, fields, summary, details, error, is_undecoded } = decoded;
        Self { kind, id, name, bytes, fields, summary, details, error, is_undecoded, ..self }
    }
}

/// Decodes a transcript line by line. Transcripts of other protocols are shown as their recorders decoded them.
#[derive(Debug)]
pub struct Inspector<P: Protocol> {
    protocol: P,
    is_foreign: bool,
    connections: BTreeMap<String, P::Connection>,
    opened: u64,
    frames: u64,
    undecoded: u64,
}

impl<P: Protocol> Inspector<P> {
    /// Returns an inspector for a transcript.
    pub fn new(protocol: P) -> Self {
        Self { protocol, is_foreign: false, connections: BTreeMap::new(), opened: 0, frames: 0, undecoded: 0 }
    }

    /// Returns the number of frames so far.
    pub fn frames(&self) -> u64 {
        self.frames
    }

    /// Returns the number of connections so far.
    pub fn connections(&self) -> u64 {
        self.opened
    }

    /// Returns the number of rows so far whose bytes could not be decoded.
    pub fn undecoded(&self) -> u64 {
        self.undecoded
    }

    /// Decodes a line. Returns one row, except for lines with several messages.
    pub fn rows(&mut self, Located { line, entry, .. }: Located) -> Vec<Row> {
        let rows = match entry {
            Entry::Header(header) => vec![self.header(line, header)],
            Entry::Open(open) => {
                self.opened += 1;
                vec![opened::<P>(line, open)]
            }
            Entry::Frame(frame) => self.frame(line, frame),
            Entry::Close(close) => self.close(line, close),
            Entry::Exit(exit) => vec![exited(line, exit)],
            Entry::Other { kind, mut more } => {
                let conn = more.get("conn").and_then(Value::as_str).map(str::to_owned);
                let t = more.remove("t").and_then(|t| t.as_f64());
                vec![Row { line, t, conn, kind, fields: Field::numbered(more), ..Row::default() }]
            }
        };
        self.undecoded += rows.iter().filter(|row| row.is_undecoded).count() as u64;
        rows
    }

    fn header(&mut self, line: u64, header: Header) -> Row {
        self.is_foreign = !P::is_of(&header);
        let summary = P::summarize_header(&header);
        let mut fields = Fields::new();
        fields.extend(header.role.map(|role| ("role".to_owned(), role.into())));
        fields.extend(header.cmd.map(|words| ("cmd".to_owned(), words.into())));
        fields.extend(header.more);
        self.protocol.mask_header(&mut fields);
        Row { fields: Field::numbered(fields), summary, ..Row::new(line, header.t, "header") }
    }

    fn frame(&mut self, line: u64, frame: Frame) -> Vec<Row> {
        let template = Row { conn: Some(frame.conn.clone()), ..Row::new(line, frame.t, "frame") };
        let direction = P::direction(&frame.dir).filter(|_| !self.is_foreign && frame.hex.is_some());
        let Some(direction) = direction else { return vec![self.numbered(as_recorded(template, frame))] };
        let template = Row { dir: Some(frame.dir.clone()), ..template };
        let connection = self.connections.entry(frame.conn.clone()).or_default();
        let messages = self.protocol.decode(connection, direction, &frame);
        let rows = messages.into_iter().map(|decoded| template.clone().with(decoded));
        rows.map(|row| self.numbered(row)).collect()
    }

    fn numbered(&mut self, row: Row) -> Row {
        let is_frame = row.kind == "frame";
        self.frames += u64::from(is_frame);
        Row { frame: is_frame.then_some(self.frames), ..row }
    }

    fn close(&mut self, line: u64, close: Close) -> Vec<Row> {
        let mut rows = Vec::new();
        let direction = close.side.as_deref().and_then(P::direction);
        if let (Some(direction), Some(connection)) = (direction, self.connections.get_mut(&close.conn)) {
            let template = Row {
                conn: Some(close.conn.clone()),
                dir: close.side.clone(),
                ..Row::new(line, close.t, "frame")
            };
            let left = self.protocol.end(connection, direction);
            rows.extend(left.into_iter().map(|decoded| template.clone().with(decoded)));
        }
        if close.side.is_none() {
            self.connections.remove(&close.conn);
        }
        let summary = P::summarize_close(&close);
        let error = close.error.clone().map(|error| ("error".to_owned(), error.into()));
        rows.push(Row {
            conn: Some(close.conn),
            side: close.side,
            fields: Field::numbered(error.into_iter().chain(close.more)),
            error: close.error,
            summary,
            ..Row::new(line, close.t, "close")
        });
        rows
    }
}

fn opened<P: Protocol>(line: u64, open: Open) -> Row {
    let summary = P::summarize_open(&open);
    let row = Row { conn: Some(open.conn), summary, ..Row::new(line, open.t, "open") };
    Row { fields: Field::numbered(open.more), ..row }
}

fn exited(line: u64, exit: Exit) -> Row {
    let summary = match exit.code {
        Some(code) if code < 0 => format!("signal {}", code.unsigned_abs()),
        Some(code) => format!("exit code {code}"),
        None => "no exit code".to_owned(),
    };
    let code = exit.code.map(|code| ("code".to_owned(), code.into()));
    let fields = Field::numbered(code.into_iter().chain(exit.more));
    Row { fields, summary, ..Row::new(line, exit.t, "exit") }
}

/// Returns the row of a frame that is not decoded, because its bytes are in another file or of another protocol.
fn as_recorded(template: Row, mut frame: Frame) -> Row {
    let mut text = |key: &str| frame.more.remove(key).and_then(|value| value.as_str().map(str::to_owned));
    let (kind, file) = (text("what"), text("file"));
    let mut number = |key: &str| frame.more.remove(key).and_then(|value| value.as_u64());
    let (offset, bytes) = (number("offset"), number("bytes"));
    let recorded = frame.fields.into_iter().flatten().map(|Field { name, value, .. }| (name, value));
    let kind = kind.unwrap_or_else(|| "frame".to_owned());
    Row {
        dir: Some(frame.dir),
        is_undecoded: kind == "other" || kind == "part",
        kind,
        id: frame.id,
        name: frame.name,
        bytes: frame.hex.map(|hex| hex.len() as u64).or(bytes),
        file: file.zip(offset),
        fields: Field::numbered(recorded.chain(frame.more)),
        ..template
    }
}
