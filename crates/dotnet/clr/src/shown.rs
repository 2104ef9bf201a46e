//! Names as lines and messages show them.

use std::borrow::Cow;

/// The bytes of a name that are shown: of a provider, an event or a field. A definition has the name, of which there may be
/// millions of events of a few bytes each.
pub(crate) const LONGEST_NAME: usize = 256;

/// A name as it is shown: of a longer one the beginning, and `…`.
pub(crate) fn shown(name: &str) -> Cow<'_, str> {
    if name.len() <= LONGEST_NAME {
        return Cow::Borrowed(name);
    }
    let beginning = name.get(..name.floor_char_boundary(LONGEST_NAME)).unwrap_or_default();
    Cow::Owned(format!("{beginning}…"))
}
