//! Envelopes: numbered fields with their sizes, as all bodies but the handshake's are made.
//!
//! | bytes | |
//! | --- | --- |
//! | `u16` | number of fields |
//! | `u16` | a field's id |
//! | `i32` | size of its value |
//! | … | value |
//!
//! Values: strings are UTF-8 without an end, and what is no UTF-8 becomes U+FFFD; a byte and a bool (not 0) have 1 byte, an `i32` 4, an `i64` 8. A list has
//! an `i32` number of elements, each an envelope, or for strings an `i32` length and UTF-8. What is null, and an empty list,
//! is no field; an empty string is one of size 0.
//!
//! Where real decoders differ (measured; dotnet/sdk 10.0.401):
//!
//! | input | there | here |
//! | --- | --- | --- |
//! | unknown field | skipped | skipped |
//! | unknown field that runs past the end | accepted | an error |
//! | known field with another size than its type | read by type, what follows is misread | read by size: what is too short is an error, what is left over is ignored |
//! | list with a wrong size | accepted | an error |
//! | a field twice | the last one counts | the same |
//! | bytes after the last field | ignored | ignored |
//! | invalid UTF-8 | U+FFFD | the same |

use runtap_wire::{DecodeError, DecodeErrorKind, Reader, Writer};

/// A value of a field.
pub(crate) trait Value: Sized {
    fn read(reader: &mut Reader<'_>, what: &'static str) -> Result<Self, DecodeError>;
    fn write(&self, writer: &mut Writer);
}

impl Value for String {
    fn read(reader: &mut Reader<'_>, what: &'static str) -> Result<Self, DecodeError> {
        let bytes = reader.bytes(reader.remaining(), what)?;
        Ok(Self::from_utf8_lossy(bytes).into_owned())
    }

    fn write(&self, writer: &mut Writer) {
        writer.bytes(self.as_bytes());
    }
}

macro_rules! scalars {
    ($($type:ty: $read:ident),*) => {$(
        impl Value for $type {
            fn read(reader: &mut Reader<'_>, what: &'static str) -> Result<Self, DecodeError> {
                reader.$read(what)
            }

            fn write(&self, writer: &mut Writer) {
                writer.$read(*self);
            }
        }
    )*};
}

scalars!(u8: u8, i32: i32, i64: i64);

impl Value for bool {
    fn read(reader: &mut Reader<'_>, what: &'static str) -> Result<Self, DecodeError> {
        Ok(reader.u8(what)? != 0)
    }

    fn write(&self, writer: &mut Writer) {
        writer.u8(u8::from(*self));
    }
}

/// An element of a list.
pub(crate) trait Element: Sized {
    fn read_element(reader: &mut Reader<'_>, what: &'static str) -> Result<Self, DecodeError>;
    fn write_element(&self, writer: &mut Writer);
}

impl Element for String {
    fn read_element(reader: &mut Reader<'_>, what: &'static str) -> Result<Self, DecodeError> {
        let size = size(reader, what)?;
        Self::read(&mut reader.sub(size, what)?, what)
    }

    fn write_element(&self, writer: &mut Writer) {
        sized(writer, |writer| self.write(writer));
    }
}

/// A field as it stands in a message: there or not.
pub(crate) trait Slot {
    fn read_into(&mut self, reader: &mut Reader<'_>, what: &'static str) -> Result<(), DecodeError>;
    /// Whether it is written.
    fn is_there(&self) -> bool;
    fn write_value(&self, writer: &mut Writer);
}

impl<T: Value> Slot for Option<T> {
    fn read_into(&mut self, reader: &mut Reader<'_>, what: &'static str) -> Result<(), DecodeError> {
        *self = Some(T::read(reader, what)?);
        Ok(())
    }

    fn is_there(&self) -> bool {
        self.is_some()
    }

    fn write_value(&self, writer: &mut Writer) {
        if let Some(value) = self {
            value.write(writer);
        }
    }
}

