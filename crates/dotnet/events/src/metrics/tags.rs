//! Tags of measurements: equal tags in any order belong to one series. Compares tags without copies, and formats them.

use std::fmt::{self, Display, Write as _};
use std::hash::{Hash, Hasher};

use hashbrown::Equivalent;

use crate::number::invariant;

/// The most tags that are sorted without allocating.
const INLINE: usize = 12;

/// The value of a tag.
#[derive(Debug, Clone, Copy)]
pub enum TagValue<'a> {
    /// A string.
    Text(&'a str),
    /// An integer.
    Integer(i64),
    /// A floating-point number.
    Float(f64),
    /// A boolean.
    Bool(bool),
}

/// A tag: its name and value, for example `("route", "/orders".into())`.
pub type Tag<'a> = (&'a str, TagValue<'a>);

macro_rules! from {
    ($($type:ty => $variant:ident $value:ident $convert:expr),* $(,)?) => {$(
        impl From<$type> for TagValue<'_> {
            fn from($value: $type) -> Self {
                Self::$variant($convert)
            }
        }
    )*};
}

from! {
    i64 => Integer value value,
    i32 => Integer value i64::from(value),
    u32 => Integer value i64::from(value),
    u16 => Integer value i64::from(value),
    f64 => Float value value,
    bool => Bool value value,
}

impl<'a> From<&'a str> for TagValue<'a> {
    fn from(value: &'a str) -> Self {
        Self::Text(value)
    }
}

impl<'a> From<&'a String> for TagValue<'a> {
    fn from(value: &'a String) -> Self {
        Self::Text(value)
    }
}

impl PartialEq for TagValue<'_> {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Text(one), Self::Text(other)) => one == other,
            (Self::Integer(one), Self::Integer(other)) => one == other,
            (Self::Float(one), Self::Float(other)) => one.to_bits() == other.to_bits(),
            (Self::Bool(one), Self::Bool(other)) => one == other,
            _ => false,
        }
    }
}

impl Eq for TagValue<'_> {}

impl Hash for TagValue<'_> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        match self {
            Self::Text(value) => value.hash(state),
            Self::Integer(value) => value.hash(state),
            Self::Float(value) => value.to_bits().hash(state),
            Self::Bool(value) => value.hash(state),
        }
    }
}

/// Formats a value as .NET does.
impl Display for TagValue<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(value) => f.write_str(value),
            Self::Integer(value) => value.fmt(f),
            Self::Float(value) => f.write_str(&invariant(*value)),
            Self::Bool(value) => f.write_str(if *value { "True" } else { "False" }),
        }
    }
}

/// Formats tags as `name=value,…`, in the given order.
pub(super) fn text(tags: &[Tag<'_>]) -> String {
    let mut text = String::new();
    for (name, value) in tags {
        let separator = if text.is_empty() { "" } else { "," };
        let _ = write!(text, "{separator}{name}={value}");
    }
    text
}

/// Calls `then` with the tags sorted by name; tags with equal names keep their order.
pub(super) fn sorted<T>(tags: &[Tag<'_>], then: impl FnOnce(&[Tag<'_>]) -> T) -> T {
    if tags.is_sorted_by_key(|(name, _)| *name) {
        return then(tags);
    }
    let mut inline = [("", TagValue::Bool(false)); INLINE];
    if let Some(copy) = inline.get_mut(..tags.len()) {
        copy.copy_from_slice(tags);
        copy.sort_by_key(|(name, _)| *name);
        return then(copy);
    }
    let mut copy = tags.to_vec();
    copy.sort_by_key(|(name, _)| *name);
    then(&copy)
}

/// Tags sorted by name, for finding a series.
#[derive(Debug, Hash)]
pub(super) struct Key<'a>(pub(super) &'a [Tag<'a>]);

/// An owned version of such tags.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct OwnedKey(Box<[(Box<str>, OwnedValue)]>);

#[derive(Debug, Clone, PartialEq, Eq)]
enum OwnedValue {
    Text(Box<str>),
    Integer(i64),
    /// The bits of a number.
    Float(u64),
    Bool(bool),
}

impl OwnedValue {
    fn borrow(&self) -> TagValue<'_> {
        match self {
            Self::Text(value) => TagValue::Text(value),
            Self::Integer(value) => TagValue::Integer(*value),
            Self::Float(value) => TagValue::Float(f64::from_bits(*value)),
            Self::Bool(value) => TagValue::Bool(*value),
        }
    }
}

impl Key<'_> {
    pub(super) fn to_owned(&self) -> OwnedKey {
        let own = |(name, value): &Tag<'_>| {
            let value = match *value {
                TagValue::Text(value) => OwnedValue::Text(value.into()),
                TagValue::Integer(value) => OwnedValue::Integer(value),
                TagValue::Float(value) => OwnedValue::Float(value.to_bits()),
                TagValue::Bool(value) => OwnedValue::Bool(value),
            };
            (Box::from(*name), value)
        };
        OwnedKey(self.0.iter().map(own).collect())
    }
}

impl Hash for OwnedKey {
    fn hash<H: Hasher>(&self, state: &mut H) {
        // Hashes equally to a slice of tags.
        let tags: Vec<Tag<'_>> = self.0.iter().map(|(name, value)| (&**name, value.borrow())).collect();
        Key(&tags).hash(state);
    }
}

impl Equivalent<OwnedKey> for Key<'_> {
    fn equivalent(&self, key: &OwnedKey) -> bool {
        self.0.len() == key.0.len()
            && self
                .0
                .iter()
                .zip(&key.0)
                .all(|(one, (name, value))| one.0 == &**name && one.1 == value.borrow())
    }
}

#[cfg(test)]
mod tests {
    use std::hash::BuildHasher;

    use super::*;

    #[test]
    fn tags_are_one_key_in_any_order() {
        let tags: [Tag<'_>; 3] = [("b", 1.into()), ("a", "x".into()), ("c", 1.5.into())];
        let mut other = tags;
        other.reverse();
        let hasher = foldhash::fast::RandomState::default();
        let key = sorted(&tags, |tags| Key(tags).to_owned());
        sorted(&other, |tags| {
            assert_eq!(text(tags), "a=x,b=1,c=1.5");
            assert!(Key(tags).equivalent(&key));
            assert_eq!(hasher.hash_one(Key(tags)), hasher.hash_one(&key));
        });
        let many: Vec<String> = (0..40).rev().map(|n| format!("{n:02}")).collect();
        let many: Vec<Tag<'_>> = many.iter().map(|name| (name.as_str(), true.into())).collect();
        sorted(&many, |tags| assert!(text(tags).starts_with("00=True,01=True,")));
    }

    #[test]
    fn different_values_are_different() {
        let key = |value| Key(&[("a", value)]).to_owned();
        assert_ne!(key(1.into()), key(1.0.into()));
        assert_ne!(key("1".into()), key(1.into()));
        assert_eq!(key(f64::NAN.into()), key(f64::NAN.into()));
    }
}
