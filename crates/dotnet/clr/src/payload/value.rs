//! Values of fields.

use std::fmt;

use runtap_wire::{Utf16, Uuid};

use super::read::{Elements, Object};

/// The value of a field. Integers of all sizes are widened. Texts and nested values borrow from the payload.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Value<'a> {
    /// A Boolean.
    Bool(bool),
    /// A UTF-16 code unit, possibly one half of a surrogate pair.
    Char(u16),
    /// A signed integer.
    Int(i64),
    /// An unsigned integer.
    UInt(u64),
    /// An unsigned integer that is usually shown in hexadecimal: an address, a handle, an identifier.
    Hex(u64),
    /// A floating-point number of 4 bytes.
    F32(f32),
    /// A floating-point number of 8 bytes.
    F64(f64),
    /// A decimal number.
    Decimal(Decimal),
    /// A point in time.
    Time(FileTime),
    /// A GUID.
    Guid(Uuid),
    /// Text, or an array of UTF-16 units.
    Utf16(Utf16<'a>),
    /// Text that should be UTF-8.
    Utf8(&'a [u8]),
    /// An array of bytes.
    Bytes(&'a [u8]),
    /// An object with named fields.
    Object(Object<'a>),
    /// An array of values of one type.
    Array(Elements<'a>),
}

impl Value<'_> {
    /// Returns the value as an unsigned integer. `None` if it is not one.
    pub fn as_u64(&self) -> Option<u64> {
        match self {
            Self::UInt(value) | Self::Hex(value) => Some(*value),
            Self::Int(value) => u64::try_from(*value).ok(),
            _ => None,
        }
    }

    /// Returns the value as a signed integer. `None` if it is not one.
    pub fn as_i64(&self) -> Option<i64> {
        match self {
            Self::Int(value) => Some(*value),
            Self::UInt(value) | Self::Hex(value) => i64::try_from(*value).ok(),
            _ => None,
        }
    }

    /// Returns the value as a floating-point number. `None` if it is not a number. Integers above 2^53 are rounded.
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

    /// Returns the value as text. `None` if it is not text. Invalid Unicode is replaced by U+FFFD.
    pub fn as_text(&self) -> Option<String> {
        match self {
            Self::Utf16(text) => Some(text.to_string()),
            Self::Utf8(text) => Some(String::from_utf8_lossy(text).into_owned()),
            _ => None,
        }
    }
}

/// A Windows FILETIME: the number of 100 ns intervals since 1601, UTC.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct FileTime(pub u64);

impl FileTime {
    /// Returns the nanoseconds since 1970, UTC. `None` outside the years 1677 to 2262.
    pub fn unix_ns(self) -> Option<i64> {
        /// The FILETIME of 1970.
        const EPOCH: i128 = 116_444_736_000_000_000;
        i64::try_from((i128::from(self.0) - EPOCH) * 100).ok()
    }
}

/// A .NET decimal: a 96-bit integer and a power of ten, as encoded (flags, high, low, middle word).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Decimal([u8; 16]);

impl Decimal {
    pub(super) fn from_bytes(bytes: [u8; 16]) -> Self {
        Self(bytes)
    }

    /// Returns the digits as an integer.
    pub fn digits(self) -> u128 {
        let [_, _, _, _, h0, h1, h2, h3, low @ ..] = self.0;
        u128::from(u32::from_le_bytes([h0, h1, h2, h3])) << 64 | u128::from(u64::from_le_bytes(low))
    }

    /// Returns the number of digits after the decimal point. 0 to 28 if valid.
    pub fn scale(self) -> u8 {
        let [_, _, scale, ..] = self.0;
        scale
    }

    /// Whether the number is negative.
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
