//! Reads fields by their layout.
//!
//! The time per payload is bounded by its length: except for a constant number of steps per event or array element, every step reads
//! at least one byte. Arrays of elements without bytes, and definitions with many fields without bytes (`weight.rs`), are rejected.

use std::slice;

use runtap_wire::{DecodeErrorKind, Reader, Utf16};

use super::PayloadError;
use super::schema::{FieldDef, FieldKind, From, Layout, Length, SLOTS};
use super::value::{Decimal, FileTime, Value};

/// An iterator over the fields of a payload or of an object: name and value.
///
/// Stops after the first error.
#[derive(Debug, Clone)]
pub struct Fields<'a> {
    defs: slice::Iter<'a, FieldDef>,
    reader: Reader<'a>,
    kept: [u64; SLOTS],
    /// All bytes, for values stored elsewhere in the payload, and how many bytes such values have used. Valid ones do not overlap.
    whole: &'a [u8],
    located: usize,
}

impl<'a> Fields<'a> {
    #[inline]
    pub(super) fn new(defs: &'a [FieldDef], whole: &'a [u8]) -> Self {
        Self { defs: defs.iter(), reader: Reader::new(whole), kept: [0; SLOTS], whole, located: 0 }
    }

    /// Reads a field that refers to its elements elsewhere in the payload.
    #[inline(never)]
    fn located(mut self, element: &'a FieldKind, from: From) -> Result<(Value<'a>, Self), PayloadError> {
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
        let element_size = element.size().filter(|size| *size > 0);
        let Some(n) = element_size.map(|each| size / each) else {
            return Err(field.error("", DecodeErrorKind::Invalid("has elements of no fixed size")).into());
        };
        let offset = u64::try_from(base + place).unwrap_or(u64::MAX);
        Ok((elements(element, n, &mut Reader::at(bytes, offset))?, self))
    }

    /// Returns the value of the field with this name. `None` if it does not exist or can't be read.
    pub fn get(mut self, name: &str) -> Option<Value<'a>> {
        self.find_map(|field| field.ok().filter(|(known, _)| *known == name)).map(|(_, value)| value)
    }

    /// Returns the bytes that were not read. After the last field, remaining bytes belong to a newer version of the event.
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
        if self.reader.is_empty() && def.optional {
            self.defs = [].iter();
            return None;
        }
        let value = match &def.kind {
            FieldKind::Located(element, from) => {
                self.clone().located(element, *from).map(|(value, fields)| {
                    *self = fields;
                    value
                })
            }
            kind => value(kind, &mut self.reader, self.kept),
        };
        let value = match value {
            Ok(value) => value,
            Err(error) => return Some(Err(self.fail(def, error))),
        };
        keep(def, value.as_u64(), &mut self.kept);
        Some(Ok((&def.name, value)))
    }

    /// Like repeated calls of [`Self::next`], but passes each value directly to `visit`, so that the compiler knows its variant.
    #[inline]
    fn for_each<F: FnMut(Self::Item)>(mut self, mut visit: F) {
        while let Some(def) = self.defs.next() {
            if self.reader.is_empty() && def.optional {
                return;
            }
            let mut take = |value: Value<'a>| {
                let length = if def.keep.is_some() { value.as_u64() } else { None };
                visit(Ok((&*def.name, value)));
                length
            };
            let length = match &def.kind {
                FieldKind::Located(element, from) => {
                    self.clone().located(element, *from).map(|(value, fields)| {
                        self = fields;
                        take(value)
                    })
                }
                kind => read(kind, &mut self.reader, self.kept, take),
            };
            match length {
                Ok(length) => keep(def, length, &mut self.kept),
                Err(error) => return visit(Err(self.fail(def, error))),
            }
        }
    }
}

/// An object inside a payload. Its bytes have been validated, so reading the fields does not fail.
#[derive(Debug, Clone, Copy)]
pub struct Object<'a> {
    // A single pointer keeps `Value` small.
    layout: &'a Layout,
    bytes: &'a [u8],
}

impl<'a> Object<'a> {
    /// Returns all fields in order.
    pub fn fields(self) -> Fields<'a> {
        Fields::new(self.layout.fields(), self.bytes)
    }

    /// Returns the value of the field with this name.
    pub fn get(self, name: &str) -> Option<Value<'a>> {
        self.fields().get(name)
    }
}

