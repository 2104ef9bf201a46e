//! A bounds-checked cursor over bytes.

use crate::{DecodeError, DecodeErrorKind, Utf16, Uuid};

/// Reads little-endian fields from a slice. A field that does not fit is an error and does not move the cursor.
#[derive(Debug, Clone)]
pub struct Reader<'a> {
    rest: &'a [u8],
    /// Offset of `rest` in the stream.
    offset: u64,
}

macro_rules! fixed {
    ($($name:ident: $type:ty),* $(,)?) => {$(
        #[doc = concat!("Reads a little-endian `", stringify!($type), "`.")]
        #[inline]
        pub fn $name(&mut self, field: &'static str) -> Result<$type, DecodeError> {
            Ok(<$type>::from_le_bytes(self.array(field)?))
        }
    )*};
}

impl<'a> Reader<'a> {
    /// Creates a reader at offset 0.
    pub fn new(data: &'a [u8]) -> Self {
        Self::at(data, 0)
    }

    /// Creates a reader whose first byte is at `offset` in the stream. Errors contain stream offsets.
    pub fn at(data: &'a [u8], offset: u64) -> Self {
        Self { rest: data, offset }
    }

    /// Returns the stream offset of the next byte.
    #[inline]
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// Returns the bytes that have not been read yet.
    #[inline]
    pub fn rest(&self) -> &'a [u8] {
        self.rest
    }

    /// Returns the number of bytes that have not been read yet.
    #[inline]
    pub fn remaining(&self) -> usize {
        self.rest.len()
    }

    /// Returns whether all bytes have been read.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// Creates an error about a field that starts at the next byte.
    #[cold]
    pub fn error(&self, field: &'static str, kind: DecodeErrorKind) -> DecodeError {
        DecodeError::new(self.offset, field, kind)
    }

    /// Reads `N` bytes.
    #[inline]
    pub fn array<const N: usize>(&mut self, field: &'static str) -> Result<[u8; N], DecodeError> {
        match self.rest.split_first_chunk::<N>() {
            Some((head, tail)) => {
                self.rest = tail;
                self.offset += N as u64;
                Ok(*head)
            }
            None => Err(unexpected_end(self.offset, field, N as u64, self.rest)),
        }
    }

    /// Reads `n` bytes without copying them.
    #[inline]
    pub fn bytes(&mut self, n: usize, field: &'static str) -> Result<&'a [u8], DecodeError> {
        match self.rest.split_at_checked(n) {
            Some((head, tail)) => {
                self.rest = tail;
                self.offset += n as u64;
                Ok(head)
            }
            None => Err(unexpected_end(self.offset, field, n as u64, self.rest)),
        }
    }

    /// Returns a reader over the next `n` bytes and skips them in this reader.
    #[inline]
    pub fn sub(&mut self, n: usize, field: &'static str) -> Result<Self, DecodeError> {
        let offset = self.offset;
        Ok(Self::at(self.bytes(n, field)?, offset))
    }

    fixed! { u8: u8, u16: u16, u32: u32, u64: u64, i8: i8, i16: i16, i32: i32, i64: i64, f32: f32, f64: f64 }

    #[inline]
    /// Reads a GUID in .NET's layout: the first three fields are little-endian, the last eight bytes are in order.
    pub fn guid(&mut self, field: &'static str) -> Result<Uuid, DecodeError> {
        Ok(Uuid::from_bytes_le(self.array(field)?))
    }

    /// Reads an unsigned LEB128 integer of at most 5 bytes. Bits above 32 are an error.
    #[inline]
    pub fn varu32(&mut self, field: &'static str) -> Result<u32, DecodeError> {
        let start = self.clone();
        let value = self.varu64(field)?;
        u32::try_from(value).map_err(|_too_wide| {
            *self = start;
            self.error(field, DecodeErrorKind::TooLarge { value, limit: u64::from(u32::MAX) })
        })
    }

    /// Reads an unsigned LEB128 integer of at most 10 bytes. Bits above 64 are dropped: writers of negative time
    /// differences rely on it.
    #[inline]
    pub fn varu64(&mut self, field: &'static str) -> Result<u64, DecodeError> {
        let mut value = 0u64;
        for (i, byte) in self.rest.iter().take(10).enumerate() {
            value |= u64::from(byte & 0x7f) << (7 * i);
            if byte & 0x80 == 0 {
                self.rest = self.rest.get(i + 1..).unwrap_or_default();
                self.offset += i as u64 + 1;
                return Ok(value);
            }
        }
        Err(if self.rest.len() < 10 {
            unexpected_end(self.offset, field, self.rest.len() as u64 + 1, self.rest)
        } else {
            self.error(field, DecodeErrorKind::OverlongVarint { limit: 10 })
        })
    }

    /// Reads a NUL-terminated UTF-16 string and returns it without the NUL. The string may start at an odd offset.
    #[inline]
    pub fn utf16z(&mut self, field: &'static str) -> Result<Utf16<'a>, DecodeError> {
        let (units, _odd) = self.rest.as_chunks::<2>();
        match nul(units) {
            Some(n) => {
                let text = self.bytes(2 * n, field)?;
                self.bytes(2, field)?;
                Ok(Utf16::new(text))
            }
            None => Err(unexpected_end(self.offset, field, self.rest.len() as u64 + 2, self.rest)),
        }
    }

    /// Reads `n` UTF-16 units, the last of which must be NUL and is not returned. `None` if `n` is 0.
    pub fn utf16_counted(&mut self, n: u32, field: &'static str) -> Result<Option<Utf16<'a>>, DecodeError> {
        let mut probe = self.clone();
        let Some(text_units) = n.checked_sub(1) else { return Ok(None) };
        let bytes = usize::try_from(u64::from(text_units) * 2).unwrap_or(usize::MAX);
        if self.rest.len() < bytes.saturating_add(2) {
            return Err(unexpected_end(self.offset, field, u64::from(n) * 2, self.rest));
        }
        let text = probe.bytes(bytes, field)?;
        if probe.u16(field)? != 0 {
            return Err(self.error(field, DecodeErrorKind::Unterminated));
        }
        *self = probe;
        Ok(Some(Utf16::new(text)))
    }
}

/// Takes no reference to the reader: passing one to a function that is not inlined would force the reader into memory
/// in every reading loop.
#[cold]
fn unexpected_end(offset: u64, field: &'static str, needed: u64, rest: &[u8]) -> DecodeError {
    DecodeError::new(offset, field, DecodeErrorKind::UnexpectedEnd { needed, available: rest.len() as u64 })
}

/// Returns the index of the first NUL unit. Checks eight units at a time because recordings contain many long names.
#[inline(never)]
fn nul(units: &[[u8; 2]]) -> Option<usize> {
    let (blocks, _) = units.as_chunks::<8>();
    // No branch per unit.
    let nuls = |block: &[[u8; 2]; 8]| block.iter().fold(0, |nuls, unit| nuls + u16::from(*unit == [0, 0]));
    let before = blocks.iter().take_while(|block| nuls(block) == 0).count() * 8;
    units.get(before..)?.iter().position(|unit| *unit == [0, 0]).map(|n| before + n)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::Writer;

    #[test]
    fn a_failed_read_names_field_and_offset_and_moves_nothing() {
        let mut reader = Reader::at(&[1, 2, 3], 100);
        assert_eq!(reader.u8("first").unwrap(), 1);
        let error = reader.u32("size").unwrap_err();
        assert_eq!(error.to_string(), "size at offset 101: needs 4 bytes, 2 are left");
        assert!(error.is_incomplete());
        assert_eq!(reader.u16("rest").unwrap(), 0x0302);
    }

    #[test]
    fn counted_strings() {
        let mut w = Writer::new();
        w.utf16_counted(Some("a😀")).utf16_counted(None).utf16_counted(Some(""));
        let bytes = w.into_bytes();
        assert_eq!(bytes, [4, 0, 0, 0, 97, 0, 0x3d, 0xd8, 0, 0xde, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0]);
        let mut r = Reader::new(&bytes);
        let n = r.u32("n").unwrap();
        assert_eq!(r.utf16_counted(n, "s").unwrap().unwrap().to_string(), "a😀");
        let n = r.u32("n").unwrap();
        assert_eq!(r.utf16_counted(n, "s").unwrap(), None);
        let n = r.u32("n").unwrap();
        assert_eq!(r.utf16_counted(n, "s").unwrap().unwrap().to_string(), "");
        assert!(r.is_empty());
    }

    #[test]
    fn a_count_that_would_wrap_in_32_bits_is_rejected() {
        let error = Reader::new(&[97, 0, 98, 0, 0, 0]).utf16_counted(0x8000_0003, "name").unwrap_err();
        assert_eq!(
            error.kind,
            DecodeErrorKind::UnexpectedEnd { needed: 0x1_0000_0006, available: 6 },
            "{error}"
        );
    }

    #[test]
    fn overlong_varint() {
        assert!(Reader::new(&[0x80; 9]).varu64("v").unwrap_err().is_incomplete());
        assert_eq!(
            Reader::new(&[0x80; 12]).varu64("v").unwrap_err().kind,
            DecodeErrorKind::OverlongVarint { limit: 10 }
        );
    }

    proptest! {
        #[test]
       fn varints_round_trip(value: u64, narrow: u32) {
            let mut w = Writer::new();
            w.varu64(value).varu32(narrow);
            let bytes = w.into_bytes();
            let mut r = Reader::new(&bytes);
            prop_assert_eq!(r.varu64("v").unwrap(), value);
            prop_assert_eq!(r.varu32("v").unwrap(), narrow);
            prop_assert!(r.is_empty());
        }

        #[test]
        fn any_prefix_of_a_varint_is_incomplete(value: u64) {
            let mut w = Writer::new();
            w.varu64(value);
            let bytes = w.into_bytes();
            for n in 0..bytes.len() {
                prop_assert!(Reader::new(&bytes[..n]).varu64("v").unwrap_err().is_incomplete());
            }
        }

        #[test]
       fn strings_round_trip(text in "[^\0]*") {
            let mut w = Writer::new();
            w.utf16z(&text).utf16_counted(Some(&text));
            let bytes = w.into_bytes();
            let mut r = Reader::new(&bytes);
            prop_assert_eq!(r.utf16z("s").unwrap().to_string(), text.clone());
            let n = r.u32("n").unwrap();
            prop_assert_eq!(r.utf16_counted(n, "s").unwrap().unwrap().to_string(), text);
        }
    }
}
