//! A reader for serialized Java objects that have the fields of a configuration.
//!
//! Lists may be of any class: the strings that can be reached from a list are its elements, and every other object is
//! visited once. This covers `ArrayList`, `LinkedList`, `Arrays.asList`, `List.of` and the wrappers of `Collections`.

use runtap_wire::{DecodeError, DecodeErrorKind, Reader};

use super::{Configuration, JavaClass};
use crate::{JavaStr, JavaString};

/// The deepest nesting of objects. A configuration has four levels.
const MAX_DEPTH: usize = 32;

pub(super) fn read(payload: &[u8]) -> Result<(Configuration, JavaClass), DecodeError> {
    let mut stream = Objects { reader: Reader::new(payload), handles: Vec::new() };
    let header = u32::from_be_bytes(stream.reader.array("stream header")?);
    if header != 0xaced_0005 {
        let kind = DecodeErrorKind::Unexpected { value: header.into(), expected: "0xaced0005" };
        return Err(DecodeError::new(0, "stream header", kind));
    }
    let object = stream.value(MAX_DEPTH)?;
    if !stream.reader.is_empty() {
        return Err(stream
            .reader
            .error("end of the object", DecodeErrorKind::Invalid("is followed by more data")));
    }
    stream.configuration(object)
}

/// A decoded value, or a reference to one that has a handle.
#[derive(Debug, Clone, Copy)]
enum Value {
    Null,
    /// An index into `Objects::handles`.
    Handle(usize),
    Number(i64),
    EndOfBlock,
    Block,
}

/// A value that the stream can refer to by its handle.
#[derive(Debug)]
enum Referable {
    Text(JavaString),
    Class {
        name: JavaString,
        uid: u64,
        flags: u8,
        fields: Vec<(u8, JavaString)>,
        parent: Option<usize>,
    },
    /// The values of the fields with their names, and all other values that the object has.
    Object {
        class: usize,
        fields: Vec<(JavaString, Value)>,
        others: Vec<Value>,
    },
}

struct Objects<'a> {
    reader: Reader<'a>,
    handles: Vec<Referable>,
}

