//! Words that are text.

use std::ffi::{OsStr, OsString};

/// A word with some text in the place of another one; what is no text is left as it is.
pub(super) fn replaced(word: &OsStr, text: &str, by: &str) -> OsString {
    word.to_str().map_or_else(|| word.to_owned(), |word| word.replace(text, by).into())
}
