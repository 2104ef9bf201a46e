//! Reads fields by their layout: the iterators, and the walk over values whose end is not known in advance.
//!
//! Every step takes at least one byte of the payload, so that no payload costs more time than its length allows: arrays
//! of elements without bytes are refused.

use std::slice;

use runtap_wire::{DecodeErrorKind, Reader, Utf16};

use super::PayloadError;
use super::schema::{FieldDef, From, Kind, Length, SLOTS};
use super::value::{Decimal, FileTime, Value};

/// The fields of a payload, or of an object in it: name and value.
///
/// Ends after the first error.
#[derive(Debug, Clone)]
pub struct Fields<'a> {
    defs: slice::Iter<'a, FieldDef>,
    reader: Reader<'a>,
    kept: [u64; SLOTS],
    pointer_size: usize,
    /// All bytes, for values that lie elsewhere, and how many of them such values have taken: honest ones share none.
    whole: &'a [u8],
    located: usize,
}

impl<'a> Fields<'a> {
    pub(super) fn new(defs: &'a [FieldDef], reader: Reader<'a>, pointer_size: usize) -> Self {
        let whole = reader.rest();
        Self { defs: defs.iter(), reader, kept: [0; SLOTS], pointer_size, whole, located: 0 }
    }

    /// The value of a field that says where its elements are.
    fn located(&mut self, element: &'a Kind, from: From) -> Result<Value<'a>, PayloadError> {
        let field = self.reader.clone();
        let value = self.reader.u32("")?;
        let place = usize::try_from(value & 0xffff).unwrap_or(usize::MAX);
        let size = usize::try_from(value >> 16).unwrap_or(usize::MAX);
        let base = match from {
            From::Payload => 0,
            From::Field => self.whole.len() - self.reader.remaining(),
        };
        self.located += size;
        let bytes = self.whole.get(base + place..).and_then(|bytes| bytes.get(..size));
        let Some(bytes) = bytes.filter(|_| self.located <= self.whole.len()) else {
            let expected = "place and size of bytes in the payload";
            return Err(field
                .error("", DecodeErrorKind::Unexpected { value: value.into(), expected })
                .into());
        };
        let element_size = element.size(self.pointer_size).filter(|size| *size > 0);
        let Some(n) = element_size.map(|each| size / each) else {
            return Err(field.error("", DecodeErrorKind::Invalid("has elements of no fixed size")).into());
        };
        let offset = u64::try_from(base + place).unwrap_or(u64::MAX);
        elements(element, n, &mut Reader::at(bytes, offset), self.pointer_size)
    }

    /// The value of the first field of this name; `None` where there is none, or it can't be read.
    pub fn get(mut self, name: &str) -> Option<Value<'a>> {
        self.find_map(|field| field.ok().filter(|(known, _)| *known == name)).map(|(_, value)| value)
    }

    /// The bytes that were not read: more than none behind the last field mean a newer version of the event.
    pub fn rest(&self) -> &'a [u8] {
        self.reader.rest()
    }

    fn fail(&mut self, def: &FieldDef, error: PayloadError) -> PayloadError {
        self.defs = [].iter();
        error.in_field(&def.name)
    }
}

impl<'a> Iterator for Fields<'a> {
    type Item = Result<(&'a str, Value<'a>), PayloadError>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        let def = self.defs.next()?;
        if def.optional && self.reader.is_empty() {
            self.defs = [].iter();
            return None;
        }
        let value = match &def.kind {
            Kind::Located(element, from) => self.located(element, *from),
            kind => value(kind, &mut self.reader, &self.kept, self.pointer_size),
        };
        let value = match value {
            Ok(value) => value,
            Err(error) => return Some(Err(self.fail(def, error))),
        };
        keep(def, &value, &mut self.kept);
        Some(Ok((&def.name, value)))
    }
}

