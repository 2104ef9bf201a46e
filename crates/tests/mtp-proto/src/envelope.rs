//! Reading and writing of message bodies: envelopes of fields, and the types that a field can have.
//!
//! [`envelope!`] generates a struct, its reader, its writer and its [`Schema`] from one list of fields. Fields are
//! written in the order of the list.

use runtap_wire::{DecodeError, DecodeErrorKind, Reader, Writer};

use crate::schema::{FieldKind, Schema};

/// Limits the number of list elements in one frame: an empty element takes two bytes on the wire and about a hundred in
/// memory.
#[derive(Debug)]
pub(crate) struct Budget {
    left: u32,
    limit: u32,
}

impl Budget {
    pub(crate) fn new(limit: u32) -> Self {
        Self { left: limit, limit }
    }

    pub(crate) fn take(
        &mut self,
        count: usize,
        at: &Reader<'_>,
        what: &'static str,
    ) -> Result<(), DecodeError> {
        let left =
            u32::try_from(count).ok().and_then(|count| self.left.checked_sub(count)).ok_or_else(|| {
                let used = u64::from(self.limit - self.left);
                let value = used.saturating_add(count as u64);
                at.error(what, DecodeErrorKind::TooLarge { value, limit: u64::from(self.limit) })
            })?;
        self.left = left;
        Ok(())
    }
}

/// A struct whose fields are numbered on the wire.
pub(crate) trait Envelope: Default {
    const SCHEMA: &'static Schema;

    /// Reads the field `id` from `value`, which holds all of its bytes. Unknown fields are skipped.
    fn read_field(&mut self, id: u16, value: Reader<'_>, budget: &mut Budget) -> Result<(), DecodeError>;

    /// Returns the number of fields that are set.
    fn field_count(&self) -> u16;

    fn write_fields(&self, writer: &mut Writer);

    /// Reads an envelope and leaves the bytes after the envelope in the reader.
    fn read(reader: &mut Reader<'_>, budget: &mut Budget) -> Result<Self, DecodeError> {
        let mut this = Self::default();
        for _ in 0..reader.u16("field count")? {
            let (id, value) = field(reader)?;
            this.read_field(id, value, budget)?;
        }
        Ok(this)
    }

    fn write(&self, writer: &mut Writer) {
        writer.u16(self.field_count());
        self.write_fields(writer);
    }
}

/// Reads the id and size of a field, and returns the id and a reader limited to the value.
pub(crate) fn field<'a>(reader: &mut Reader<'a>) -> Result<(u16, Reader<'a>), DecodeError> {
    let id = reader.u16("field id")?;
    let size = length(reader, "field size")?;
    Ok((id, reader.sub(size, "field value")?))
}

/// Rejects a second list for one field: it would replace the first, whose elements would be lost.
pub(crate) fn reject_second_list<T: Value>(
    before: Option<&T>,
    value: &Reader<'_>,
    what: &'static str,
) -> Result<(), DecodeError> {
    match (before, T::KIND) {
        (Some(_), FieldKind::Texts | FieldKind::List(_)) => {
            Err(value.error(what, DecodeErrorKind::Invalid("appears twice")))
        }
        _ => Ok(()),
    }
}

/// Reads a length or a count: a non-negative `i32`.
pub(crate) fn length(reader: &mut Reader<'_>, what: &'static str) -> Result<usize, DecodeError> {
    let at = reader.clone();
    let value = reader.i32(what)?;
    usize::try_from(value).map_err(|_negative| at.error(what, DecodeErrorKind::Invalid("is negative")))
}

/// Appends an `i32` length. If a length does not fit, neither does its frame, and [`crate::frame::finish`] rejects the
/// frame.
pub(crate) fn put_length(writer: &mut Writer, length: usize) {
    writer.u32(u32::try_from(length).unwrap_or(u32::MAX));
}

pub(crate) fn text(bytes: &[u8]) -> String {
    match std::str::from_utf8(bytes) {
        // The common case, three times as fast as the lossy conversion.
        Ok(text) => text.to_owned(),
        Err(_) => String::from_utf8_lossy(bytes).into_owned(),
    }
}

/// A type that the value of a field can have.
pub(crate) trait Value: Sized {
    const KIND: FieldKind;

    /// Reads the value from the start of `value`; bytes after it are ignored.
    fn read(value: Reader<'_>, what: &'static str, budget: &mut Budget) -> Result<Self, DecodeError>;

    /// Appends the value without its size.
    fn write(&self, writer: &mut Writer);

    /// Appends the size and the value.
    #[inline]
    fn write_sized(&self, writer: &mut Writer) {
        let at = writer.len();
        writer.u32(0);
        self.write(writer);
        let size = writer.len() - at - 4;
        writer.patch_u32(at, u32::try_from(size).unwrap_or(u32::MAX));
    }
}

/// Appends a field: id, size, value.
#[inline]
pub(crate) fn put_field(writer: &mut Writer, id: u16, value: &impl Value) {
    writer.u16(id);
    value.write_sized(writer);
}

impl Value for String {
    const KIND: FieldKind = FieldKind::Text;

    fn read(value: Reader<'_>, _: &'static str, _: &mut Budget) -> Result<Self, DecodeError> {
        Ok(text(value.rest()))
    }

    fn write(&self, writer: &mut Writer) {
        writer.bytes(self.as_bytes());
    }

    #[inline]
    fn write_sized(&self, writer: &mut Writer) {
        put_length(writer, self.len());
        writer.bytes(self.as_bytes());
    }
}

