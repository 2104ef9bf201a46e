//! Who says something, what recordings call that, and the names and keys that all of them have.

use runtap_mtp_proto::render::{Field as Shown, FieldValue, Rendering};
use runtap_mtp_proto::server::{Mode, Pipe};
use runtap_mtp_proto::{MessageId, Version};
use runtap_transcript::{Field, Frame, Open};
use serde_json::Value;

/// What the header of a recording says of its protocol.
pub(crate) const PROTOCOL: &str = "dotnet-test-pipe";
/// The option with the path of a server's socket.
pub(crate) const PIPE_OPTION: &str = "--dotnet-test-pipe";
/// More values of one frame are not listed: the line that lists them would be too long to be read.
const MOST_VALUES: usize = 10_000;

/// From whom to whom.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// From the test application to its server.
    FromHost,
    /// From the server to the application.
    FromServer,
}

impl Direction {
    /// As it is written in recordings.
    pub fn name(self) -> &'static str {
        match self {
            Self::FromHost => "h2s",
            Self::FromServer => "s2h",
        }
    }

    /// What is written in recordings.
    pub fn parse(name: &str) -> Option<Self> {
        [Self::FromHost, Self::FromServer].into_iter().find(|direction| direction.name() == name)
    }
}

/// Which pipe a recorded connection was made to: older recordings tell by its name.
pub(crate) fn pipe_of(open: &Open) -> Pipe {
    let said = open.more.get("pipe").and_then(Value::as_str);
    if said.unwrap_or(&open.conn).starts_with("control") { Pipe::Control } else { Pipe::Data }
}

/// The `open` line of a connection that has none: by what is said first on it one can tell to which pipe it was made.
pub(crate) fn implied(conn: &str, first: Option<MessageId>) -> Open {
    let mut open = Open { conn: conn.to_owned(), ..Open::default() };
    if first == Some(MessageId::WAIT_FOR_SERVER_CONTROL) {
        open.more.insert("pipe".to_owned(), "control".into());
    }
    open
}

/// What a line with bytes has: `frame`, or what the bytes are instead.
pub(crate) fn what_of(frame: &Frame) -> &str {
    frame.more.get("what").and_then(Value::as_str).unwrap_or("frame")
}

/// What an application does that is started with these words.
pub(crate) fn mode_of<'a>(words: impl IntoIterator<Item = &'a str>) -> Mode {
    let mut mode = Mode::Run;
    for word in words {
        match word {
            "--help" | "-?" | "--?" => return Mode::Help,
            "--list-tests" => mode = Mode::Discover,
            _ => {}
        }
    }
    mode
}

/// The version that the reply to a handshake has chosen, as it is shown.
pub(crate) fn chosen(version: Option<Version>) -> String {
    version.map_or_else(|| "rejected".to_owned(), |version| version.to_string())
}

/// The fields of a frame for a line of a recording; `None` if there are too many of them.
pub(crate) fn listed(rendering: &Rendering) -> Option<Vec<Field>> {
    let mut left = MOST_VALUES;
    let fields = rendering.fields.iter().map(|field| {
        let value = value(&field.value, &mut left)?;
        Some(Field { id: field.id.into(), name: field.name.unwrap_or("?").to_owned(), value })
    });
    fields.collect()
}

/// A value in JSON: a list of envelopes as a list of `[id, name, value]`, bytes as digits.
fn value(shown: &FieldValue, left: &mut usize) -> Option<Value> {
    *left = left.checked_sub(1)?;
    Some(match shown {
        FieldValue::Text(text) => Value::from(text.as_str()),
        FieldValue::Bool(value) => Value::from(*value),
        FieldValue::Code(value, _) => Value::from(*value),
        FieldValue::Int(value) => Value::from(*value),
        FieldValue::Texts(texts) => {
            *left = left.checked_sub(texts.len())?;
            Value::from(texts.clone())
        }
        FieldValue::List(elements) => {
            let mut all = Vec::new();
            for element in elements {
                *left = left.checked_sub(1)?;
                let fields = element.iter().map(|field| triple(field, left));
                all.push(fields.collect::<Option<Value>>()?);
            }
            Value::from(all)
        }
        FieldValue::Bytes(bytes) => Value::from(runtap_transcript::to_hex(bytes)),
        _ => Value::Null,
    })
}

fn triple(field: &Shown, left: &mut usize) -> Option<Value> {
    let name = field.name.unwrap_or("?");
    Some(Value::from(vec![field.id.into(), name.into(), value(&field.value, left)?]))
}
