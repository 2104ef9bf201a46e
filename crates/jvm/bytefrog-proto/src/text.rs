//! Java strings on the wire: modified UTF-8, as `DataOutputStream.writeUTF` writes it.
//!
//! [`JavaStr`] borrows the bytes of such a string, and [`JavaString`] owns them. Both keep the bytes unchanged,
//! even invalid ones, so that a string is encoded exactly as it was received.
//!
//! Modified UTF-8 differs from UTF-8 in two ways: NUL is `C0 80`, and a character above U+FFFF is a pair of
//! surrogates with three bytes each. A surrogate without its other half is legal, and does occur (in thread names).

use std::fmt::{self, Write as _};

/// A borrowed string in modified UTF-8.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct JavaStr<'a>(&'a [u8]);

impl<'a> JavaStr<'a> {
    /// Creates a string of these bytes, which may be invalid: see [`is_valid`](Self::is_valid).
    pub fn from_bytes(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    /// Returns the bytes as on the wire, without a length.
    pub fn as_bytes(self) -> &'a [u8] {
        self.0
    }

    /// Returns whether Java's own reader (`DataInputStream.readUTF`) accepts the bytes.
    pub fn is_valid(self) -> bool {
        self.0.is_ascii() || Units(self.0).all(|unit| unit.is_some())
    }

    /// Returns the UTF-16 units of the string. An invalid byte is U+FFFD.
    pub fn units(self) -> impl Iterator<Item = u16> + 'a {
        Units(self.0).map(|unit| unit.unwrap_or(0xfffd))
    }
}

/// Formats the text. A lone surrogate and an invalid byte are U+FFFD.
impl fmt::Display for JavaStr<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for c in char::decode_utf16(self.units()) {
            f.write_char(c.unwrap_or(char::REPLACEMENT_CHARACTER))?;
        }
        Ok(())
    }
}

impl fmt::Debug for JavaStr<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.to_string())
    }
}

/// An owned string in modified UTF-8.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct JavaString(Vec<u8>);

impl JavaString {
    /// Creates a string from UTF-16 units, which may contain lone surrogates.
    pub fn from_units(units: impl IntoIterator<Item = u16>) -> Self {
        let mut bytes = Vec::new();
        for unit in units {
            push(&mut bytes, unit);
        }
        Self(bytes)
    }

    /// Borrows the string.
    pub fn as_java_str(&self) -> JavaStr<'_> {
        JavaStr(&self.0)
    }
}

impl From<&str> for JavaString {
    fn from(text: &str) -> Self {
        Self::from_units(text.encode_utf16())
    }
}

impl From<JavaStr<'_>> for JavaString {
    fn from(text: JavaStr<'_>) -> Self {
        Self(text.0.to_vec())
    }
}

impl fmt::Display for JavaString {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.as_java_str().fmt(f)
    }
}

impl fmt::Debug for JavaString {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.as_java_str().fmt(f)
    }
}

/// Appends one UTF-16 unit. The shifts and `& 0x3f` leave values that fit into a byte.
fn push(bytes: &mut Vec<u8>, unit: u16) {
    let low = |shift: u16| {
        let [_, low] = ((unit >> shift) & 0x3f | 0x80).to_be_bytes();
        low
    };
    match unit {
        1..=0x7f => bytes.extend(unit.to_be_bytes().last()),
        0 | 0x80..=0x7ff => bytes.extend([low(6) & 0x1f | 0xc0, low(0)]),
        _ => bytes.extend([low(12) & 0x0f | 0xe0, low(6), low(0)]),
    }
}

/// An iterator over UTF-16 units, with `None` for each invalid byte.
struct Units<'a>(&'a [u8]);

impl Iterator for Units<'_> {
    type Item = Option<u16>;

    fn next(&mut self) -> Option<Option<u16>> {
        let (unit, rest) = match *self.0 {
            [] => return None,
            [a @ 0..=0x7f, ref rest @ ..] => (Some(u16::from(a)), rest),
            [a @ 0xc0..=0xdf, b @ 0x80..=0xbf, ref rest @ ..] => {
                (Some(u16::from(a & 0x1f) << 6 | u16::from(b & 0x3f)), rest)
            }
            [a @ 0xe0..=0xef, b @ 0x80..=0xbf, c @ 0x80..=0xbf, ref rest @ ..] => {
                (Some(u16::from(a & 0x0f) << 12 | u16::from(b & 0x3f) << 6 | u16::from(c & 0x3f)), rest)
            }
            [_, ref rest @ ..] => (None, rest),
        };
        self.0 = rest;
        Some(unit)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn java_bytes() {
        assert_eq!(JavaString::from("a\0é€😀").0, b"a\xc0\x80\xc3\xa9\xe2\x82\xac\xed\xa0\xbd\xed\xb8\x80");
        assert_eq!(JavaString::from_units([0xd800]).0, [0xed, 0xa0, 0x80]);
        assert_eq!(JavaString::from_units([0xd800]).to_string(), "\u{fffd}");
    }

    #[test]
    fn bytes_that_java_rejects_are_invalid() {
        for bytes in [&[0x80][..], &[0xc3], &[0xc3, 0x41], &[0xe2, 0x82], &[0xf0, 0x9f, 0x98, 0x80], &[0xff]]
        {
            assert!(!JavaStr::from_bytes(bytes).is_valid(), "{bytes:x?}");
            assert!(JavaStr::from_bytes(bytes).to_string().starts_with('\u{fffd}'));
        }
        // Java reads a NUL byte and overlong encodings, but writes neither.
        assert!(JavaStr::from_bytes(&[0, 0xc1, 0x81]).is_valid());
    }

    proptest! {
        #[test]
        fn units_round_trip(units: Vec<u16>) {
            let text = JavaString::from_units(units.iter().copied());
            prop_assert!(text.as_java_str().is_valid());
            prop_assert_eq!(text.as_java_str().units().collect::<Vec<_>>(), units);
        }

        #[test]
        fn text_round_trips(text: String) {
            prop_assert_eq!(JavaString::from(text.as_str()).to_string(), text);
        }
    }
}
