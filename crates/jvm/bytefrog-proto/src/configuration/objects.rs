//! Reads a serialized Java object that has the fields of a configuration.
//!
//! Takes lists of any class: the strings that can be reached from a list are its elements, every other object is entered
//! once. That is what `ArrayList`, `LinkedList`, `Arrays.asList`, `List.of` and the wrappers of `Collections` come to.

use runtap_wire::{DecodeError, DecodeErrorKind, Reader};

use super::{Configuration, JavaClass};
use crate::{JavaStr, JavaString};

/// Objects inside of objects. A configuration has four.
const DEPTH: usize = 32;

pub(super) fn read(payload: &[u8]) -> Result<(Configuration, JavaClass), DecodeError> {
    let mut stream = Objects { reader: Reader::new(payload), known: Vec::new() };
    let header = u32::from_be_bytes(stream.reader.array("stream header")?);
    if header != 0xaced_0005 {
        let kind = DecodeErrorKind::Unexpected { value: header.into(), expected: "0xaced0005" };
        return Err(DecodeError::new(0, "stream header", kind));
    }
    let object = stream.value(DEPTH)?;
    if !stream.reader.is_empty() {
        return Err(stream.reader.error("end of the object", DecodeErrorKind::Invalid("more follows")));
    }
    stream.configuration(object)
}

/// A value, or where it is.
#[derive(Debug, Clone, Copy)]
enum Value {
    Null,
    /// An index into what is known.
    Known(usize),
    Number(i64),
    EndOfBlock,
    Block,
}

/// What has a handle.
#[derive(Debug)]
enum Known {
    Text(JavaString),
    Class {
        name: JavaString,
        uid: u64,
        flags: u8,
        fields: Vec<(u8, JavaString)>,
        parent: Option<usize>,
    },
    /// Values of fields with their names, and everything else that the object holds.
    Object {
        class: usize,
        fields: Vec<(JavaString, Value)>,
        others: Vec<Value>,
    },
}

