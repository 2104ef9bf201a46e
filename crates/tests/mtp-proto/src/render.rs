//! Rendering of frames as named fields with offsets, for people who debug the protocol.
//!
//! Shows everything in a frame, including what decoding skips (unknown fields, duplicate fields, bytes after the last
//! field) and what precedes an error. Does not validate the frame.

use std::fmt::{self, Write as _};

use runtap_wire::{DecodeError, Reader};

use crate::{
    Frame, HandshakeKey, Limits, MessageId,
    envelope::{Budget, field, length, text},
    message,
    schema::{FieldKind, Schema},
};

/// The content of a frame.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Rendering {
    /// The fields in order.
    pub fields: Vec<Field>,
    /// The bytes after the last field, and their offset in the stream. Holds the whole body if the message is unknown.
    pub rest: Option<(u64, Vec<u8>)>,
    /// The error at which reading stopped, if any. The fields before the error are in `fields`.
    pub error: Option<DecodeError>,
    /// The path to the field with the error, as far as it is known: `.SuccessfulTestMessageList[0].State`. Empty if
    /// there is no error, or the error is not in a field.
    pub error_path: String,
}

/// A field of a message, or a property of a handshake.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Field {
    /// The offset of the field's id in the stream.
    pub offset: u64,
    /// The id on the wire. The integers of a message that is not an envelope are numbered from 1.
    pub id: u16,
    /// The name in the sources of Microsoft.Testing.Platform, or `None` if the field is unknown.
    pub name: Option<&'static str>,
    /// The value of the field.
    pub value: FieldValue,
}

/// The value of a field.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum FieldValue {
    /// Text. Invalid UTF-8 is replaced by U+FFFD.
    Text(String),
    /// A Boolean.
    Bool(bool),
    /// A one-byte code, and the name of the value if it is known.
    Code(u8, Option<&'static str>),
    /// An integer of any size.
    Int(i64),
    /// A list of texts.
    Texts(Vec<String>),
    /// A list of envelopes.
    List(Vec<Vec<Field>>),
    /// The bytes of an unknown field.
    Bytes(Vec<u8>),
}

/// One line of a rendering: a field and its path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line<'a> {
    /// The offset in the stream.
    pub offset: u64,
    /// The path of field ids separated by `.`, with the index of the element in each list: `3[0].1`.
    pub path: String,
    /// The name of the field, or `None` if it is unknown.
    pub name: Option<&'static str>,
    /// The value of the field.
    pub value: &'a FieldValue,
}

impl Rendering {
    /// Renders `frame`.
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
                    let mut trail = Trail { steps: &mut this.error_path, budget: &mut budget };
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

    /// Returns one line per field. The fields of list elements follow their list.
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
    /// Formats the value on one line: texts are quoted and escaped, bytes are hexadecimal, and lists are shown by their
    /// length.
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
    /// Formats the line without the offset: `3[0].1 Uid = "apple-1"`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} = {}", self.path, self.name.unwrap_or("?"), self.value)
    }
}

impl fmt::Display for Rendering {
    /// Formats one line per field, with its offset.
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

/// The position of reading, and the remaining budget.
struct Trail<'a> {
    /// The path of the fields and elements that are being read.
    steps: &'a mut String,
    budget: &'a mut Budget,
}

impl Trail<'_> {
    /// Reads a nested item. After an error, the step stays in the path.
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

/// Appends the fields of an envelope. After an error within a list, the list is omitted.
fn envelope(
    reader: &mut Reader<'_>,
    schema: &Schema,
    trail: &mut Trail<'_>,
    fields: &mut Vec<Field>,
) -> Result<(), DecodeError> {
    for _ in 0..reader.u16("field count")? {
        let offset = reader.offset();
        // Read the id in advance, so that an error in the field's size has a path.
        let name = reader.clone().u16("field id").ok().map(|id| match schema.field(id) {
            Some(known) => format!(".{}", known.name),
            None => format!(".{id}"),
        });
        let field = trail.within(name.unwrap_or_default(), |trail| {
            let (id, value) = field(reader)?;
            let known = schema.field(id);
            let value = match known {
                Some(known) => read_value(value, known.kind, known.name, trail)?,
                None => FieldValue::Bytes(value.rest().to_vec()),
            };
            Ok(Field { offset, id, name: known.map(|known| known.name), value })
        })?;
        fields.push(field);
    }
    Ok(())
}

fn read_value(
    mut value: Reader<'_>,
    kind: FieldKind,
    what: &'static str,
    trail: &mut Trail<'_>,
) -> Result<FieldValue, DecodeError> {
    let start = value.clone();
    Ok(match kind {
        FieldKind::Text => FieldValue::Text(text(value.rest())),
        FieldKind::Bool => FieldValue::Bool(value.u8(what)? != 0),
        FieldKind::Code(name) => {
            let code = value.u8(what)?;
            FieldValue::Code(code, name(code))
        }
        FieldKind::Int => FieldValue::Int(value.i32(what)?.into()),
        FieldKind::Long => FieldValue::Int(value.i64(what)?),
        FieldKind::Texts => {
            let count = length(&mut value, what)?;
            trail.budget.take(count, &start, what)?;
            let mut all = Vec::with_capacity(count.min(value.remaining() / 4));
            for _ in 0..count {
                let size = length(&mut value, what)?;
                all.push(text(value.bytes(size, what)?));
            }
            FieldValue::Texts(all)
        }
        FieldKind::List(schema) => {
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

    fn error_path(id: MessageId, body: &[u8]) -> String {
        Rendering::new(&Frame { offset: 0, id, body }, Limits::default()).error_path
    }

    #[test]
    fn an_error_has_the_path_to_its_field() {
        // A list with one element, whose third field is empty.
        let list = [1, 0, 0, 0, 2, 0, 1, 0, 1, 0, 0, 0, b't', 3, 0, 0, 0, 0, 0];
        let body = [&[1, 0, 3, 0, 19, 0, 0, 0], &list[..]].concat();
        assert_eq!(error_path(MessageId::TEST_RESULTS, &body), ".SuccessfulTestMessageList[0].State");
        // A size beyond the end, in a known and in an unknown field.
        assert_eq!(error_path(MessageId::SESSION_EVENT, &[1, 0, 2, 0, 9, 0, 0, 0]), ".SessionUid");
        assert_eq!(error_path(MessageId::SESSION_EVENT, &[1, 0, 77, 0, 9, 0, 0, 0]), ".77");
        // No error.
        assert_eq!(error_path(MessageId::SESSION_EVENT, &[]), "");
        assert_eq!(error_path(MessageId::SESSION_EVENT, &[1, 0, 2, 0, 1, 0, 0, 0, b's']), "");
    }
}