/// The elements of an array. Its bytes have been validated, so reading them does not fail.
#[derive(Debug, Clone)]
pub struct Elements<'a> {
    kind: &'a FieldKind,
    bytes: &'a [u8],
    left: u32,
}

impl<'a> Elements<'a> {
    /// Returns the elements as objects. Empty if they are not objects.
    pub fn objects(self) -> impl Iterator<Item = Object<'a>> {
        self.filter_map(|value| match value {
            Value::Object(object) => Some(object),
            _ => None,
        })
    }
}

impl<'a> Iterator for Elements<'a> {
    type Item = Value<'a>;

    fn next(&mut self) -> Option<Value<'a>> {
        self.left = self.left.checked_sub(1)?;
        let mut r = Reader::new(self.bytes);
        let value = value(self.kind, &mut r, [0; SLOTS]).ok();
        self.bytes = r.rest();
        value
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let left = usize::try_from(self.left).unwrap_or(usize::MAX);
        (left, Some(left))
    }
}

impl ExactSizeIterator for Elements<'_> {}

#[inline]
fn keep(def: &FieldDef, length: Option<u64>, kept: &mut [u64; SLOTS]) {
    if let Some(slot) = def.keep
        && let Some(place) = kept.get_mut(usize::from(slot))
    {
        *place = length.unwrap_or_default();
    }
}

/// Reads a value and advances the reader.
fn value<'a>(kind: &'a FieldKind, r: &mut Reader<'a>, kept: [u64; SLOTS]) -> Result<Value<'a>, PayloadError> {
    read(kind, r, kept, |value| value)
}

/// Reads a value, passes it to `take` and advances the reader.
///
/// Simple kinds are read here. Other kinds are read by a function that is not inlined, to which the reader is passed by value so
/// that it can stay in registers.
#[inline]
fn read<'a, T>(
    kind: &'a FieldKind,
    r: &mut Reader<'a>,
    kept: [u64; SLOTS],
    take: impl FnOnce(Value<'a>) -> T,
) -> Result<T, PayloadError> {
    Ok(match kind {
        FieldKind::Bool32 => take(Value::Bool(r.u32("")? != 0)),
        FieldKind::Bool8 => take(Value::Bool(r.u8("")? != 0)),
        FieldKind::Char => take(Value::Char(r.u16("")?)),
        FieldKind::I8 => take(Value::Int(r.i8("")?.into())),
        FieldKind::I16 => take(Value::Int(r.i16("")?.into())),
        FieldKind::I32 => take(Value::Int(r.i32("")?.into())),
        FieldKind::I64 => take(Value::Int(r.i64("")?)),
        FieldKind::U8 => take(Value::UInt(r.u8("")?.into())),
        FieldKind::U16 => take(Value::UInt(r.u16("")?.into())),
        FieldKind::U32 => take(Value::UInt(r.u32("")?.into())),
        FieldKind::U64 => take(Value::UInt(r.u64("")?)),
        FieldKind::F32 => take(Value::F32(r.f32("")?)),
        FieldKind::F64 => take(Value::F64(r.f64("")?)),
        FieldKind::Hex32 => take(Value::Hex(r.u32("")?.into())),
        FieldKind::Hex64 => take(Value::Hex(r.u64("")?)),
        FieldKind::Utf16z => take(Value::Utf16(r.utf16z("")?)),
        FieldKind::Guid => take(Value::Guid(r.guid("")?)),
        kind => {
            let (value, behind) = other_value(kind, r.clone(), kept)?;
            *r = behind;
            take(value)
        }
    })
}

