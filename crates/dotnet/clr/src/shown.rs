//! Names as shown in lines and messages.

use std::borrow::Cow;

/// The maximum length in bytes of the name of a provider, event or field. A definition has the name once, but millions of small
/// events may refer to it.
pub(crate) const LONGEST_NAME: usize = 256;

/// Truncates a long name and appends `…`.
pub(crate) fn shown(name: &str) -> Cow<'_, str> {
    if name.len() <= LONGEST_NAME {
        return Cow::Borrowed(name);
    }
    let beginning = name.get(..name.floor_char_boundary(LONGEST_NAME)).unwrap_or_default();
    Cow::Owned(format!("{beginning}…"))
}
