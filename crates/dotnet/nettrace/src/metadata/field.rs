//! The fields of a payload: names and types, as in definitions. Source: nettrace format, "type codes".
//! Does not decode payloads.

/// One field of a payload, or of an object in it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Field {
    /// The name of the field.
    pub name: String,
    /// The encoding of the field.
    pub field_type: FieldType,
}

impl Field {
    /// Creates a field.
    pub fn new(name: impl Into<String>, field_type: FieldType) -> Self {
        Self { name: name.into(), field_type }
    }
}

/// The encoding of a field; everything is little-endian and packed.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum FieldType {
    /// 1: fields in sequence.
    Object(Vec<Field>),
    /// 3: 4 bytes, 0 is false.
    Bool,
    /// 4: one UTF-16 unit.
    Char,
    /// 5: 1 byte.
    I8,
    /// 6: 1 byte.
    U8,
    /// 7: 2 bytes.
    I16,
    /// 8: 2 bytes.
    U16,
    /// 9: 4 bytes.
    I32,
    /// 10: 4 bytes.
    U32,
    /// 11: 8 bytes.
    I64,
    /// 12: 8 bytes.
    U64,
    /// 13: 4 bytes.
    F32,
    /// 14: 8 bytes.
    F64,
    /// 15: 16 bytes.
    Decimal,
    /// 16: 8 bytes, a Windows FILETIME (100 ns since 1601, UTC), unlike the format's specification.
    DateTime,
    /// 17: 16 bytes.
    Guid,
    /// 18: UTF-16 with a final NUL unit.
    String,
    /// 19: a `u16` count, then elements.
    Array(Box<Self>),
    /// 20, Nettrace 6: a signed LEB128 integer in zig-zag form, at most 10 bytes.
    VarInt,
    /// 21, Nettrace 6: an unsigned LEB128 integer, at most 10 bytes.
    VarUInt,
    /// 22, Nettrace 6: a fixed number of elements, without a count in the payload. Decoders must limit the number: nested
    /// arrays of elements without bytes multiply.
    FixedArray(Box<Self>, u16),
    /// 23, Nettrace 6: one byte of UTF-8 text; a string is an [`Array`](Self::Array) of such bytes. `record-trace` of
    /// one-collect writes a complete string (`u16` count, then bytes) with this code alone.
    Utf8Unit,
    /// 24, Nettrace 6: a `u32`; low 16 bits: the offset of the data from the end of this field; high 16 bits: the size of
    /// the data in bytes. The data are elements of a fixed size.
    RelLoc(Box<Self>),
    /// 25, Nettrace 6: like 24, with the offset from the start of the payload.
    DataLoc(Box<Self>),
    /// 26, Nettrace 6: 1 byte, 0 is false.
    Bool8,
    /// An unknown code. The rest of the payload cannot be decoded.
    Other(u32),
}

/// Codes of types with further data in their encoding.
pub(crate) mod code {
    pub(crate) const OBJECT: u32 = 1;
    pub(crate) const ARRAY: u32 = 19;
    pub(crate) const FIXED_ARRAY: u32 = 22;
    pub(crate) const REL_LOC: u32 = 24;
    pub(crate) const DATA_LOC: u32 = 25;
}

impl FieldType {
    /// Returns the encoded type code.
    pub fn code(&self) -> u32 {
        match self {
            Self::Object(_) => code::OBJECT,
            Self::Bool => 3,
            Self::Char => 4,
            Self::I8 => 5,
            Self::U8 => 6,
            Self::I16 => 7,
            Self::U16 => 8,
            Self::I32 => 9,
            Self::U32 => 10,
            Self::I64 => 11,
            Self::U64 => 12,
            Self::F32 => 13,
            Self::F64 => 14,
            Self::Decimal => 15,
            Self::DateTime => 16,
            Self::Guid => 17,
            Self::String => 18,
            Self::Array(_) => code::ARRAY,
            Self::VarInt => 20,
            Self::VarUInt => 21,
            Self::FixedArray(..) => code::FIXED_ARRAY,
            Self::Utf8Unit => 23,
            Self::RelLoc(_) => code::REL_LOC,
            Self::DataLoc(_) => code::DATA_LOC,
            Self::Bool8 => 26,
            Self::Other(code) => *code,
        }
    }

