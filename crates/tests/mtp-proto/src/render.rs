//! A frame as named fields with their offsets: for people who look at what was sent.
//!
//! Owns: showing everything that is in a frame, also what decoding skips (unknown fields, fields that are there twice, bytes
//! after the last one) and what comes before an error. Refuses to: judge it.

use std::fmt::{self, Write as _};

use runtap_wire::{DecodeError, Reader};

use crate::{
    Frame, HandshakeKey, Limits, MessageId,
    envelope::{Budget, field, length, text},
    message,
    schema::{Kind, Schema},
};

/// All that is in a frame.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Rendering {
    /// The fields in their order.
    pub fields: Vec<Field>,
    /// Bytes behind the last field, and their offset in the stream: the whole body, if the message is unknown.
    pub rest: Option<(u64, Vec<u8>)>,
    /// Where the body stops to follow the format. Then the fields are those before.
    pub error: Option<DecodeError>,
    /// The way to the field with the error, as far as it is known: `.SuccessfulTestMessageList[0].State`. Empty if there is
    /// none, or it is in no field.
    pub trail: String,
}

/// A field of a message, or a property of a handshake.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Field {
    /// Offset in the stream, of the field's id.
    pub offset: u64,
    /// The id on the wire. The numbers of a message that is no envelope count from 1 on.
    pub id: u16,
    /// The name in the sources of Microsoft.Testing.Platform, if the field is a known one.
    pub name: Option<&'static str>,
    /// What is in it.
    pub value: FieldValue,
}

/// The value of a field.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum FieldValue {
    /// Text. Invalid UTF-8 became U+FFFD.
    Text(String),
    /// Yes or no.
    Bool(bool),
    /// A byte whose values have names, and the name of this one, if it is known.
    Code(u8, Option<&'static str>),
    /// A number of any size.
    Int(i64),
    /// A list of texts.
    Texts(Vec<String>),
    /// A list of envelopes.
    List(Vec<Vec<Field>>),
    /// The bytes of a field that is not known.
    Bytes(Vec<u8>),
}

/// One line of a rendering: a field, and the way to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line<'a> {
    /// Offset in the stream.
    pub offset: u64,
    /// Ids of fields with `.` between them, and the number of the element in each list: `3[0].1`.
    pub path: String,
    /// The name of the field, if it is known.
    pub name: Option<&'static str>,
    /// Its value.
    pub value: &'a FieldValue,
}

impl Rendering {
    /// All that is in `frame`.
    pub fn new(frame: &Frame<'_>, limits: Limits) -> Self {
        let mut this = Self::default();
        let mut reader = frame.reader();
        let mut budget = Budget::new(limits.elements);
        let read = match frame.id {
            MessageId::HANDSHAKE => properties(&mut reader, &mut this.fields),
            MessageId::TEST_HOST_COMPLETED => {
                numbers(&mut reader, &["ExitCode", "UnfilteredExitCode"], &mut this.fields)
            }
            MessageId::TEST_HOST_PROCESS_ID => numbers(&mut reader, &["PID"], &mut this.fields),
            id => match message::schema(id) {
                Some(schema) => {
                    let mut trail = Trail { steps: &mut this.trail, budget: &mut budget };
                    envelope(&mut reader, schema, &mut trail, &mut this.fields)
                }
                None => Ok(()),
            },
        };
        this.error = read.err();
        if this.error.is_none() && !reader.is_empty() {
            this.rest = Some((reader.offset(), reader.rest().to_vec()));
        }
        this
    }

    /// One line a field, those of the elements of a list behind the list.
    pub fn lines(&self) -> Vec<Line<'_>> {
        let mut lines = Vec::new();
        flatten(&self.fields, "", &mut lines);
        lines
    }
}

fn flatten<'a>(fields: &'a [Field], before: &str, lines: &mut Vec<Line<'a>>) {
    for field in fields {
        let path = format!("{before}{}", field.id);
        let elements = match &field.value {
            FieldValue::List(elements) => elements.as_slice(),
            _ => &[],
        };
        lines.push(Line { offset: field.offset, path: path.clone(), name: field.name, value: &field.value });
        for (i, element) in elements.iter().enumerate() {
            flatten(element, &format!("{path}[{i}]."), lines);
        }
    }
}

impl fmt::Display for FieldValue {
    /// On one line: texts are quoted and escaped, bytes are hexadecimal, a list says how long it is.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(text) => write!(f, "{text:?}"),
            Self::Bool(value) => write!(f, "{value}"),
            Self::Code(value, Some(name)) => write!(f, "{value} ({name})"),
            Self::Code(value, None) => write!(f, "{value}"),
            Self::Int(value) => write!(f, "{value}"),
            Self::Texts(texts) => write!(f, "{texts:?}"),
            Self::List(elements) => match elements.len() {
                1 => f.write_str("1 element"),
                n => write!(f, "{n} elements"),
            },
            Self::Bytes(bytes) => bytes.iter().try_for_each(|byte| write!(f, "{byte:02x}")),
        }
    }
}

impl fmt::Display for Line<'_> {
    /// `3[0].1 Uid = "apple-1"`, without the offset.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} = {}", self.path, self.name.unwrap_or("?"), self.value)
    }
}

impl fmt::Display for Rendering {
    /// One line a field, with its offset.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for line in self.lines() {
            writeln!(f, "{:>8} {line}", line.offset)?;
        }
        if let Some((offset, bytes)) = &self.rest {
            write!(f, "{offset:>8} rest = ")?;
            bytes.iter().try_for_each(|byte| write!(f, "{byte:02x}"))?;
            f.write_char('\n')?;
        }
        match &self.error {
            Some(error) => writeln!(f, "{:>8} error: {error}", error.offset),
            None => Ok(()),
        }
    }
}