#[inline(never)]
fn other_value<'a>(
    kind: &'a FieldKind,
    mut r: Reader<'a>,
    kept: [u64; SLOTS],
) -> Result<(Value<'a>, Reader<'a>), PayloadError> {
    let value = match kind {
        FieldKind::Utf8z => Value::Utf8(utf8z(&mut r)?),
        FieldKind::Utf8Counted => {
            let length = r.u16("")?;
            Value::Utf8(r.bytes(length.into(), "")?)
        }
        FieldKind::VarInt => {
            let zigzag = r.varu64("")?;
            Value::Int((zigzag >> 1).cast_signed() ^ -(zigzag & 1).cast_signed())
        }
        FieldKind::VarUInt => Value::UInt(r.varu64("")?),
        FieldKind::Decimal => Value::Decimal(Decimal::from_bytes(r.array("")?)),
        FieldKind::FileTime => Value::Time(FileTime(r.u64("")?)),
        FieldKind::Object(layout) => {
            let bytes = passed(&mut r, |r| skip(kind, r, kept))?;
            Value::Object(Object { layout, bytes })
        }
        FieldKind::Array(element, length) => {
            let n = count(*length, &mut r, kept)?;
            elements(element, n, &mut r)?
        }
        FieldKind::Utf8Unit => Value::Utf8(r.bytes(1, "")?),
        // Only top-level fields can refer to bytes elsewhere. Simple kinds are read by the caller.
        _ => return Err(r.error("", DecodeErrorKind::Invalid("has an unknown type")).into()),
    };
    Ok((value, r))
}

/// Reads `n` elements and advances the reader.
fn elements<'a>(element: &'a FieldKind, n: usize, r: &mut Reader<'a>) -> Result<Value<'a>, PayloadError> {
    Ok(match element {
        FieldKind::U8 => Value::Bytes(r.bytes(n, "")?),
        FieldKind::Utf8Unit => Value::Utf8(r.bytes(n, "")?),
        FieldKind::Char => Value::Utf16(Utf16::new(r.bytes(n.saturating_mul(2), "")?)),
        _ => {
            let bytes = passed(r, |r| skip_elements(element, n, r))?;
            // Each element has at least one byte, so the count fits.
            Value::Array(Elements { kind: element, bytes, left: u32::try_from(n).unwrap_or(u32::MAX) })
        }
    })
}

/// Returns the bytes over which `pass` advances the reader.
fn passed<'a>(
    r: &mut Reader<'a>,
    pass: impl FnOnce(&mut Reader<'a>) -> Result<(), PayloadError>,
) -> Result<&'a [u8], PayloadError> {
    let before = r.rest();
    pass(r)?;
    Ok(before.get(..before.len() - r.remaining()).unwrap_or_default())
}

fn utf8z<'a>(r: &mut Reader<'a>) -> Result<&'a [u8], PayloadError> {
    let Some(length) = r.rest().iter().position(|byte| *byte == 0) else {
        return Err(r.error("", DecodeErrorKind::Unterminated).into());
    };
    let text = r.bytes(length, "")?;
    r.u8("")?;
    Ok(text)
}

fn count(length: Length, r: &mut Reader<'_>, kept: [u64; SLOTS]) -> Result<usize, PayloadError> {
    let count = match length {
        Length::Counted => u64::from(r.u16("")?),
        Length::Fixed(n) => u64::from(n),
        Length::Kept(slot) => kept.get(usize::from(slot)).copied().unwrap_or_default(),
    };
    Ok(usize::try_from(count).unwrap_or(usize::MAX))
}

/// Validates a value and advances the reader.
fn skip<'a>(kind: &'a FieldKind, r: &mut Reader<'a>, kept: [u64; SLOTS]) -> Result<(), PayloadError> {
    if let Some(size) = kind.size() {
        r.bytes(size, "")?;
        return Ok(());
    }
    match kind {
        FieldKind::Object(layout) => {
            let mut kept = [0; SLOTS];
            for def in layout.fields() {
                let walked = match def.keep {
                    Some(_) => value(&def.kind, r, kept).map(|value| keep(def, value.as_u64(), &mut kept)),
                    None => skip(&def.kind, r, kept),
                };
                walked.map_err(|error| error.in_field(&def.name))?;
            }
        }
        FieldKind::Array(element, length) => {
            let n = count(*length, r, kept)?;
            skip_elements(element, n, r)?;
        }
        _ => {
            value(kind, r, kept)?;
        }
    }
    Ok(())
}

fn skip_elements<'a>(element: &'a FieldKind, n: usize, r: &mut Reader<'a>) -> Result<(), PayloadError> {
    match element.size() {
        Some(0) if n > 0 => Err(without_bytes(r)),
        Some(size) => {
            r.bytes(size.saturating_mul(n), "")?;
            Ok(())
        }
        None => {
            let n = u32::try_from(n).unwrap_or(u32::MAX);
            for index in 0..n {
                let before = r.remaining();
                skip(element, r, [0; SLOTS]).map_err(|error| error.in_element(index))?;
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