    /// Returns the encoded size of all values of this type in bytes. `None` if the size varies.
    ///
    /// ```
    /// use runtap_nettrace::{Field, FieldType};
    ///
    /// let point = FieldType::Object(vec![Field::new("x", FieldType::I32), Field::new("y", FieldType::I32)]);
    /// assert_eq!(FieldType::FixedArray(Box::new(point), 3).fixed_size(), Some(24));
    /// assert_eq!(FieldType::String.fixed_size(), None);
    /// ```
    pub fn fixed_size(&self) -> Option<usize> {
        Some(match self {
            Self::Object(fields) => {
                return fields
                    .iter()
                    .try_fold(0_usize, |sum, field| sum.checked_add(field.field_type.fixed_size()?));
            }
            Self::I8 | Self::U8 | Self::Utf8Unit | Self::Bool8 => 1,
            Self::Char | Self::I16 | Self::U16 => 2,
            Self::Bool | Self::I32 | Self::U32 | Self::F32 | Self::RelLoc(_) | Self::DataLoc(_) => 4,
            Self::I64 | Self::U64 | Self::F64 | Self::DateTime => 8,
            Self::Decimal | Self::Guid => 16,
            Self::FixedArray(element, n) => return element.fixed_size()?.checked_mul(usize::from(*n)),
            Self::String | Self::Array(_) | Self::VarInt | Self::VarUInt | Self::Other(_) => return None,
        })
    }

    /// Returns the type with a code that no further data follows, in any version.
    pub(crate) fn plain(code: u32) -> Self {
        match code {
            3 => Self::Bool,
            4 => Self::Char,
            5 => Self::I8,
            6 => Self::U8,
            7 => Self::I16,
            8 => Self::U16,
            9 => Self::I32,
            10 => Self::U32,
            11 => Self::I64,
            12 => Self::U64,
            13 => Self::F32,
            14 => Self::F64,
            15 => Self::Decimal,
            16 => Self::DateTime,
            17 => Self::Guid,
            18 => Self::String,
            other => Self::Other(other),
        }
    }

    /// Returns the type with a code that no further data follows, in Nettrace 6.
    pub(crate) fn plain_v6(code: u32) -> Self {
        match code {
            20 => Self::VarInt,
            21 => Self::VarUInt,
            23 => Self::Utf8Unit,
            26 => Self::Bool8,
            other => Self::plain(other),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_round_trip() {
        for code in 0..300 {
            assert_eq!(FieldType::plain_v6(code).code(), code);
            assert_eq!(FieldType::plain(code).code(), code);
        }
        assert_eq!(FieldType::plain(20), FieldType::Other(20), "not before Nettrace 6");
    }

    #[test]
    fn sizes() {
        let array = |element| FieldType::Array(Box::new(element));
        let object =
            |types: Vec<FieldType>| FieldType::Object(types.into_iter().map(|t| Field::new("", t)).collect());
        let many = |element, n| FieldType::FixedArray(Box::new(element), n);
        assert_eq!(object(vec![FieldType::Guid, FieldType::Bool8, FieldType::Bool]).fixed_size(), Some(21));
        assert_eq!(object(vec![FieldType::Guid, array(FieldType::U8)]).fixed_size(), None);
        assert_eq!(object(vec![]).fixed_size(), Some(0));
        assert_eq!(many(many(FieldType::I64, u16::MAX), u16::MAX).fixed_size(), Some(65_535 * 65_535 * 8));
        assert_eq!(many(FieldType::VarInt, 2).fixed_size(), None);
        let mut huge = FieldType::U8;
        for _ in 0..5 {
            huge = many(huge, u16::MAX);
        }
        assert_eq!(huge.fixed_size(), None, "beyond any payload");
        assert_eq!(FieldType::DataLoc(Box::new(FieldType::U16)).fixed_size(), Some(4));
    }
}