fn properties(reader: &mut Reader<'_>, fields: &mut Vec<Field>) -> Result<(), DecodeError> {
    for _ in 0..reader.u16("handshake property count")? {
        let offset = reader.offset();
        let key = reader.u8("handshake property key")?;
        let size = length(reader, "handshake property length")?;
        let value = FieldValue::Text(text(reader.bytes(size, "handshake property")?));
        fields.push(Field { offset, id: key.into(), name: HandshakeKey(key).name(), value });
    }
    Ok(())
}

fn numbers(
    reader: &mut Reader<'_>,
    names: &[&'static str],
    fields: &mut Vec<Field>,
) -> Result<(), DecodeError> {
    for (id, name) in (1..).zip(names) {
        if id > 1 && reader.is_empty() {
            break;
        }
        let offset = reader.offset();
        let value = FieldValue::Int(reader.i32(name)?.into());
        fields.push(Field { offset, id, name: Some(name), value });
    }
    Ok(())
}

/// What reading has come to: where it is, and how much more it may read.
struct Trail<'a> {
    /// What was entered and not left.
    steps: &'a mut String,
    budget: &'a mut Budget,
}

impl Trail<'_> {
    /// Reads what is a step further. After an error, the step stays.
    fn within<T>(
        &mut self,
        step: impl fmt::Display,
        read: impl FnOnce(&mut Self) -> Result<T, DecodeError>,
    ) -> Result<T, DecodeError> {
        let before = self.steps.len();
        // Writing to a string does not fail.
        let _ = write!(self.steps, "{step}");
        let value = read(self)?;
        self.steps.truncate(before);
        Ok(value)
    }
}

/// Appends the fields of an envelope. In front of an error, what was read of a list is lost, and the list with it.
fn envelope(
    reader: &mut Reader<'_>,
    schema: &Schema,
    trail: &mut Trail<'_>,
    fields: &mut Vec<Field>,
) -> Result<(), DecodeError> {
    for _ in 0..reader.u16("field count")? {
        let offset = reader.offset();
        // The id once more, so that a field whose size is wrong has a name.
        let name = reader.clone().u16("field id").ok().map(|id| match schema.field(id) {
            Some(known) => format!(".{}", known.name),
            None => format!(".{id}"),
        });
        let field = trail.within(name.unwrap_or_default(), |trail| {
            let (id, value) = field(reader)?;
            let known = schema.field(id);
            let value = match known {
                Some(known) => of_kind(value, known.kind, known.name, trail)?,
                None => FieldValue::Bytes(value.rest().to_vec()),
            };
            Ok(Field { offset, id, name: known.map(|known| known.name), value })
        })?;
        fields.push(field);
    }
    Ok(())
}

fn of_kind(
    mut value: Reader<'_>,
    kind: Kind,
    what: &'static str,
    trail: &mut Trail<'_>,
) -> Result<FieldValue, DecodeError> {
    let start = value.clone();
    Ok(match kind {
        Kind::Text => FieldValue::Text(text(value.rest())),
        Kind::Bool => FieldValue::Bool(value.u8(what)? != 0),
        Kind::Code(name) => {
            let code = value.u8(what)?;
            FieldValue::Code(code, name(code))
        }
        Kind::Int => FieldValue::Int(value.i32(what)?.into()),
        Kind::Long => FieldValue::Int(value.i64(what)?),
        Kind::Texts => {
            let count = length(&mut value, what)?;
            trail.budget.take(count, &start, what)?;
            let mut all = Vec::with_capacity(count.min(value.remaining() / 4));
            for _ in 0..count {
                let size = length(&mut value, what)?;
                all.push(text(value.bytes(size, what)?));
            }
            FieldValue::Texts(all)
        }
        Kind::List(schema) => {
            let count = length(&mut value, what)?;
            trail.budget.take(count, &start, what)?;
            let mut all = Vec::with_capacity(count.min(value.remaining() / 2));
            for number in 0..count {
                let mut element = Vec::new();
                trail.within(format_args!("[{number}]"), |trail| {
                    envelope(&mut value, schema, trail, &mut element)
                })?;
                all.push(element);
            }
            FieldValue::List(all)
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trail(id: MessageId, body: &[u8]) -> String {
        Rendering::new(&Frame { offset: 0, id, body }, Limits::default()).trail
    }

    #[test]
    fn an_error_has_the_way_to_its_field() {
        // A list with one element, whose third field has no byte.
        let list = [1, 0, 0, 0, 2, 0, 1, 0, 1, 0, 0, 0, b't', 3, 0, 0, 0, 0, 0];
        let body = [&[1, 0, 3, 0, 19, 0, 0, 0], &list[..]].concat();
        assert_eq!(trail(MessageId::TEST_RESULTS, &body), ".SuccessfulTestMessageList[0].State");
        // A size beyond the end, of a field that is known and of one that is not.
        assert_eq!(trail(MessageId::SESSION_EVENT, &[1, 0, 2, 0, 9, 0, 0, 0]), ".SessionUid");
        assert_eq!(trail(MessageId::SESSION_EVENT, &[1, 0, 77, 0, 9, 0, 0, 0]), ".77");
        // No field at all, and no error.
        assert_eq!(trail(MessageId::SESSION_EVENT, &[]), "");
        assert_eq!(trail(MessageId::SESSION_EVENT, &[1, 0, 2, 0, 1, 0, 0, 0, b's']), "");
    }
}