struct Objects<'a> {
    reader: Reader<'a>,
    known: Vec<Known>,
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

    fn learn(&mut self, known: Known) -> usize {
        self.known.push(known);
        self.known.len() - 1
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
            0x71 => Value::Known(self.reference(&start)?),
            0x73 => self.object(depth)?,
            0x74 => {
                let text = Known::Text(self.text("string")?);
                Value::Known(self.learn(text))
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
        match index.filter(|index| *index < self.known.len()) {
            Some(index) => Ok(index),
            None => {
                Err(start.error("handle", DecodeErrorKind::Invalid("refers to nothing that came before")))
            }
        }
    }

    /// The description of a class; `None` is null.
    fn class(&mut self, depth: usize) -> Result<Option<usize>, DecodeError> {
        let Some(depth) = depth.checked_sub(1) else { return self.wrong("class", "is nested too deeply") };
        let start = self.reader.clone();
        match self.reader.u8("type code of a class")? {
            0x70 => return Ok(None),
            0x71 => {
                let index = self.reference(&start)?;
                return match self.known.get(index) {
                    Some(Known::Class { .. }) => Ok(Some(index)),
                    _ => Err(start.error("handle", DecodeErrorKind::Invalid("refers to what is no class"))),
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
        let index =
            self.learn(Known::Class { name: name.clone(), uid, flags: 0, fields: Vec::new(), parent: None });
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
        if let Some(known) = self.known.get_mut(index) {
            *known = Known::Class { name, uid, flags, fields, parent };
        }
        Ok(Some(index))
    }

    fn object(&mut self, depth: usize) -> Result<Value, DecodeError> {
        let Some(class) = self.class(depth)? else { return self.wrong("object", "has no class") };
        let index = self.learn(Known::Object { class, fields: Vec::new(), others: Vec::new() });
        // Data come from the oldest ancestor on. A class can't be its own ancestor: it refers to what came before.
        let mut line = vec![class];
        while let Some(Known::Class { parent: Some(parent), .. }) =
            line.last().and_then(|last| self.known.get(*last))
        {
            if line.len() > DEPTH || line.contains(parent) {
                return self.wrong("class", "has too many ancestors");
            }
            line.push(*parent);
        }
        let (mut values, mut others) = (Vec::new(), Vec::new());
        for class in line.into_iter().rev() {
            let Some(Known::Class { flags, fields, .. }) = self.known.get(class) else { continue };
            let (flags, fields) = (*flags, fields.clone());
            if flags & 2 == 0 {
                return self.wrong("object", "is of a class that is not plainly serializable");
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
        if let Some(known) = self.known.get_mut(index) {
            *known = Known::Object { class, fields: values, others };
        }
        Ok(Value::Known(index))
    }

    fn field(&mut self, kind: u8, depth: usize) -> Result<Value, DecodeError> {
        Ok(match kind {
            b'B' => Value::Number(self.reader.i8("byte")?.into()),
            b'Z' => Value::Number(self.reader.u8("boolean")?.into()),
            b'C' | b'S' => Value::Number(i16::from_be_bytes(self.reader.array("short")?).into()),
            b'I' => Value::Number(i32::from_be_bytes(self.reader.array("int")?).into()),
            b'J' => Value::Number(i64::from_be_bytes(self.reader.array("long")?)),
            // No floating-point number is of use.
            b'F' => self.reader.array::<4>("float").map(|_| Value::Block)?,
            b'D' => self.reader.array::<8>("double").map(|_| Value::Block)?,
            b'L' | b'[' => self.value(depth)?,
            _ => return self.wrong("field type", "is unknown"),
        })
    }

    fn array(&mut self, depth: usize) -> Result<Value, DecodeError> {
        let Some(class) = self.class(depth)? else { return self.wrong("array", "has no class") };
        let index = self.learn(Known::Object { class, fields: Vec::new(), others: Vec::new() });
        let kind = match self.known.get(class) {
            Some(Known::Class { name, .. }) => name.as_java_str().as_bytes().get(1).copied().unwrap_or(0),
            _ => 0,
        };
        let mut values = Vec::new();
        // Each element takes a byte at least, so what is claimed is not believed for longer than there are bytes.
        for _ in 0..self.u32("array length")? {
            values.push(self.field(kind, depth)?);
        }
        if let Some(Known::Object { others, .. }) = self.known.get_mut(index) {
            *others = values;
        }
        Ok(Value::Known(index))
    }

    fn configuration(&self, object: Value) -> Result<(Configuration, JavaClass), DecodeError> {
        let Value::Known(index) = object else { return self.wrong("configuration", "is no object") };
        let Some(Known::Object { class, fields, .. }) = self.known.get(index) else {
            return self.wrong("configuration", "is no object");
        };
        let Some(Known::Class { name, uid, .. }) = self.known.get(*class) else {
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
            _ => self.wrong(what, "is missing or no number"),
        };
        let list = |what: &'static str| match field(what) {
            Some(Value::Known(index)) => Ok(self.strings(index)),
            _ => self.wrong(what, "is missing or no list"),
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

    /// The strings that can be reached from an object. A string may be there twice, an object is entered once.
    fn strings(&self, from: usize) -> Vec<JavaString> {
        let (mut strings, mut entered) = (Vec::new(), vec![false; self.known.len()]);
        let mut ahead = vec![from];
        while let Some(index) = ahead.pop() {
            match self.known.get(index) {
                Some(Known::Text(text)) => strings.push(text.clone()),
                Some(Known::Object { fields, others, .. }) => {
                    let Some(entered) = entered.get_mut(index) else { continue };
                    if !std::mem::replace(entered, true) {
                        let values = fields.iter().map(|(_, value)| value).chain(others);
                        let mut found: Vec<usize> = Vec::new();
                        found.extend(values.filter_map(|value| match value {
                            Value::Known(index) => Some(*index),
                            _ => None,
                        }));
                        ahead.extend(found.into_iter().rev());
                    }
                }
                Some(Known::Class { .. }) | None => {}
            }
        }
        strings
    }
}
