//! The values of fields.

use std::fmt;

use runtap_wire::{Utf16, Uuid};

use super::read::{Elements, Object};

/// The value of a field. Integers of all sizes are widened; texts and nested values borrow from the payload.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Value<'a> {
    /// Yes or no, of 1 or 4 bytes.
    Bool(bool),
    /// One UTF-16 unit, which may be half a character.
    Char(u16),
    /// A signed integer.
    Int(i64),
    /// An unsigned integer.
    UInt(u64),
    /// An unsigned integer that people know in hexadecimal: an address, a handle, an identifier.
    Hex(u64),
    /// A number of 4 bytes.
    F32(f32),
    /// A number of 8 bytes.
    F64(f64),
    /// A decimal number.
    Decimal(Decimal),
    /// A point in time.
    Time(FileTime),
    /// A GUID.
    Guid(Uuid),
    /// Text, or an array of UTF-16 units.
    Utf16(Utf16<'a>),
    /// Text, supposed to be UTF-8.
    Utf8(&'a [u8]),
    /// An array of bytes.
    Bytes(&'a [u8]),
    /// Named values.
    Object(Object<'a>),
    /// Values of one type.
    Array(Elements<'a>),
}

impl Value<'_> {
    /// The value as an unsigned integer, where it is one.
    pub fn as_u64(&self) -> Option<u64> {
        match self {
            Self::UInt(value) | Self::Hex(value) => Some(*value),
            Self::Int(value) => u64::try_from(*value).ok(),
            _ => None,
        }
    }

    /// The value as a signed integer, where it is one.
    pub fn as_i64(&self) -> Option<i64> {
        match self {
            Self::Int(value) => Some(*value),
            Self::UInt(value) | Self::Hex(value) => i64::try_from(*value).ok(),
            _ => None,
        }
    }

    /// The value as a number with a fraction, where it is a number; integers beyond 2^53 lose their last digits.
    #[expect(clippy::cast_precision_loss, reason = "told in the documentation")]
    pub fn as_f64(&self) -> Option<f64> {
        match self {
            Self::F64(value) => Some(*value),
            Self::F32(value) => Some(f64::from(*value)),
            Self::Int(value) => Some(*value as f64),
            Self::UInt(value) | Self::Hex(value) => Some(*value as f64),
            _ => None,
        }
    }

    /// The value as text, where it is text. What is no Unicode becomes U+FFFD.
    pub fn as_text(&self) -> Option<String> {
        match self {
            Self::Utf16(text) => Some(text.to_string()),
            Self::Utf8(text) => Some(String::from_utf8_lossy(text).into_owned()),
            _ => None,
        }
    }
}

/// A Windows FILETIME: units of 100 ns since 1601, UTC.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct FileTime(pub u64);

impl FileTime {
    /// Nanoseconds since 1970, UTC; `None` beyond the years 1677 to 2262.
    pub fn unix_ns(self) -> Option<i64> {
        /// 1970 in these units.
        const EPOCH: i128 = 116_444_736_000_000_000;
        i64::try_from((i128::from(self.0) - EPOCH) * 100).ok()
    }
}

/// A .NET decimal: a 96-bit integer and a power of ten, as on the wire (flags, high, low, middle word).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Decimal([u8; 16]);

impl Decimal {
    pub(super) fn from_bytes(bytes: [u8; 16]) -> Self {
        Self(bytes)
    }

    /// The digits.
    pub fn digits(self) -> u128 {
        let [_, _, _, _, h0, h1, h2, h3, low @ ..] = self.0;
        u128::from(u32::from_le_bytes([h0, h1, h2, h3])) << 64 | u128::from(u64::from_le_bytes(low))
    }

    /// How many of the digits stand behind the point: 0 to 28 in a real one.
    pub fn scale(self) -> u8 {
        let [_, _, scale, ..] = self.0;
        scale
    }

    /// Whether it is below zero.
    pub fn is_negative(self) -> bool {
        let [_, _, _, sign, ..] = self.0;
        sign & 0x80 != 0
    }
}

impl fmt::Display for Decimal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = if self.is_negative() { "-" } else { "" };
        let scale = usize::from(self.scale());
        let digits = format!("{:0width$}", self.digits(), width = scale + 1);
        // The text is at least one digit longer than the scale.
        let (whole, fraction) = digits.split_at(digits.len() - scale);
        let point = if scale == 0 { "" } else { "." };
        write!(f, "{sign}{whole}{point}{fraction}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimals() {
        let mut bytes = [0; 16];
        (bytes[2], bytes[3], bytes[8]) = (2, 0x80, 150);
        assert_eq!(Decimal::from_bytes(bytes).to_string(), "-1.50");
        (bytes[2], bytes[3], bytes[4]) = (0, 0, 1);
        assert_eq!(Decimal::from_bytes(bytes).to_string(), "18446744073709551766");
        bytes = [0; 16];
        (bytes[2], bytes[8]) = (3, 5);
        assert_eq!(Decimal::from_bytes(bytes).to_string(), "0.005");
    }

    #[test]
    fn file_times() {
        assert_eq!(FileTime(116_444_736_000_000_001).unix_ns(), Some(100));
        assert_eq!(FileTime(116_444_735_999_999_999).unix_ns(), Some(-100));
        assert_eq!(FileTime(u64::MAX).unix_ns(), None);
    }
}
