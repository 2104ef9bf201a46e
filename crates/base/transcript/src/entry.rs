//! One line of a transcript, as a value: what each key means is in docs/transcripts.md.
//!
//! Known keys are typed and come first when a line is written; all others are in `more`. Refuses to know what a `dir`, a
//! `name` or a field means.

use std::time::Duration;

use serde::ser::{Serialize, SerializeMap, Serializer};
use serde_json::{Map, Value};

use crate::error::Problem;
use crate::hex;
use crate::keys::Keys;

/// Keys that are not typed, with their values.
pub type More = Map<String, Value>;

/// One line.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Entry {
    /// Who has recorded what; the first line.
    Header(Header),
    /// A connection was made.
    Open(Open),
    /// A message, or a part of a stream.
    Frame(Frame),
    /// A connection has ended, or one side of it.
    Close(Close),
    /// The recording has ended, and the command with it.
    Exit(Exit),
    /// A line of another kind.
    Other {
        /// Its kind.
        kind: String,
        /// All other keys.
        more: More,
    },
}

/// Who has recorded what.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Header {
    /// When, in seconds since the recording began.
    pub t: f64,
    /// What the recorder was: between both sides, or one of them.
    pub role: Option<String>,
    /// The command that was started, word for word.
    pub cmd: Option<Vec<String>>,
    /// All other keys.
    pub more: More,
}

/// A connection was made.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Open {
    /// When, in seconds since the recording began.
    pub t: f64,
    /// What the connection is called from now on.
    pub conn: String,
    /// All other keys.
    pub more: More,
}

/// A message, or a part of a stream.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Frame {
    /// When, in seconds since the recording began.
    pub t: f64,
    /// On which connection.
    pub conn: String,
    /// From whom to whom.
    pub dir: String,
    /// The number that its protocol has for such a message.
    pub id: Option<i64>,
    /// The name that its protocol has for such a message.
    pub name: Option<String>,
    /// All of its bytes; `None` where they are elsewhere.
    pub hex: Option<Vec<u8>>,
    /// What it says, if that was decoded.
    pub fields: Option<Vec<Field>>,
    /// All other keys.
    pub more: More,
}

/// A decoded part of a message: `[id, name, value]`.
#[derive(Debug, Clone, PartialEq)]
pub struct Field {
    /// Its number in the message.
    pub id: i64,
    /// What it is called.
    pub name: String,
    /// What it says.
    pub value: Value,
}

/// A connection has ended, or one side of it.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Close {
    /// When, in seconds since the recording began.
    pub t: f64,
    /// Which connection.
    pub conn: String,
    /// Who has closed it.
    pub side: Option<String>,
    /// What was wrong.
    pub error: Option<String>,
    /// All other keys.
    pub more: More,
}

/// The recording has ended.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Exit {
    /// When, in seconds since the recording began.
    pub t: f64,
    /// The exit code of the command; negative for a signal.
    pub code: Option<i64>,
    /// All other keys.
    pub more: More,
}

impl Entry {
    /// Its kind, as it is written.
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

    /// Reads a line.
    pub(crate) fn parse(line: &[u8]) -> Result<Self, Problem> {
        // The parser has seen one line only.
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

    /// The line that says it, with its end.
    pub fn to_line(&self) -> Vec<u8> {
        // Text keys and values that came from JSON or are of these types: there is nothing that JSON has no form for.
        let mut line = serde_json::to_vec(self).unwrap_or_default();
        line.push(b'\n');
        line
    }
}

impl Field {
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

/// Writes what is there.
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

/// A time as it is written: whole microseconds, in seconds.
pub fn seconds(time: Duration) -> f64 {
    #[expect(clippy::cast_precision_loss, reason = "exact for the first 285 years")]
    let micros = u64::try_from(time.as_micros()).unwrap_or(u64::MAX) as f64;
    micros / 1e6
}

/// A time that was read.
pub fn duration(t: f64) -> Duration {
    Duration::try_from_secs_f64(t).unwrap_or_default()
}