/// The elements of an array.
#[derive(Debug, Clone)]
pub struct Elements<'a> {
    kind: &'a Kind,
    reader: Reader<'a>,
    left: usize,
    pointer_size: usize,
}

impl<'a> Elements<'a> {
    /// The elements as objects; nothing where they are none.
    pub fn objects(self) -> impl Iterator<Item = Fields<'a>> {
        self.filter_map(|value| match value {
            Value::Object(fields) => Some(fields),
            _ => None,
        })
    }
}

impl<'a> Iterator for Elements<'a> {
    type Item = Value<'a>;

    fn next(&mut self) -> Option<Value<'a>> {
        self.left = self.left.checked_sub(1)?;
        // The array was walked over when it was handed out, so that this does not fail.
        value(self.kind, &mut self.reader, &[0; SLOTS], self.pointer_size).ok()
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left, Some(self.left))
    }
}

impl ExactSizeIterator for Elements<'_> {}

#[inline]
fn keep(def: &FieldDef, value: &Value<'_>, kept: &mut [u64; SLOTS]) {
    if let Some(slot) = def.keep
        && let Some(place) = kept.get_mut(usize::from(slot))
    {
        *place = value.as_u64().unwrap_or_default();
    }
}

/// Reads a value and goes behind it.
#[inline]
fn value<'a>(
    kind: &'a Kind,
    r: &mut Reader<'a>,
    kept: &[u64; SLOTS],
    pointer_size: usize,
) -> Result<Value<'a>, PayloadError> {
    Ok(match kind {
        Kind::Bool32 => Value::Bool(r.u32("")? != 0),
        Kind::Bool8 => Value::Bool(r.u8("")? != 0),
        Kind::Char => Value::Char(r.u16("")?),
        Kind::I8 => Value::Int(r.i8("")?.into()),
        Kind::I16 => Value::Int(r.i16("")?.into()),
        Kind::I32 => Value::Int(r.i32("")?.into()),
        Kind::I64 => Value::Int(r.i64("")?),
        Kind::U8 => Value::UInt(r.u8("")?.into()),
        Kind::U16 => Value::UInt(r.u16("")?.into()),
        Kind::U32 => Value::UInt(r.u32("")?.into()),
        Kind::U64 => Value::UInt(r.u64("")?),
        Kind::F32 => Value::F32(r.f32("")?),
        Kind::F64 => Value::F64(r.f64("")?),
        Kind::Hex64 => Value::Hex(r.u64("")?),
        Kind::Pointer => Value::Hex(pointer(r, pointer_size)?),
        Kind::Size => Value::UInt(pointer(r, pointer_size)?),
        Kind::Utf16z => Value::Utf16(r.utf16z("")?),
        Kind::Utf8z => Value::Utf8(utf8z(r)?),
        Kind::Utf8Counted => {
            let length = r.u16("")?;
            Value::Utf8(r.bytes(length.into(), "")?)
        }
        Kind::VarInt => {
            let zigzag = r.varu64("")?;
            Value::Int((zigzag >> 1).cast_signed() ^ -(zigzag & 1).cast_signed())
        }
        Kind::VarUInt => Value::UInt(r.varu64("")?),
        Kind::Guid => Value::Guid(r.guid("")?),
        Kind::Decimal => Value::Decimal(Decimal::from_bytes(r.array("")?)),
        Kind::FileTime => Value::Time(FileTime(r.u64("")?)),
        Kind::Object(defs) => {
            let inside = r.clone();
            skip(kind, r, kept, pointer_size)?;
            Value::Object(Fields::new(defs, inside, pointer_size))
        }
        Kind::Array(element, length) => {
            let n = count(*length, r, kept)?;
            elements(element, n, r, pointer_size)?
        }
        Kind::Utf8Unit => Value::Utf8(r.bytes(1, "")?),
        // Only a field of the payload itself can look elsewhere in it.
        Kind::Located(..) | Kind::Opaque => {
            return Err(r.error("", DecodeErrorKind::Invalid("is of a type that is not known")).into());
        }
    })
}

