//! Borrowed UTF-16 text that is decoded on demand.

use std::fmt;

/// A string of little-endian UTF-16 units without the terminating NUL. Unpaired surrogates are displayed as U+FFFD.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Utf16<'a> {
    units: &'a [[u8; 2]],
}

impl<'a> Utf16<'a> {
    /// Creates a string from `bytes`. An odd last byte is ignored.
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { units: bytes.as_chunks().0 }
    }

    /// Returns the number of UTF-16 units.
    pub fn len(self) -> usize {
        self.units.len()
    }

    /// Returns whether the string is empty.
    pub fn is_empty(self) -> bool {
        self.units.is_empty()
    }

    /// Returns the encoded bytes.
    pub fn as_bytes(self) -> &'a [u8] {
        self.units.as_flattened()
    }

    /// Returns an iterator over the UTF-16 units.
    pub fn units(self) -> impl Iterator<Item = u16> + Clone + 'a {
        self.units.iter().map(|unit| u16::from_le_bytes(*unit))
    }

    /// Returns an iterator over the characters, with unpaired surrogates replaced by U+FFFD.
    pub fn chars(self) -> impl Iterator<Item = char> + Clone + 'a {
        char::decode_utf16(self.units()).map(|c| c.unwrap_or(char::REPLACEMENT_CHARACTER))
    }

    /// Returns the text up to the first NUL unit, which is how C code reads it.
    #[must_use]
    pub fn until_nul(self) -> Self {
        let n = self.units.iter().position(|unit| *unit == [0, 0]).unwrap_or(self.units.len());
        Self { units: self.units.get(..n).unwrap_or(self.units) }
    }

    /// Appends the text to `out` as UTF-8.
    pub fn push_to(self, out: &mut String) {
        // Names are nearly always ASCII, so one cheap check per unit avoids decoding surrogates.
        if self.units.iter().all(|[low, high]| *high == 0 && low.is_ascii()) {
            out.extend(self.units.iter().map(|[low, _]| char::from(*low)));
        } else {
            out.extend(self.chars());
        }
    }
}

impl fmt::Display for Utf16<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = String::with_capacity(self.len());
        self.push_to(&mut text);
        f.pad(&text)
    }
}

impl fmt::Debug for Utf16<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.to_string(), f)
    }
}

impl PartialEq<str> for Utf16<'_> {
    fn eq(&self, other: &str) -> bool {
        self.units().eq(other.encode_utf16())
    }
}

impl PartialEq<&str> for Utf16<'_> {
    fn eq(&self, other: &&str) -> bool {
        *self == **other
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unpaired_surrogates_are_replaced() {
        let text = Utf16::new(&[0x3d, 0xd8, 97, 0]);
        assert_eq!(text.to_string(), "\u{fffd}a");
    }

    #[test]
    fn compares_with_text_and_truncates_at_nul() {
        let text = Utf16::new(&[97, 0, 0, 0, 98, 0]);
        assert_eq!(text.until_nul(), "a");
        assert_eq!(text.len(), 3);
    }
}
