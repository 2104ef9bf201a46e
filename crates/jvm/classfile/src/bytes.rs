//! Big-endian readers and writers for class files, and the trait of their structures.
//!
//! [`Input`] checks every read, and reports the offset of errors. [`Output`] remembers the first count that is too
//! large for its field. [`Layout`] decodes and encodes a structure; a macro implements it from a list of fields.
//! (The cursors of `runtap-wire` are little-endian, but its errors are used here.)

use runtap_wire::{DecodeError, DecodeErrorKind};
use thiserror::Error;

/// A reader of big-endian fields that tracks the offset in the file.
#[derive(Debug, Clone)]
pub(crate) struct Input<'a> {
    rest: &'a [u8],
    offset: usize,
}

impl<'a> Input<'a> {
    /// Creates a reader whose first byte is at `offset` of the file.
    pub(crate) fn at(bytes: &'a [u8], offset: usize) -> Self {
        Self { rest: bytes, offset }
    }

    pub(crate) fn offset(&self) -> usize {
        self.offset
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    pub(crate) fn rest(&self) -> &'a [u8] {
        self.rest
    }

    #[cold]
    pub(crate) fn error(&self, what: &'static str, kind: DecodeErrorKind) -> DecodeError {
        DecodeError::new(self.offset as u64, what, kind)
    }

    #[inline]
    pub(crate) fn array<const N: usize>(&mut self, what: &'static str) -> Result<[u8; N], DecodeError> {
        let Some((head, tail)) = self.rest.split_first_chunk::<N>() else {
            return Err(self.unexpected_end(what, N));
        };
        self.rest = tail;
        self.offset += N;
        Ok(*head)
    }

