//! The string table: each text is stored once, in one allocation, and found by its hash. Strings are never removed or
//! changed.

use foldhash::fast::RandomState;
use hashbrown::HashTable;
use std::hash::BuildHasher;

/// A handle to a string of a [`StringTable`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StringHandle(pub(crate) u32);

impl StringHandle {
    /// Returns the index in the table. Indexes are dense, in the order of first use.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// A table of interned strings.
///
/// The hash has a random seed, because the texts come from the traced program.
#[derive(Debug, Clone, Default)]
pub struct StringTable {
    text: String,
    /// The end of each string in `text`; it starts at the end of the previous one.
    ends: Vec<usize>,
    index: HashTable<u32>,
    hasher: RandomState,
}

impl StringTable {
    /// Returns the handle of `text`, adding it if necessary.
    ///
    /// # Panics
    /// If there are more than 4,294,967,295 different strings.
    pub fn intern(&mut self, text: &str) -> StringHandle {
        let hash = self.hasher.hash_one(text);
        if let Some(&found) = self.index.find(hash, |&i| slice(&self.text, &self.ends, i) == text) {
            return StringHandle(found);
        }
        let new = next_index(self.ends.len());
        self.text.push_str(text);
        self.ends.push(self.text.len());
        let Self { text, ends, index, hasher } = self;
        index.insert_unique(hash, new, |&i| hasher.hash_one(slice(text, ends, i)));
        StringHandle(new)
    }

    /// Returns the text of `handle`.
    ///
    /// # Panics
    /// If the handle does not belong to this table.
    pub fn get(&self, handle: StringHandle) -> &str {
        slice(&self.text, &self.ends, handle.0)
    }

    /// Returns the number of strings.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Returns whether the table is empty.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }
}

#[expect(clippy::string_slice, reason = "the ends are ends of whole strings")]
fn slice<'a>(text: &'a str, ends: &[usize], index: u32) -> &'a str {
    let index = index as usize;
    let start = if index == 0 { 0 } else { ends[index - 1] };
    &text[start..ends[index]]
}

/// Returns the index of the next entry of a table that has `len` entries.
pub(crate) fn next_index(len: usize) -> u32 {
    u32::try_from(len).expect("fewer than 2^32 entries in a table")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_texts_share_a_handle() {
        let mut table = StringTable::default();
        let texts: Vec<String> = (0..5000).map(|i| format!("text {i}")).collect();
        let first: Vec<_> = texts.iter().map(|t| table.intern(t)).collect();
        let again: Vec<_> = texts.iter().map(|t| table.intern(t)).collect();
        assert_eq!(first, again);
        assert_eq!(table.len(), 5000);
        for (handle, text) in first.iter().zip(&texts) {
            assert_eq!(table.get(*handle), text);
        }
    }

    #[test]
    fn the_empty_string_and_other_planes_are_supported() {
        let mut table = StringTable::default();
        let empty = table.intern("");
        let face = table.intern("😀");
        assert_eq!((table.get(empty), table.get(face)), ("", "😀"));
        assert_eq!(table.intern(""), empty);
        assert_eq!((empty.index(), face.index()), (0, 1));
    }
}
