//! Messages as named fields, to display.
//!
//! The names are those of the specification, and the order is that of the wire.

use std::fmt;

use crate::f1::BatchKind;
use crate::{Exit, Message, Stamp};

/// The value of a field.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Value {
    /// A number.
    Number(u64),
    /// A number with its meaning, such as a mode.
    Coded(u64, &'static str),
    /// A text. Invalid parts are U+FFFD.
    Text(String),
    /// The length of binary data.
    Bytes(usize),
    /// The rows of a table.
    Rows(Vec<Vec<Field>>),
}

/// A field of a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Field {
    /// The name, as in the specification.
    pub name: &'static str,
    /// The value.
    pub value: Value,
}

impl fmt::Display for Value {
    /// Formats the value on one line; a table as the number of its rows.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(number) => number.fmt(f),
            Self::Coded(number, meaning) => write!(f, "{number} ({meaning})"),
            Self::Text(text) => write!(f, "{text:?}"),
            Self::Bytes(count) => write!(f, "{count} bytes"),
            Self::Rows(rows) => write!(f, "{} rows", rows.len()),
        }
    }
}

impl fmt::Display for Field {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.name, self.value)
    }
}

fn number(name: &'static str, value: impl Into<u64>) -> Field {
    Field { name, value: Value::Number(value.into()) }
}

fn text(name: &'static str, value: impl fmt::Display) -> Field {
    Field { name, value: Value::Text(value.to_string()) }
}

/// Returns the fields of a message without its ID.
pub fn fields(message: &Message<'_>) -> Vec<Field> {
    let stamp = |at: &Stamp| {
        vec![number("timestamp", at.time), number("sequence", at.sequence), number("thread id", at.thread)]
    };
    let event = |at: &Stamp, method: u32, more: &[Field]| {
        let mut fields = stamp(at);
        fields.push(number("method id", method));
        fields.extend_from_slice(more);
        fields
    };
    match *message {
        Message::Command(_) | Message::DataHelloReply => Vec::new(),
        Message::Hello { version } => vec![number("protocol version", version)],
        Message::ProjectHello { version, project } => {
            vec![number("protocol version", version), number("project id", project)]
        }
        Message::Configuration { payload } => {
            vec![Field { name: "configuration", value: Value::Bytes(payload.len()) }]
        }
        Message::Heartbeat { mode, queue } => {
            let value = match mode.mode() {
                Some(known) => Value::Coded(mode.0.into(), mode_name(known)),
                None => Value::Number(mode.0.into()),
            };
            vec![Field { name: "mode of operation", value }, number("send buffer size", queue)]
        }
        Message::DataBreak { sequence } => vec![number("sequence", sequence)],
        Message::MapThreadName { thread, time, name } => {
            vec![number("thread id", thread), number("timestamp", time), text("thread name", name)]
        }
        Message::MapMethod { method, signature } => {
            vec![number("method id", method), text("signature", signature)]
        }
        Message::MapException { exception, name } => {
            vec![number("exception id", exception), text("exception name", name)]
        }
        Message::MapLocation(place) => vec![
            number("location id", place.location),
            number("method id", place.method),
            number("start line", place.start_line),
            number("end line", place.end_line),
            number("start character", place.start_char),
            number("end character", place.end_char),
        ],
        Message::LocationCount { method, count } => vec![number("method id", method), number("count", count)],
        Message::Entry { at, method } => event(&at, method, &[]),
        Message::Exit { at, method, exit } => event(
            &at,
            method,
            &[match exit {
                Exit::Line(line) => number("line number", line),
                Exit::Thrown(flag) => number("exception thrown", flag),
            }],
        ),
        Message::Exception { at, method, exception, line } => {
            event(&at, method, &[number("exception id", exception), number("line number", line)])
        }
        Message::Bubble { at, method, exception } => event(&at, method, &[number("exception id", exception)]),
        Message::Visit { at, method, location } => event(&at, method, &[number("location id", location)]),
        Message::Marker { time, sequence, thread, key, value } => {
            let mut fields = vec![number("timestamp", time), number("sequence", sequence)];
            fields.extend(thread.map(|thread| number("thread id", thread)));
            fields.extend([text("key", key), text("value", value)]);
            fields
        }
        Message::DataHello { run } => vec![number("run id", run)],
        Message::Class { name, .. } => vec![text("class name", name)],
        Message::Error { text: why } => vec![text("error message", why)],
        Message::Batch(batch) => {
            let rows = batch.events().map(|event| {
                let kind = match event.kind {
                    BatchKind::Entry => Value::Coded(0, "entry"),
                    BatchKind::Exit => Value::Coded(1, "exit"),
                    BatchKind::Reserved(raw) => Value::Number(raw.into()),
                };
                let kind = Field { name: "kind", value: kind };
                vec![kind, number("method id", event.method), number("delta", event.delta)]
            });
            let rows = Value::Rows(rows.collect());
            let at = Stamp { time: batch.base, sequence: batch.sequence, thread: batch.thread };
            let mut fields = stamp(&at);
            fields.push(Field { name: "events", value: rows });
            fields
        }
        Message::ThreadEnd { thread, time } => vec![number("thread id", thread), number("timestamp", time)],
        Message::Drop(drop) => {
            let reason = match drop.reason.name() {
                Some(name) => Value::Coded(drop.reason.0.into(), name),
                None => Value::Number(drop.reason.0.into()),
            };
            let mut fields = stamp(&Stamp { time: drop.time, sequence: drop.sequence, thread: drop.thread });
            fields.extend([number("count", drop.count), Field { name: "reason", value: reason }]);
            fields
        }
        Message::Counts(counts) => {
            let rows = counts.counts().map(|row| {
                vec![
                    number("method id", row.method),
                    number("calls", row.calls),
                    number("thrown", row.thrown),
                    number("nanoseconds", row.nanoseconds),
                ]
            });
            let rows = Value::Rows(rows.collect());
            let flags = u64::from(counts.last) | u64::from(counts.reset) << 1;
            vec![
                number("snapshot", counts.snapshot),
                number("timestamp", counts.time),
                number("flags", flags),
                Field { name: "counts", value: rows },
            ]
        }
        Message::Coverage(hits) => {
            let rows = hits.hits().map(|hit| {
                let place = number("location id", hit.location.unwrap_or(u32::MAX));
                vec![number("method id", hit.method), place]
            });
            let rows = Value::Rows(rows.collect());
            vec![number("timestamp", hits.time), Field { name: "hits", value: rows }]
        }
        Message::Process(process) => vec![
            number("process id", process.pid),
            number("wall clock", process.wall),
            number("resolution", process.resolution),
            text("JVM version", process.jvm),
            text("main class", process.main),
        ],
        Message::Snapshot { reset } => vec![number("flags", u64::from(reset))],
    }
}

fn mode_name(mode: crate::Mode) -> &'static str {
    match mode {
        crate::Mode::Initializing => "initializing",
        crate::Mode::Tracing => "tracing",
        crate::Mode::Paused => "paused",
        crate::Mode::Suspended => "suspended",
        crate::Mode::ShuttingDown => "shutting down",
    }
}