impl<T: Element> Slot for Vec<T> {
    fn read_into(&mut self, reader: &mut Reader<'_>, what: &'static str) -> Result<(), DecodeError> {
        let count = size(reader, what)?;
        self.clear();
        for _ in 0..count {
            // Each takes two bytes at least, so that a number that is too large ends soon.
            self.push(T::read_element(reader, what)?);
        }
        Ok(())
    }

    fn is_there(&self) -> bool {
        !self.is_empty()
    }

    fn write_value(&self, writer: &mut Writer) {
        writer.i32(saturated(self.len()));
        for element in self {
            element.write_element(writer);
        }
    }
}

/// A size or a number of elements, which is never negative.
pub(crate) fn size(reader: &mut Reader<'_>, what: &'static str) -> Result<usize, DecodeError> {
    let place = reader.clone();
    let size = reader.i32(what)?;
    usize::try_from(size)
        .map_err(|_negative| place.error(what, DecodeErrorKind::Invalid("a size is negative")))
}

/// Writes a size and what it is the size of.
pub(crate) fn sized(writer: &mut Writer, write: impl FnOnce(&mut Writer)) {
    let at = writer.len();
    writer.i32(0);
    write(writer);
    let size = saturated(writer.len() - at - 4);
    writer.patch_u32(at, size.cast_unsigned());
}

/// More than that is refused when the frame is made.
fn saturated(size: usize) -> i32 {
    i32::try_from(size).unwrap_or(i32::MAX)
}

/// Writes one field of an envelope.
pub(crate) fn write_field(writer: &mut Writer, id: u16, slot: &impl Slot) {
    if slot.is_there() {
        writer.u16(id);
        sized(writer, |writer| slot.write_value(writer));
    }
}

/// Reads the fields of an envelope: `field` gets the id and a reader of just the value.
pub(crate) fn read_fields<'a>(
    reader: &mut Reader<'a>,
    mut field: impl FnMut(u16, &mut Reader<'a>) -> Result<(), DecodeError>,
) -> Result<(), DecodeError> {
    let count = reader.u16("number of fields")?;
    for _ in 0..count {
        let id = reader.u16("field id")?;
        let size = size(reader, "size of a field")?;
        field(id, &mut reader.sub(size, "value of a field")?)?;
    }
    Ok(())
}

/// A message made of an envelope. The fields stand in the order in which they are written.
macro_rules! envelope {
    (
        $(#[$meta:meta])*
        pub struct $name:ident {
            $( $(#[$field_meta:meta])* $id:literal $field:ident: $type:ty, )*
        }
    ) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Default, PartialEq, Eq)]
        pub struct $name {
            $( $(#[$field_meta])* pub $field: $type, )*
        }

        impl $name {
            /// The names of the fields, by their ids, in the order in which they are written.
            pub const FIELDS: &'static [(u16, &'static str)] = &[$( ($id, stringify!($field)), )*];

            pub(crate) fn read(reader: &mut ::runtap_wire::Reader<'_>) -> Result<Self, ::runtap_wire::DecodeError> {
                let mut message = Self::default();
                $crate::field::read_fields(reader, |id, value| match id {
                    $( $id => $crate::field::Slot::read_into(&mut message.$field, value, stringify!($field)), )*
                    // Added since, or not yet known.
                    _ => Ok(()),
                })?;
                Ok(message)
            }

            pub(crate) fn write(&self, writer: &mut ::runtap_wire::Writer) {
                let there = [$( $crate::field::Slot::is_there(&self.$field), )*];
                let count = there.iter().filter(|there| **there).count();
                writer.u16(u16::try_from(count).unwrap_or(u16::MAX));
                $( $crate::field::write_field(writer, $id, &self.$field); )*
            }
        }

        impl $crate::field::Element for $name {
            fn read_element(
                reader: &mut ::runtap_wire::Reader<'_>,
                _: &'static str,
            ) -> Result<Self, ::runtap_wire::DecodeError> {
                Self::read(reader)
            }

            fn write_element(&self, writer: &mut ::runtap_wire::Writer) {
                self.write(writer);
            }
        }
    };
}

pub(crate) use envelope;