    #[inline]
    pub(crate) fn bytes(&mut self, n: usize, what: &'static str) -> Result<&'a [u8], DecodeError> {
        let Some((head, tail)) = self.rest.split_at_checked(n) else {
            return Err(self.unexpected_end(what, n));
        };
        self.rest = tail;
        self.offset += n;
        Ok(head)
    }

    /// Reads a four-byte length and that number of bytes.
    pub(crate) fn counted(&mut self, what: &'static str) -> Result<&'a [u8], DecodeError> {
        let mut ahead = self.clone();
        let length = usize::try_from(ahead.u32(what)?).unwrap_or(usize::MAX);
        let bytes = ahead.bytes(length, what)?;
        *self = ahead;
        Ok(bytes)
    }

    #[inline]
    pub(crate) fn u8(&mut self, what: &'static str) -> Result<u8, DecodeError> {
        Ok(u8::from_be_bytes(self.array(what)?))
    }

    #[inline]
    pub(crate) fn u16(&mut self, what: &'static str) -> Result<u16, DecodeError> {
        Ok(u16::from_be_bytes(self.array(what)?))
    }

    #[inline]
    pub(crate) fn i16(&mut self, what: &'static str) -> Result<i16, DecodeError> {
        Ok(i16::from_be_bytes(self.array(what)?))
    }

    #[inline]
    pub(crate) fn u32(&mut self, what: &'static str) -> Result<u32, DecodeError> {
        Ok(u32::from_be_bytes(self.array(what)?))
    }

    #[inline]
    pub(crate) fn i32(&mut self, what: &'static str) -> Result<i32, DecodeError> {
        Ok(i32::from_be_bytes(self.array(what)?))
    }

    /// Returns an error unless everything was read.
    pub(crate) fn finish(&self, what: &'static str) -> Result<(), DecodeError> {
        if self.is_empty() {
            return Ok(());
        }
        Err(self.error(what, DecodeErrorKind::TooLarge { value: self.rest.len() as u64, limit: 0 }))
    }

    #[cold]
    fn unexpected_end(&self, what: &'static str, needed: usize) -> DecodeError {
        let available = self.rest.len() as u64;
        self.error(what, DecodeErrorKind::UnexpectedEnd { needed: needed as u64, available })
    }
}

/// An error for a number that is too large for its field.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("{what} is {value}, but at most {limit} is allowed")]
pub struct TooMany {
    /// The field.
    pub what: &'static str,
    /// The number.
    pub value: usize,
    /// The largest number that fits.
    pub limit: usize,
}

/// A writer of big-endian fields.
#[derive(Debug, Default)]
pub(crate) struct Output {
    bytes: Vec<u8>,
    failure: Option<TooMany>,
    /// The current nesting of attributes.
    pub(crate) depth: u8,
}

impl Output {
    pub(crate) fn new() -> Self {
        Self::default()
    }

    pub(crate) fn len(&self) -> usize {
        self.bytes.len()
    }

    pub(crate) fn bytes(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    pub(crate) fn u8(&mut self, value: u8) {
        self.bytes.push(value);
    }

    pub(crate) fn u16(&mut self, value: u16) {
        self.bytes(&value.to_be_bytes());
    }

    pub(crate) fn u32(&mut self, value: u32) {
        self.bytes(&value.to_be_bytes());
    }

    pub(crate) fn i32(&mut self, value: i32) {
        self.bytes(&value.to_be_bytes());
    }

    /// Writes a count of two bytes.
    pub(crate) fn count16(&mut self, value: usize, what: &'static str) {
        let number = u16::try_from(value).unwrap_or_else(|_| self.fail(what, value, usize::from(u16::MAX)));
        self.u16(number);
    }

    /// Writes a count of one byte.
    pub(crate) fn count8(&mut self, value: usize, what: &'static str) {
        let number = u8::try_from(value).unwrap_or_else(|_| self.fail(what, value, usize::from(u8::MAX)));
        self.u8(number);
    }

    /// Writes the output of `write` after its length in four bytes.
    pub(crate) fn counted(&mut self, what: &'static str, write: impl FnOnce(&mut Self)) {
        let at = self.bytes.len();
        self.u32(0);
        write(self);
        let length = self.bytes.len().saturating_sub(at + 4);
        let length = u32::try_from(length)
            .unwrap_or_else(|_| self.fail(what, length, usize::try_from(u32::MAX).unwrap_or(0)));
        if let Some(field) = self.bytes.get_mut(at..at + 4) {
            field.copy_from_slice(&length.to_be_bytes());
        }
    }

    fn fail<T: Default>(&mut self, what: &'static str, value: usize, limit: usize) -> T {
        self.failure.get_or_insert(TooMany { what, value, limit });
        T::default()
    }

    /// Returns the written bytes, or an error for the first number that did not fit.
    pub(crate) fn finish(self) -> Result<Vec<u8>, TooMany> {
        self.failure.map_or(Ok(self.bytes), Err)
    }
}

/// A structure of a class file that can be decoded and encoded.
pub(crate) trait Layout<'a>: Sized {
    /// Decodes the structure; `what` is the name of its field, for errors.
    fn read(input: &mut Input<'a>, what: &'static str) -> Result<Self, DecodeError>;
    fn write(&self, output: &mut Output);
}

macro_rules! numbers {
    ($($number:ident),*) => {$(
        impl<'a> Layout<'a> for $number {
            fn read(input: &mut Input<'a>, what: &'static str) -> Result<Self, DecodeError> {
                input.$number(what)
            }

            fn write(&self, output: &mut Output) {
                output.bytes(&self.to_be_bytes());
            }
        }
    )*};
}

numbers!(u8, u16, u32, i32);

/// A table with a two-byte count.
impl<'a, T: Layout<'a>> Layout<'a> for Vec<T> {
    fn read(input: &mut Input<'a>, what: &'static str) -> Result<Self, DecodeError> {
        let count = input.u16(what)?;
        // Every entry has at least one byte, so no more entries are allocated than can be present.
        let mut table = Self::with_capacity(usize::from(count).min(input.rest.len()));
        for _ in 0..count {
            table.push(T::read(input, what)?);
        }
        Ok(table)
    }

    fn write(&self, output: &mut Output) {
        output.count16(self.len(), "table length");
        for entry in self {
            entry.write(output);
        }
    }
}

/// Defines structs of consecutive fields and implements [`Layout`] for them.
macro_rules! layouts {
    ($($(#[$meta:meta])* pub struct $name:ident $(<$life:lifetime>)? {
        $($(#[$field_meta:meta])* pub $field:ident: $type:ty,)*
    })*) => {$(
        $(#[$meta])*
        #[derive(Debug, Clone, PartialEq, Eq)]
        pub struct $name $(<$life>)? {
            $($(#[$field_meta])* pub $field: $type,)*
        }

        layouts! { @implement $name [$($life)?] $($field: $type,)* }
    )*};
    (@implement $name:ident [] $($field:ident: $type:ty,)*) => {
        impl<'a> $crate::bytes::Layout<'a> for $name {
            layouts! { @methods $($field: $type,)* }
        }
    };
    (@implement $name:ident [$life:lifetime] $($field:ident: $type:ty,)*) => {
        impl<$life> $crate::bytes::Layout<$life> for $name<$life> {
            fn read(
                input: &mut $crate::bytes::Input<$life>,
                _: &'static str,
            ) -> Result<Self, runtap_wire::DecodeError> {
                Ok(Self { $($field: $crate::bytes::Layout::read(input, stringify!($field))?,)* })
            }

            fn write(&self, output: &mut $crate::bytes::Output) {
                $($crate::bytes::Layout::write(&self.$field, output);)*
            }
        }
    };
    (@methods $($field:ident: $type:ty,)*) => {
        fn read(input: &mut $crate::bytes::Input<'a>, _: &'static str) -> Result<Self, runtap_wire::DecodeError> {
            Ok(Self { $($field: $crate::bytes::Layout::read(input, stringify!($field))?,)* })
        }

        fn write(&self, output: &mut $crate::bytes::Output) {
            $($crate::bytes::Layout::write(&self.$field, output);)*
        }
    };
}

pub(crate) use layouts;
