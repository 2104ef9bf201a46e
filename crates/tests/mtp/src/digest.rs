//! Digests of test ids, for cases where only the identity of tests matters: 16 bytes regardless of the length of the
//! id.
//!
//! The probability of a collision is negligible: about one in 2^64 applications with four billion tests. The hash does
//! not resist attacks, but a collision only merges the attacker's own tests.

use std::collections::{HashMap, HashSet};
use std::hash::BuildHasher as _;

use foldhash::fast::RandomState;

/// Two hashes of an id, with different keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Digest(u64, u64);

/// The keys of the digests, different for each collection.
#[derive(Debug, Clone, Default)]
struct Keys(RandomState, RandomState);

impl Keys {
    fn digest(&self, uid: &str) -> Digest {
        Digest(self.0.hash_one(uid), self.1.hash_one(uid))
    }
}

/// A map from test ids to values.
#[derive(Debug, Default)]
pub(crate) struct UidMap<V> {
    keys: Keys,
    values: HashMap<Digest, V, RandomState>,
}

impl<V: Default> UidMap<V> {
    /// Returns a short hash of a text, to compare texts of one test.
    pub(crate) fn hash(&self, text: &str) -> u32 {
        let [a, b, c, d, ..] = self.keys.0.hash_one(text).to_le_bytes();
        u32::from_le_bytes([a, b, c, d])
    }

    /// Returns the value of a test, and inserts a default value for an unknown test.
    pub(crate) fn entry(&mut self, uid: &str) -> &mut V {
        self.values.entry(self.keys.digest(uid)).or_default()
    }

    /// Returns the value of a test, or `None` for an unknown test.
    pub(crate) fn get(&self, uid: &str) -> Option<&V> {
        self.values.get(&self.keys.digest(uid))
    }

    /// Returns whether the test has a value.
    pub(crate) fn contains(&self, uid: &str) -> bool {
        self.values.contains_key(&self.keys.digest(uid))
    }

    /// Returns all values.
    pub(crate) fn values_mut(&mut self) -> impl Iterator<Item = &mut V> {
        self.values.values_mut()
    }
}

/// A set of test ids.
#[derive(Debug, Default)]
pub(crate) struct UidSet {
    keys: Keys,
    digests: HashSet<Digest, RandomState>,
}

impl UidSet {
    /// Adds a row of a test, without the test itself.
    pub(crate) fn insert_row(&mut self, uid: &str, name: &str) {
        self.digests.insert(self.row(uid, name));
    }

    /// Returns whether the set contains the row with this name.
    pub(crate) fn contains_row(&self, uid: &str, name: &str) -> bool {
        self.digests.contains(&self.row(uid, name))
    }

    fn row(&self, uid: &str, name: &str) -> Digest {
        let Keys(one, other) = &self.keys;
        Digest(one.hash_one((uid, name)), other.hash_one((uid, name)))
    }

    pub(crate) fn insert(&mut self, uid: &str) {
        self.digests.insert(self.keys.digest(uid));
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.digests.is_empty()
    }

    pub(crate) fn contains(&self, uid: &str) -> bool {
        self.digests.contains(&self.keys.digest(uid))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn different_ids_have_different_digests() {
        let (mut uids, mut counts) = (UidSet::default(), UidMap::<u32>::default());
        for number in 0..20_000 {
            uids.insert(&format!("test {number}"));
            for _ in 0..number % 3 {
                *counts.entry(&format!("test {number}")) += 1;
            }
        }
        assert_eq!(uids.digests.len(), 20_000);
        assert_eq!(counts.values.len(), 13_333);
        assert!(uids.contains("test 7") && !uids.contains("test 20000") && !uids.contains(""));
        assert_eq!((*counts.entry("test 8"), *counts.entry("test 9")), (2, 0));
    }

    #[test]
    fn the_two_hashes_have_different_keys() {
        let keys = Keys::default();
        let Digest(first, second) = keys.digest("a");
        assert_ne!(first, second);
    }
}
