//! Conversion from and to the UTF-16 strings of Windows calls.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::windows::ffi::{OsStrExt, OsStringExt};

/// Converts a string to zero-terminated UTF-16.
///
/// # Errors
/// If the string contains a zero.
pub(crate) fn wide(text: &OsStr) -> io::Result<Vec<u16>> {
    let mut units: Vec<u16> = text.encode_wide().collect();
    if units.contains(&0) {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    units.push(0);
    Ok(units)
}

/// Converts UTF-16 units up to the first zero.
pub(crate) fn from_wide(units: &[u16]) -> OsString {
    let text = units.split(|unit| *unit == 0).next().unwrap_or_default();
    OsString::from_wide(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_round_trips() {
        for text in ["", "x", r"\\.\pipe\grün 🦀"] {
            assert_eq!(from_wide(&wide(OsStr::new(text)).unwrap()), OsStr::new(text));
        }
        assert_eq!(wide(OsStr::new("a\0b")).unwrap_err().kind(), io::ErrorKind::InvalidInput);
    }
}
