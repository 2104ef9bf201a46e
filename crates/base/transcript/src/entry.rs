//! The lines of a transcript as values. docs/transcripts.md describes each key.
//!
//! Known keys are typed and written first; all other keys are kept in `more`. The meaning of directions, names and fields is
//! left to the protocol.

use std::time::Duration;

use serde::ser::{Serialize, SerializeMap, Serializer};
use serde_json::{Map, Value};

use crate::error::Problem;
use crate::hex;
use crate::keys::Keys;

/// Additional keys and their values.
pub type More = Map<String, Value>;

/// A line of a transcript.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Entry {
    /// The header, which is the first line.
    Header(Header),
    /// A connection was opened.
    Open(Open),
    /// A message, or a part of a stream.
    Frame(Frame),
    /// A connection or one direction of it was closed.
    Close(Close),
    /// The recording and its command have ended.
    Exit(Exit),
    /// A line of an unknown kind.
    Other {
        /// The kind.
        kind: String,
        /// All other keys.
        more: More,
    },
}

/// The header of a transcript.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Header {
    /// The time in seconds since the start of the recording.
    pub t: f64,
    /// The role of the recorder: between the two sides, or one of them.
    pub role: Option<String>,
    /// The command line that was started.
    pub cmd: Option<Vec<String>>,
    /// All other keys.
    pub more: More,
}

/// The start of a connection.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Open {
    /// The time in seconds since the start of the recording.
    pub t: f64,
    /// The name of the connection in the following lines.
    pub conn: String,
    /// All other keys.
    pub more: More,
}

/// A message, or a part of a stream.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Frame {
    /// The time in seconds since the start of the recording.
    pub t: f64,
    /// The name of the connection.
    pub conn: String,
    /// The direction.
    pub dir: String,
    /// The number of the message type in its protocol.
    pub id: Option<i64>,
    /// The name of the message type in its protocol.
    pub name: Option<String>,
    /// The bytes; `None` if they are stored elsewhere.
    pub hex: Option<Vec<u8>>,
    /// The decoded fields, if any.
    pub fields: Option<Vec<Field>>,
    /// All other keys.
    pub more: More,
}

/// A decoded part of a message: `[id, name, value]`.
#[derive(Debug, Clone, PartialEq)]
pub struct Field {
    /// The number of the field in the message.
    pub id: i64,
    /// The name of the field.
    pub name: String,
    /// The value of the field.
    pub value: Value,
}

/// The end of a connection or of one direction.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Close {
    /// The time in seconds since the start of the recording.
    pub t: f64,
    /// The name of the connection.
    pub conn: String,
    /// The side that closed the connection.
    pub side: Option<String>,
    /// The error that closed the connection.
    pub error: Option<String>,
    /// All other keys.
    pub more: More,
}

/// The end of a recording.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Exit {
    /// The time in seconds since the start of the recording.
    pub t: f64,
    /// The exit code of the command; negative for a signal.
    pub code: Option<i64>,
    /// All other keys.
    pub more: More,
}

impl Entry {
    /// Returns the kind as written in a transcript.
    pub fn kind(&self) -> &str {
        match self {
            Self::Header(_) => "header",
            Self::Open(_) => "open",
            Self::Frame(_) => "frame",
            Self::Close(_) => "close",
            Self::Exit(_) => "exit",
            Self::Other { kind, .. } => kind,
        }
    }

    /// Parses a line.
    pub(crate) fn parse(line: &[u8]) -> Result<Self, Problem> {
        // Remove the line number, because the parser sees a single line.
        let reason = |error: serde_json::Error| {
            error.to_string().replace(" at line 1 column 0", "").replace(" at line 1 column", " at column")
        };
        let keys: Map<String, Value> =
            serde_json::from_slice(line).map_err(|error| Problem::Json { reason: reason(error) })?;
        let mut keys = Keys(keys);
        let kind = keys.required_text("kind")?;
        let k = &mut keys;
        Ok(match kind.as_str() {
            "header" => Self::Header(Header {
                t: k.time()?,
                role: k.text("role")?,
                cmd: k.list("cmd", "a list of strings", |word| word.as_str().map(str::to_owned))?,
                more: keys.0,
            }),
            "open" => Self::Open(Open { t: k.time()?, conn: k.required_text("conn")?, more: keys.0 }),
            "frame" => Self::Frame(Frame {
                t: k.time()?,
                conn: k.required_text("conn")?,
                dir: k.required_text("dir")?,
                id: k.integer("id")?,
                name: k.text("name")?,
                hex: k.bytes("hex")?,
                fields: k.list("fields", "a list of [number, name, value]", Field::of)?,
                more: keys.0,
            }),
            "close" => Self::Close(Close {
                t: k.time()?,
                conn: k.required_text("conn")?,
                side: k.text("side")?,
                error: k.text("error")?,
                more: keys.0,
            }),
            "exit" => Self::Exit(Exit { t: k.time()?, code: k.integer("code")?, more: keys.0 }),
            _ => Self::Other { kind, more: keys.0 },
        })
    }