impl Value for bool {
    const KIND: FieldKind = FieldKind::Bool;

    fn read(mut value: Reader<'_>, what: &'static str, _: &mut Budget) -> Result<Self, DecodeError> {
        Ok(value.u8(what)? != 0)
    }

    fn write(&self, writer: &mut Writer) {
        writer.u8(u8::from(*self));
    }
}

impl Value for i32 {
    const KIND: FieldKind = FieldKind::Int;

    fn read(mut value: Reader<'_>, what: &'static str, _: &mut Budget) -> Result<Self, DecodeError> {
        value.i32(what)
    }

    fn write(&self, writer: &mut Writer) {
        writer.i32(*self);
    }
}

impl Value for i64 {
    const KIND: FieldKind = FieldKind::Long;

    fn read(mut value: Reader<'_>, what: &'static str, _: &mut Budget) -> Result<Self, DecodeError> {
        value.i64(what)
    }

    fn write(&self, writer: &mut Writer) {
        writer.i64(*self);
    }
}

impl Value for Vec<String> {
    const KIND: FieldKind = FieldKind::Texts;

    fn read(mut value: Reader<'_>, what: &'static str, budget: &mut Budget) -> Result<Self, DecodeError> {
        let start = value.clone();
        let count = length(&mut value, what)?;
        budget.take(count, &start, what)?;
        let mut all = Self::with_capacity(count.min(value.remaining() / 4));
        for _ in 0..count {
            let size = length(&mut value, what)?;
            all.push(text(value.bytes(size, what)?));
        }
        Ok(all)
    }

    fn write(&self, writer: &mut Writer) {
        put_length(writer, self.len());
        for element in self {
            put_length(writer, element.len());
            writer.bytes(element.as_bytes());
        }
    }
}

impl<T: Envelope> Value for Vec<T> {
    const KIND: FieldKind = FieldKind::List(T::SCHEMA);

    fn read(mut value: Reader<'_>, what: &'static str, budget: &mut Budget) -> Result<Self, DecodeError> {
        let start = value.clone();
        let count = length(&mut value, what)?;
        budget.take(count, &start, what)?;
        let mut all = Self::with_capacity(count.min(value.remaining() / 2));
        for _ in 0..count {
            all.push(T::read(&mut value, budget)?);
        }
        Ok(all)
    }

    fn write(&self, writer: &mut Writer) {
        put_length(writer, self.len());
        for element in self {
            element.write(writer);
        }
    }
}

/// Declares an envelope: for each field, its id, its name on the wire, and its name and type in the struct.
macro_rules! envelope {
    (
        $(#[$meta:meta])*
        pub struct $name:ident {
            $($(#[$of_field:meta])* $id:literal $wire:literal => $field:ident: $type:ty,)*
        }
    ) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
        pub struct $name {
            $($(#[$of_field])* #[doc = concat!("\n\nField ", $id, ", `", $wire, "`.")] pub $field: Option<$type>,)*
        }

        impl $crate::envelope::Envelope for $name {
            const SCHEMA: &'static $crate::schema::Schema = &$crate::schema::Schema {
                fields: &[$($crate::schema::FieldSpec {
                    id: $id,
                    name: $wire,
                    kind: <$type as $crate::envelope::Value>::KIND,
                }),*],
            };

            fn read_field(
                &mut self,
                id: u16,
                value: ::runtap_wire::Reader<'_>,
                budget: &mut $crate::envelope::Budget,
            ) -> Result<(), ::runtap_wire::DecodeError> {
                match id {
                    $($id => {
                        let what = concat!(stringify!($name), ".", $wire);
                        $crate::envelope::reject_second_list(self.$field.as_ref(), &value, what)?;
                        self.$field = Some($crate::envelope::Value::read(value, what, budget)?);
                    })*
                    _ => {}
                }
                Ok(())
            }

            fn field_count(&self) -> u16 {
                0 $(+ u16::from(self.$field.is_some()))*
            }

            fn write_fields(&self, writer: &mut ::runtap_wire::Writer) {
                $(if let Some(value) = &self.$field {
                    $crate::envelope::put_field(writer, $id, value);
                })*
            }
        }
    };
}

/// Declares a one-byte code with named values; unknown values are kept.
macro_rules! code {
    (
        $(#[$meta:meta])*
        pub struct $name:ident { $($(#[$of_value:meta])* $value:literal $text:literal => $constant:ident,)* }
    ) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub u8);

        impl $name {
            $($(#[$of_value])* pub const $constant: Self = Self($value);)*

            /// Returns the name of the value in the sources of Microsoft.Testing.Platform, or `None` if the value is
            /// unknown.
            pub fn name(self) -> Option<&'static str> {
                match self.0 {
                    $($value => Some($text),)*
                    _ => None,
                }
            }
        }

        impl ::std::fmt::Display for $name {
            fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                match self.name() {
                    Some(name) => f.write_str(name),
                    None => write!(f, "{}", self.0),
                }
            }
        }

        impl $crate::envelope::Value for $name {
            const KIND: $crate::schema::FieldKind = $crate::schema::FieldKind::Code(|value| $name(value).name());

            fn read(
                mut value: ::runtap_wire::Reader<'_>,
                what: &'static str,
                _: &mut $crate::envelope::Budget,
            ) -> Result<Self, ::runtap_wire::DecodeError> {
                Ok(Self(value.u8(what)?))
            }

            fn write(&self, writer: &mut ::runtap_wire::Writer) {
                writer.u8(self.0);
            }
        }
    };
}

pub(crate) use code;
pub(crate) use envelope;