impl Objects<'_> {
    fn u16(&mut self, what: &'static str) -> Result<u16, DecodeError> {
        Ok(u16::from_be_bytes(self.reader.array(what)?))
    }

    fn u32(&mut self, what: &'static str) -> Result<u32, DecodeError> {
        Ok(u32::from_be_bytes(self.reader.array(what)?))
    }

    fn text(&mut self, what: &'static str) -> Result<JavaString, DecodeError> {
        let length = self.u16(what)?;
        Ok(JavaStr::from_bytes(self.reader.bytes(length.into(), what)?).into())
    }

    fn add_handle(&mut self, value: Referable) -> usize {
        self.handles.push(value);
        self.handles.len() - 1
    }

    fn wrong<T>(&self, what: &'static str, why: &'static str) -> Result<T, DecodeError> {
        Err(self.reader.error(what, DecodeErrorKind::Invalid(why)))
    }

    fn value(&mut self, depth: usize) -> Result<Value, DecodeError> {
        let Some(depth) = depth.checked_sub(1) else { return self.wrong("object", "is nested too deeply") };
        let start = self.reader.clone();
        let tag = self.reader.u8("type code")?;
        Ok(match tag {
            0x70 => Value::Null,
            0x71 => Value::Handle(self.reference(&start)?),
            0x73 => self.object(depth)?,
            0x74 => {
                let text = Referable::Text(self.text("string")?);
                Value::Handle(self.add_handle(text))
            }
            0x75 => self.array(depth)?,
            0x77 => {
                let length = self.reader.u8("block length")?;
                self.reader.bytes(length.into(), "block")?;
                Value::Block
            }
            0x78 => Value::EndOfBlock,
            0x7a => {
                let length = usize::try_from(self.u32("block length")?).unwrap_or(usize::MAX);
                self.reader.bytes(length, "block")?;
                Value::Block
            }
            _ => {
                let expected = "null, a reference, object, string, array or block";
                let kind = DecodeErrorKind::Unexpected { value: tag.into(), expected };
                return Err(start.error("type code", kind));
            }
        })
    }

    fn reference(&mut self, start: &Reader<'_>) -> Result<usize, DecodeError> {
        let handle = self.u32("handle")?;
        let index = handle.checked_sub(0x7e_0000).and_then(|index| usize::try_from(index).ok());
        match index.filter(|index| *index < self.handles.len()) {
            Some(index) => Ok(index),
            None => Err(start.error("handle", DecodeErrorKind::Invalid("refers to an unknown object"))),
        }
    }

    /// Reads a class description; returns its index, or `None` for null.
    fn class(&mut self, depth: usize) -> Result<Option<usize>, DecodeError> {
        let Some(depth) = depth.checked_sub(1) else { return self.wrong("class", "is nested too deeply") };
        let start = self.reader.clone();
        match self.reader.u8("type code of a class")? {
            0x70 => return Ok(None),
            0x71 => {
                let index = self.reference(&start)?;
                return match self.handles.get(index) {
                    Some(Referable::Class { .. }) => Ok(Some(index)),
                    _ => Err(start.error("handle", DecodeErrorKind::Invalid("does not refer to a class"))),
                };
            }
            0x72 => {}
            tag => {
                let expected = "a class, a reference or null";
                let kind = DecodeErrorKind::Unexpected { value: tag.into(), expected };
                return Err(start.error("type code of a class", kind));
            }
        }
        let name = self.text("class name")?;
        let uid = u64::from_be_bytes(self.reader.array("serialVersionUID")?);
        let index = self.add_handle(Referable::Class {
            name: name.clone(),
            uid,
            flags: 0,
            fields: Vec::new(),
            parent: None,
        });
        let flags = self.reader.u8("class flags")?;
        let mut fields = Vec::new();
        for _ in 0..self.u16("field count")? {
            let kind = self.reader.u8("field type")?;
            fields.push((kind, self.text("field name")?));
            if matches!(kind, b'[' | b'L') {
                // The type is a string, which has a handle.
                self.value(depth)?;
            }
        }
        while !matches!(self.value(depth)?, Value::EndOfBlock) {}
        let parent = self.class(depth)?;
        if let Some(class) = self.handles.get_mut(index) {
            *class = Referable::Class { name, uid, flags, fields, parent };
        }
        Ok(Some(index))
    }

    fn object(&mut self, depth: usize) -> Result<Value, DecodeError> {
        let Some(class) = self.class(depth)? else { return self.wrong("object", "has no class") };
        let index = self.add_handle(Referable::Object { class, fields: Vec::new(), others: Vec::new() });
        // The data of the oldest ancestor comes first. A class cannot be its own ancestor: it refers to earlier
        // classes only.
        let mut line = vec![class];
        while let Some(Referable::Class { parent: Some(parent), .. }) =
            line.last().and_then(|last| self.handles.get(*last))
        {
            if line.len() > MAX_DEPTH || line.contains(parent) {
                return self.wrong("class", "has too many ancestors");
            }
            line.push(*parent);
        }
        let (mut values, mut others) = (Vec::new(), Vec::new());
        for class in line.into_iter().rev() {
            let Some(Referable::Class { flags, fields, .. }) = self.handles.get(class) else { continue };
            let (flags, fields) = (*flags, fields.clone());
            if flags & 2 == 0 {
                return self.wrong("object", "is of a class that is not serializable in the default way");
            }
            for (kind, name) in fields {
                values.push((name, self.field(kind, depth)?));
            }
            if flags & 1 != 0 {
                loop {
                    match self.value(depth)? {
                        Value::EndOfBlock => break,
                        value => others.push(value),
                    }
                }
            }
        }
        if let Some(object) = self.handles.get_mut(index) {
            *object = Referable::Object { class, fields: values, others };
        }
        Ok(Value::Handle(index))
    }

    fn field(&mut self, kind: u8, depth: usize) -> Result<Value, DecodeError> {
        Ok(match kind {
            b'B' => Value::Number(self.reader.i8("byte")?.into()),
            b'Z' => Value::Number(self.reader.u8("boolean")?.into()),
            b'C' | b'S' => Value::Number(i16::from_be_bytes(self.reader.array("short")?).into()),
            b'I' => Value::Number(i32::from_be_bytes(self.reader.array("int")?).into()),
            b'J' => Value::Number(i64::from_be_bytes(self.reader.array("long")?)),
            // Floating-point values are not used: skip them.
            b'F' => self.reader.array::<4>("float").map(|_| Value::Block)?,
            b'D' => self.reader.array::<8>("double").map(|_| Value::Block)?,
            b'L' | b'[' => self.value(depth)?,
            _ => return self.wrong("field type", "is unknown"),
        })
    }

    fn array(&mut self, depth: usize) -> Result<Value, DecodeError> {
        let Some(class) = self.class(depth)? else { return self.wrong("array", "has no class") };
        let index = self.add_handle(Referable::Object { class, fields: Vec::new(), others: Vec::new() });
        let kind = match self.handles.get(class) {
            Some(Referable::Class { name, .. }) => name.as_java_str().as_bytes().get(1).copied().unwrap_or(0),
            _ => 0,
        };
        let mut values = Vec::new();
        // Each element has at least one byte, so a false length fails when the bytes run out.
        for _ in 0..self.u32("array length")? {
            values.push(self.field(kind, depth)?);
        }
        if let Some(Referable::Object { others, .. }) = self.handles.get_mut(index) {
            *others = values;
        }
        Ok(Value::Handle(index))
    }

    fn configuration(&self, object: Value) -> Result<(Configuration, JavaClass), DecodeError> {
        let Value::Handle(index) = object else { return self.wrong("configuration", "is not an object") };
        let Some(Referable::Object { class, fields, .. }) = self.handles.get(index) else {
            return self.wrong("configuration", "is not an object");
        };
        let Some(Referable::Class { name, uid, .. }) = self.handles.get(*class) else {
            return self.wrong("configuration", "has no class");
        };
        let field = |wanted: &str| {
            let found = fields.iter().find(|(name, _)| name.as_java_str().as_bytes() == wanted.as_bytes());
            found.map(|(_, value)| *value)
        };
        let number = |what: &'static str| match field(what) {
            Some(Value::Number(number)) => {
                i32::try_from(number).or_else(|_| self.wrong(what, "is too large"))
            }
            _ => self.wrong(what, "is missing or not a number"),
        };
        let list = |what: &'static str| match field(what) {
            Some(Value::Handle(index)) => Ok(self.strings(index)),
            _ => self.wrong(what, "is missing or not a list"),
        };
        let [.., run] = number("runId")?.to_be_bytes();
        let configuration = Configuration {
            run,
            heartbeat_interval: number("heartbeatInterval")?,
            exclusions: list("exclusions")?,
            inclusions: list("inclusions")?,
            buffer_memory_budget: number("bufferMemoryBudget")?,
            queue_retry_count: number("queueRetryCount")?,
            data_senders: number("numDataSenders")?,
            extension: super::Extension::default(),
        };
        Ok((configuration, JavaClass { name: name.clone(), uid: *uid }))
    }

    /// Returns the strings that can be reached from an object. A string may occur twice; each object is visited once.
    fn strings(&self, from: usize) -> Vec<JavaString> {
        let (mut strings, mut visited) = (Vec::new(), vec![false; self.handles.len()]);
        let mut pending = vec![from];
        while let Some(index) = pending.pop() {
            match self.handles.get(index) {
                Some(Referable::Text(text)) => strings.push(text.clone()),
                Some(Referable::Object { fields, others, .. }) => {
                    let Some(visited) = visited.get_mut(index) else { continue };
                    if !std::mem::replace(visited, true) {
                        let values = fields.iter().map(|(_, value)| value).chain(others);
                        let mut found: Vec<usize> = Vec::new();
                        found.extend(values.filter_map(|value| match value {
                            Value::Handle(index) => Some(*index),
                            _ => None,
                        }));
                        pending.extend(found.into_iter().rev());
                    }
                }
                Some(Referable::Class { .. }) | None => {}
            }
        }
        strings
    }
}