    /// Returns the entry as a line, including the line feed.
    pub fn to_line(&self) -> Vec<u8> {
        // Serialization cannot fail: keys are strings, and values are JSON or of these types.
        let mut line = serde_json::to_vec(self).unwrap_or_default();
        line.push(b'\n');
        line
    }
}

impl Field {
    /// Numbers names and values by their order. `None` for an empty list.
    pub fn numbered(fields: impl IntoIterator<Item = (String, Value)>) -> Option<Vec<Self>> {
        let fields: Vec<_> =
            fields.into_iter().zip(0..).map(|((name, value), id)| Self { id, name, value }).collect();
        (!fields.is_empty()).then_some(fields)
    }

    fn of(value: &Value) -> Option<Self> {
        let [id, name, value] = value.as_array()?.as_slice() else { return None };
        Some(Self { id: id.as_i64()?, name: name.as_str()?.to_owned(), value: value.clone() })
    }
}

impl Serialize for Field {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        (self.id, &self.name, &self.value).serialize(serializer)
    }
}

/// Writes an optional value.
fn put<M: SerializeMap>(map: &mut M, key: &str, value: Option<&impl Serialize>) -> Result<(), M::Error> {
    value.map_or(Ok(()), |value| map.serialize_entry(key, value))
}

impl Serialize for Entry {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("kind", self.kind())?;
        let more = match self {
            Self::Header(header) => {
                map.serialize_entry("t", &header.t)?;
                put(&mut map, "role", header.role.as_ref())?;
                put(&mut map, "cmd", header.cmd.as_ref())?;
                &header.more
            }
            Self::Open(open) => {
                map.serialize_entry("t", &open.t)?;
                map.serialize_entry("conn", &open.conn)?;
                &open.more
            }
            Self::Frame(frame) => {
                map.serialize_entry("t", &frame.t)?;
                map.serialize_entry("conn", &frame.conn)?;
                map.serialize_entry("dir", &frame.dir)?;
                put(&mut map, "id", frame.id.as_ref())?;
                put(&mut map, "name", frame.name.as_ref())?;
                put(&mut map, "hex", frame.hex.as_deref().map(hex::encode).as_ref())?;
                put(&mut map, "fields", frame.fields.as_ref())?;
                &frame.more
            }
            Self::Close(close) => {
                map.serialize_entry("t", &close.t)?;
                map.serialize_entry("conn", &close.conn)?;
                put(&mut map, "side", close.side.as_ref())?;
                put(&mut map, "error", close.error.as_ref())?;
                &close.more
            }
            Self::Exit(exit) => {
                map.serialize_entry("t", &exit.t)?;
                put(&mut map, "code", exit.code.as_ref())?;
                &exit.more
            }
            Self::Other { more, .. } => more,
        };
        more.iter().try_for_each(|(key, value)| map.serialize_entry(key, value))?;
        map.end()
    }
}

/// Converts a time to seconds as written in transcripts, with a resolution of one microsecond.
pub fn seconds(time: Duration) -> f64 {
    #[expect(clippy::cast_precision_loss, reason = "exact for the first 285 years")]
    let micros = u64::try_from(time.as_micros()).unwrap_or(u64::MAX) as f64;
    micros / 1e6
}

/// Converts a time read from a transcript; invalid times become zero.
pub fn duration(t: f64) -> Duration {
    Duration::try_from_secs_f64(t).unwrap_or_default()
}
