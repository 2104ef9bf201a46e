//! Modified UTF-8, the encoding of strings in class files (JVMS 4.4.7).
//!
//! [`Text`] has the bytes with an exact and a lossy view; [`encode`] encodes a Rust string. NUL is `C0 80`,
//! characters beyond the basic plane are two surrogates of three bytes each, and lone surrogates are legal. Invalid
//! bytes are preserved; only the views report or replace them.

use std::borrow::Cow;
use std::fmt::{self, Display, Write as _};

/// A string of a class file. Two strings are equal if their bytes are.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Text<'a>(&'a [u8]);

impl<'a> Text<'a> {
    /// Creates a string of these bytes.
    pub fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    /// Returns the bytes as in the file.
    pub fn as_bytes(self) -> &'a [u8] {
        self.0
    }

    /// Returns the UTF-16 units; `Err` is an invalid byte.
    pub fn units(self) -> impl Iterator<Item = Result<u16, u8>> + 'a {
        let mut rest = self.0;
        std::iter::from_fn(move || {
            let (&first, tail) = rest.split_first()?;
            let (unit, tail) = match (first, tail) {
                (0x01..0x80, _) => (Ok(u16::from(first)), tail),
                (0xc0..0xe0, [second @ 0x80..0xc0, tail @ ..]) => {
                    (Ok(u16::from(first & 0x1f) << 6 | u16::from(second & 0x3f)), tail)
                }
                (0xe0..0xf0, [second @ 0x80..0xc0, third @ 0x80..0xc0, tail @ ..]) => {
                    let low = u16::from(second & 0x3f) << 6 | u16::from(third & 0x3f);
                    (Ok(u16::from(first & 0x0f) << 12 | low), tail)
                }
                _ => (Err(first), tail),
            };
            rest = tail;
            Some(unit)
        })
    }

    /// Returns the string; `None` if it has lone surrogates or invalid bytes.
    pub fn to_str(self) -> Option<Cow<'a, str>> {
        if let Some(text) = self.plain() {
            return Some(Cow::Borrowed(text));
        }
        let units: Result<Vec<u16>, u8> = self.units().collect();
        String::from_utf16(&units.ok()?).ok().map(Cow::Owned)
    }

    /// Returns the string with U+FFFD in place of invalid parts.
    pub fn to_string_lossy(self) -> Cow<'a, str> {
        self.plain().map_or_else(|| Cow::Owned(self.to_string()), Cow::Borrowed)
    }

    /// Returns the string if it is ASCII without NUL, which is identical in both encodings and nearly always the
    /// case.
    fn plain(self) -> Option<&'a str> {
        let is_plain = self.0.iter().all(|byte| (0x01..0x80).contains(byte));
        is_plain.then(|| str::from_utf8(self.0).ok()).flatten()
    }
}

/// Formats the string with U+FFFD in place of invalid parts.
impl Display for Text<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(text) = self.plain() {
            return f.write_str(text);
        }
        // An invalid byte is displayed like a lone surrogate.
        let units = self.units().map(|unit| unit.unwrap_or(0xd800));
        char::decode_utf16(units)
            .try_for_each(|found| f.write_char(found.unwrap_or(char::REPLACEMENT_CHARACTER)))
    }
}

impl fmt::Debug for Text<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.to_string_lossy())
    }
}

/// Compares the bytes with the encoded form of `other`.
impl PartialEq<str> for Text<'_> {
    fn eq(&self, other: &str) -> bool {
        // Equal bytes suffice unless there is a NUL or a character of four bytes.
        (self.0 == other.as_bytes() && self.plain().is_some()) || *self.0 == *encode(other)
    }
}

impl PartialEq<&str> for Text<'_> {
    fn eq(&self, other: &&str) -> bool {
        self == *other
    }
}

/// Encodes a string in modified UTF-8.
pub fn encode(text: &str) -> Cow<'_, [u8]> {
    if text.bytes().all(|byte| (0x01..0x80).contains(&byte)) {
        return Cow::Borrowed(text.as_bytes());
    }
    let mut bytes = Vec::with_capacity(text.len() + 8);
    for unit in text.encode_utf16() {
        let [high, low] = unit.to_be_bytes();
        match unit {
            0x01..0x80 => bytes.push(low),
            0 | 0x80..0x800 => bytes.extend([0xc0 | high << 2 | low >> 6, 0x80 | low & 0x3f]),
            _ => bytes.extend([0xe0 | high >> 4, 0x80 | (high << 2 | low >> 6) & 0x3f, 0x80 | low & 0x3f]),
        }
    }
    Cow::Owned(bytes)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn nul_and_supplementary_characters_differ_from_utf_8() {
        assert_eq!(*encode("a\0é😀"), *b"a\xc0\x80\xc3\xa9\xed\xa0\xbd\xed\xb8\x80");
        let text = Text::new(b"a\xc0\x80\xc3\xa9\xed\xa0\xbd\xed\xb8\x80");
        assert_eq!(text.to_str().unwrap(), "a\0é😀");
        assert_eq!(text, "a\0é😀");
        assert!(Text::new("😀".as_bytes()) != "😀", "four bytes are no modified UTF-8");
    }

    #[test]
    fn invalid_bytes_are_kept_and_shown_as_replacement_characters() {
        let lone = Text::new(b"x\xed\xa0\xbdy");
        assert_eq!(lone.to_str(), None);
        assert_eq!(lone.to_string(), "x\u{fffd}y");
        assert_eq!(Text::new(b"a\xff\0b\xe0\x80").to_string(), "a\u{fffd}\u{fffd}b\u{fffd}\u{fffd}");
    }

    proptest! {
        #[test]
        fn strings_round_trip(text: String) {
            let bytes = encode(&text);
            prop_assert_eq!(Text::new(&bytes).to_str().unwrap(), text.as_str());
            prop_assert!(Text::new(&bytes) == text.as_str());
            prop_assert_eq!(Text::new(&bytes).to_string(), text);
        }

        #[test]
        fn no_bytes_cause_a_panic(bytes: Vec<u8>) {
            let text = Text::new(&bytes);
            prop_assert_eq!(text.to_str().is_none(), text.units().any(|unit| unit.is_err())
                || char::decode_utf16(text.units().flatten()).any(|found| found.is_err()));
            prop_assert!(text.to_string().chars().count() <= bytes.len());
        }
    }
}
