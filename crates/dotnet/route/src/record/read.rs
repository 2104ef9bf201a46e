//! A transcript as it is shown: its lines in order, every message decoded. Those of other protocols are shown as their
//! recorder has decoded them.

use std::collections::BTreeMap;

use runtap_transcript::{Entry, Field, Frame, Located, More};
use serde_json::Value;

use super::describe::{Described, Direction, Dissector, Parts, field};

/// A line that is shown, or one of the messages in it.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Row {
    /// The number of the line.
    pub line: u64,
    /// When, in seconds since the recording began.
    pub t: Option<f64>,
    /// On which connection.
    pub conn: Option<String>,
    /// From whom to whom.
    pub dir: Option<String>,
    /// What it is: the kind of the line, for a frame that of the message, `part` where more is needed to tell.
    pub what: String,
    /// The command of a message.
    pub id: Option<i64>,
    /// Its name.
    pub name: Option<String>,
    /// How many bytes a frame has.
    pub bytes: Option<u64>,
    /// The file with these bytes, and where they are in it.
    pub file: Option<(String, u64)>,
    /// What it says.
    pub fields: Parts,
}

impl Row {
    fn of(line: u64, t: f64, what: &str) -> Self {
        Self { line, t: Some(t), what: what.to_owned(), ..Self::default() }
    }

    /// Whether nobody could tell what the bytes are.
    pub fn is_undecoded(&self) -> bool {
        self.what == "other" || self.what == "part"
    }
}

/// Decodes a transcript line by line.
#[derive(Debug, Default)]
pub struct Inspector {
    /// The transcript is of another protocol.
    is_foreign: bool,
    conns: BTreeMap<String, Dissector>,
    shows_values: bool,
}

impl Inspector {
    /// One that shows the values of environment variables, or hides them.
    pub fn new(shows_values: bool) -> Self {
        Self { shows_values, ..Self::default() }
    }

    /// What a line says: mostly one row.
    pub fn rows(&mut self, Located { line, entry, .. }: Located) -> Vec<Row> {
        match entry {
            Entry::Header(header) => {
                // The oldest transcripts do not say it, and are of the test pipe.
                self.is_foreign = header.more.get("protocol").is_none_or(|it| it != "diagnostic-ipc");
                let mut row = Row::of(line, header.t, "header");
                row.fields.extend(header.role.map(|role| field("role", role)));
                row.fields.extend(header.cmd.map(|words| field("cmd", words)));
                row.fields.extend(header.more);
                if !self.shows_values {
                    hide_environment(&mut row.fields);
                }
                vec![row]
            }
            Entry::Open(open) => {
                let row = Row { conn: Some(open.conn), ..Row::of(line, open.t, "open") };
                vec![Row { fields: open.more.into_iter().collect(), ..row }]
            }
            Entry::Frame(frame) => self.frame(line, frame),
            Entry::Close(close) => {
                let mut rows = Vec::new();
                let direction = close.side.as_deref().and_then(Direction::parse);
                if let (Some(direction), Some(conn)) = (direction, self.conns.get_mut(&close.conn)) {
                    let left = conn.end(direction.side());
                    let template = Row { conn: Some(close.conn.clone()), ..Row::of(line, close.t, "") };
                    rows.extend(left.into_iter().map(|(described, piece)| {
                        self.row(&template, direction.name(), described, piece.bytes().len())
                    }));
                }
                if close.side.is_none() {
                    self.conns.remove(&close.conn);
                }
                let mut row = Row { conn: Some(close.conn), ..Row::of(line, close.t, "close") };
                row.dir = close.side;
                row.fields.extend(close.error.map(|error| field("error", error)));
                row.fields.extend(close.more);
                rows.push(row);
                rows
            }
            Entry::Exit(exit) => {
                let mut row = Row::of(line, exit.t, "exit");
                row.fields.extend(exit.code.map(|code| field("code", code)));
                row.fields.extend(exit.more);
                vec![row]
            }
            Entry::Other { kind, mut more } => {
                let conn = more.get("conn").and_then(Value::as_str).map(str::to_owned);
                let t = more.remove("t").and_then(|t| t.as_f64());
                vec![Row { line, t, conn, what: kind, fields: more.into_iter().collect(), ..Row::default() }]
            }
            _ => Vec::new(),
        }
    }

    fn frame(&mut self, line: u64, frame: Frame) -> Vec<Row> {
        let template = Row { conn: Some(frame.conn.clone()), ..Row::of(line, frame.t, "frame") };
        let direction = Direction::parse(&frame.dir).filter(|_| !self.is_foreign);
        let (Some(direction), Some(bytes)) = (direction, &frame.hex) else {
            return vec![as_recorded(template, frame)];
        };
        let conn = self.conns.entry(frame.conn.clone()).or_default();
        let pieces = conn.handle(direction.side(), bytes);
        if pieces.is_empty() {
            let row = Row { dir: Some(frame.dir), what: "part".to_owned(), ..template };
            return vec![Row { bytes: Some(bytes.len() as u64), ..row }];
        }
        let row = |(described, piece): (Described, runtap_diag_proto::tap::Piece)| {
            let mut row = self.row(&template, direction.name(), described, piece.bytes().len());
            row.fields.extend(frame.more.get("descriptors").map(|it| field("descriptors", it.clone())));
            row
        };
        pieces.into_iter().map(row).collect()
    }

    fn row(&self, template: &Row, direction: &str, described: Described, bytes: usize) -> Row {
        let described = if self.shows_values { described } else { described.masked() };
        Row {
            dir: Some(direction.to_owned()),
            what: described.what.to_owned(),
            id: described.id.map(i64::from),
            name: described.name.map(str::to_owned),
            bytes: Some(bytes as u64),
            fields: described.fields,
            ..template.clone()
        }
    }
}

/// A frame whose bytes are elsewhere, or of another protocol.
fn as_recorded(template: Row, mut frame: Frame) -> Row {
    let mut text = |key: &str| frame.more.remove(key).and_then(|value| value.as_str().map(str::to_owned));
    let (what, file) = (text("what"), text("file"));
    let mut number = |key: &str| frame.more.remove(key).and_then(|value| value.as_u64());
    let (offset, bytes) = (number("offset"), number("bytes"));
    let of_field = |Field { name, value, .. }| (name, value);
    Row {
        dir: Some(frame.dir),
        what: what.unwrap_or_else(|| "frame".to_owned()),
        id: frame.id,
        name: frame.name,
        bytes: frame.hex.map(|hex| hex.len() as u64).or(bytes),
        file: file.zip(offset),
        fields: frame.fields.into_iter().flatten().map(of_field).chain(rest(frame.more)).collect(),
        ..template
    }
}

fn rest(more: More) -> impl Iterator<Item = (String, Value)> {
    more.into_iter()
}

/// A header may have the variables that a command was started with.
fn hide_environment(fields: &mut Parts) {
    for (name, value) in fields {
        if let (true, Some(members)) = (name == "env", value.as_object_mut()) {
            members.values_mut().for_each(|value| *value = "***".into());
        }
    }
}
