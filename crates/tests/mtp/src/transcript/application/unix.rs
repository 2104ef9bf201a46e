//! Arguments as bytes.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};

/// Returns a word with all occurrences of `text` replaced.
pub(super) fn replaced(word: &OsStr, text: &str, by: &str) -> OsString {
    let (mut rest, mut new) = (word.as_bytes(), Vec::new());
    while let [first, behind @ ..] = rest {
        rest = if let Some(behind) = rest.strip_prefix(text.as_bytes()) {
            new.extend_from_slice(by.as_bytes());
            behind
        } else {
            new.push(*first);
            behind
        };
    }
    OsString::from_vec(new)
}
