//! A recording as it is shown: its lines in order, every frame decoded.

use runtap_mtp_proto::render::Rendering;
use runtap_mtp_proto::{Frame as Wire, Limits, Message, is_old_layout};
use runtap_transcript::{Entry, Field, Frame, Located};
use serde_json::Value;

use crate::direction::{Direction, listed, mode_of, pipe_of, what_of};

/// A line that is shown.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Row {
    /// The number of the line.
    pub line: u64,
    /// When, in seconds since the recording began.
    pub t: Option<f64>,
    /// On which connection.
    pub conn: Option<String>,
    /// From whom to whom, as it was recorded.
    pub dir: Option<String>,
    /// What it is: the kind of the line; for bytes that are no frame `part` or `bytes`.
    pub what: String,
    /// Which frame it is, from 1 on, over all connections.
    pub frame: Option<u64>,
    /// The id of a message.
    pub id: Option<i32>,
    /// Its name.
    pub name: Option<String>,
    /// How many bytes there are, the length word included.
    pub bytes: Option<u64>,
    /// What tells most, in one line.
    pub telling: String,
    /// What is wrong with the bytes.
    pub error: Option<String>,
    /// All fields with names, ids and offsets, a line each.
    pub lines: Vec<String>,
    /// The same as values; `None` where there are too many, or none.
    pub fields: Option<Vec<Field>>,
}

impl Row {
    fn of(line: u64, t: f64, what: &str) -> Self {
        Self { line, t: Some(t), what: what.to_owned(), ..Self::default() }
    }
}

/// Decodes a recording line by line.
#[derive(Debug, Default)]
pub struct Inspector {
    frames: u64,
    connections: u64,
    undecoded: u64,
}

impl Inspector {
    /// One that has seen nothing.
    pub fn new() -> Self {
        Self::default()
    }

    /// Frames so far.
    pub fn frames(&self) -> u64 {
        self.frames
    }

    /// Connections so far.
    pub fn connections(&self) -> u64 {
        self.connections
    }

    /// Frames so far that could not be decoded, and bytes that are in none.
    pub fn undecoded(&self) -> u64 {
        self.undecoded
    }

    /// What a line says.
    pub fn row(&mut self, Located { line, entry, .. }: &Located) -> Row {
        let line = *line;
        match entry {
            Entry::Header(header) => {
                let words = header.cmd.clone().unwrap_or_default();
                let mode = mode_of(words.iter().map(String::as_str));
                let role = header.role.as_deref().unwrap_or("recording");
                // The environment may be there too: nobody has asked for what is secret in it.
                let telling = format!("{role}, {mode:?}: {}", words.join(" "));
                Row { telling, ..Row::of(line, header.t, "header") }
            }
            Entry::Open(open) => {
                self.connections += 1;
                let telling = format!("{:?} pipe", pipe_of(open)).to_lowercase();
                Row { conn: Some(open.conn.clone()), telling, ..Row::of(line, open.t, "open") }
            }
            Entry::Frame(frame) => self.frame(line, frame),
            Entry::Close(close) => {
                let leftover = close.more.get("leftover").and_then(Value::as_u64).filter(|bytes| *bytes > 0);
                let mut parts = Vec::new();
                parts.extend(close.side.as_deref().and_then(Direction::parse).map(|side| match side {
                    Direction::FromHost => "by the application".to_owned(),
                    Direction::FromServer => "by the server".to_owned(),
                }));
                parts.extend(leftover.map(|bytes| format!("{bytes} bytes of a frame that was cut")));
                let row = Row { telling: parts.join(", "), ..Row::of(line, close.t, "close") };
                Row { conn: Some(close.conn.clone()), error: close.error.clone(), ..row }
            }
            Entry::Exit(exit) => {
                let telling = match exit.code {
                    Some(code) if code < 0 => format!("signal {}", code.unsigned_abs()),
                    Some(code) => format!("exit code {code}"),
                    None => "no exit code".to_owned(),
                };
                Row { telling, ..Row::of(line, exit.t, "exit") }
            }
            Entry::Other { kind, more } => {
                let t = more.get("t").and_then(Value::as_f64);
                Row { line, t, what: kind.clone(), ..Row::default() }
            }
            _ => Row { line, ..Row::default() },
        }
    }

    fn frame(&mut self, line: u64, frame: &Frame) -> Row {
        let what = what_of(frame);
        let row = Row {
            conn: Some(frame.conn.clone()),
            dir: Some(frame.dir.clone()),
            bytes: frame.hex.as_ref().map(|hex| hex.len() as u64),
            ..Row::of(line, frame.t, what)
        };
        let bytes = frame.hex.as_deref().unwrap_or_default();
        if what != "frame" {
            self.undecoded += 1;
            return Row { telling: "in no frame".to_owned(), ..row };
        }
        self.frames += 1;
        let row = Row { frame: Some(self.frames), ..row };
        let (wire, size) = match Wire::parse(bytes, Limits::default()) {
            Ok(parsed) => parsed,
            Err(error) => {
                self.undecoded += 1;
                return Row { error: Some(error.to_string()), name: frame.name.clone(), ..row };
            }
        };
        let direction = Direction::parse(&frame.dir).unwrap_or(Direction::FromHost);
        let rendering = Rendering::new(&wire, Limits::default());
        let (said, mut error) = match Message::decode(&wire, Limits::default()) {
            Ok(message) => (crate::telling::telling(&message, direction), None),
            Err(error) if is_old_layout(&wire) => {
                (format!("as Microsoft.Testing.Platform 1.6 and older write it: {error}"), None)
            }
            Err(error) => (String::new(), Some(error.to_string())),
        };
        if size < bytes.len() {
            let rest = format!("{} bytes follow the frame", bytes.len() - size);
            error = Some(error.map_or_else(|| rest.clone(), |error| format!("{error}; {rest}")));
        }
        self.undecoded += u64::from(error.is_some());
        Row {
            id: Some(wire.id.0),
            name: Some(wire.id.to_string()),
            telling: said,
            error,
            lines: rendering.to_string().lines().map(str::to_owned).collect(),
            fields: listed(&rendering),
            ..row
        }
    }
}
