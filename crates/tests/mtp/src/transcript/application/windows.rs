//! Arguments as text.

use std::ffi::{OsStr, OsString};

/// Returns a word with all occurrences of `text` replaced; a word that is not valid Unicode is unchanged.
pub(super) fn replaced(word: &OsStr, text: &str, by: &str) -> OsString {
    word.to_str().map_or_else(|| word.to_owned(), |word| word.replace(text, by).into())
}
