//! UTF-16 as the calls want it. Refuses to lose anything: what can't be a name is an error.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::windows::ffi::{OsStrExt, OsStringExt};

/// With the zero at its end.
///
/// # Errors
/// For a text with a zero in it, which would be cut there.
pub(crate) fn wide(text: &OsStr) -> io::Result<Vec<u16>> {
    let mut units: Vec<u16> = text.encode_wide().collect();
    if units.contains(&0) {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    units.push(0);
    Ok(units)
}

/// Up to the first zero.
pub(crate) fn from_wide(units: &[u16]) -> OsString {
    let text = units.split(|unit| *unit == 0).next().unwrap_or_default();
    OsString::from_wide(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_comes_back() {
        for text in ["", "x", r"\\.\pipe\grün 🦀"] {
            assert_eq!(from_wide(&wide(OsStr::new(text)).unwrap()), OsStr::new(text));
        }
        assert_eq!(wide(OsStr::new("a\0b")).unwrap_err().kind(), io::ErrorKind::InvalidInput);
    }
}