/// Reads so many elements and goes behind them.
fn elements<'a>(
    element: &'a Kind,
    n: usize,
    r: &mut Reader<'a>,
    pointer_size: usize,
) -> Result<Value<'a>, PayloadError> {
    Ok(match element {
        Kind::U8 => Value::Bytes(r.bytes(n, "")?),
        Kind::Utf8Unit => Value::Utf8(r.bytes(n, "")?),
        Kind::Char => Value::Utf16(Utf16::new(r.bytes(n.saturating_mul(2), "")?)),
        _ => {
            let elements = Elements { kind: element, reader: r.clone(), left: n, pointer_size };
            skip_elements(element, n, r, pointer_size)?;
            Value::Array(elements)
        }
    })
}

fn pointer(r: &mut Reader<'_>, pointer_size: usize) -> Result<u64, PayloadError> {
    Ok(if pointer_size == 4 { r.u32("")?.into() } else { r.u64("")? })
}

fn utf8z<'a>(r: &mut Reader<'a>) -> Result<&'a [u8], PayloadError> {
    let Some(length) = r.rest().iter().position(|byte| *byte == 0) else {
        return Err(r.error("", DecodeErrorKind::Unterminated).into());
    };
    let text = r.bytes(length, "")?;
    r.u8("")?;
    Ok(text)
}

fn count(length: Length, r: &mut Reader<'_>, kept: &[u64; SLOTS]) -> Result<usize, PayloadError> {
    let count = match length {
        Length::Counted => u64::from(r.u16("")?),
        Length::Fixed(n) => u64::from(n),
        Length::Kept(slot) => kept.get(usize::from(slot)).copied().unwrap_or_default(),
    };
    Ok(usize::try_from(count).unwrap_or(usize::MAX))
}

/// Goes behind a value, and sees to it that it can be read.
fn skip<'a>(
    kind: &'a Kind,
    r: &mut Reader<'a>,
    kept: &[u64; SLOTS],
    pointer_size: usize,
) -> Result<(), PayloadError> {
    if let Some(size) = kind.size(pointer_size) {
        r.bytes(size, "")?;
        return Ok(());
    }
    match kind {
        Kind::Object(defs) => {
            let mut kept = [0; SLOTS];
            for def in defs {
                let walked = match def.keep {
                    Some(_) => {
                        value(&def.kind, r, &kept, pointer_size).map(|value| keep(def, &value, &mut kept))
                    }
                    None => skip(&def.kind, r, &kept, pointer_size),
                };
                walked.map_err(|error| error.in_field(&def.name))?;
            }
        }
        Kind::Array(element, length) => {
            let n = count(*length, r, kept)?;
            skip_elements(element, n, r, pointer_size)?;
        }
        _ => {
            value(kind, r, kept, pointer_size)?;
        }
    }
    Ok(())
}

fn skip_elements<'a>(
    element: &'a Kind,
    n: usize,
    r: &mut Reader<'a>,
    pointer_size: usize,
) -> Result<(), PayloadError> {
    match element.size(pointer_size) {
        Some(0) if n > 0 => Err(without_bytes(r)),
        Some(size) => {
            r.bytes(size.saturating_mul(n), "")?;
            Ok(())
        }
        None => {
            let n = u32::try_from(n).unwrap_or(u32::MAX);
            for index in 0..n {
                let before = r.remaining();
                skip(element, r, &[0; SLOTS], pointer_size).map_err(|error| error.in_element(index))?;
                if r.remaining() == before {
                    return Err(without_bytes(r));
                }
            }
            Ok(())
        }
    }
}

#[cold]
fn without_bytes(r: &Reader<'_>) -> PayloadError {
    r.error("", DecodeErrorKind::Invalid("is an array of elements without bytes")).into()
}
