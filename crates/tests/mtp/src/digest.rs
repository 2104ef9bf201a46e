//! What is remembered of the id of a test where only its identity matters: 16 bytes, however long the id is.
//!
//! Two ids of one application have the same digest once in 2^64 applications of four thousand million tests. The hash is not
//! made to withstand somebody who looks for such ids; who does makes his own tests count as one.

use std::collections::{HashMap, HashSet};
use std::hash::BuildHasher as _;

use foldhash::fast::RandomState;

/// Two hashes of an id, by different keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Digest(u64, u64);

/// The keys of the digests, others in each map.
#[derive(Debug, Clone, Default)]
struct Keys(RandomState, RandomState);

impl Keys {
    fn digest(&self, uid: &str) -> Digest {
        Digest(self.0.hash_one(uid), self.1.hash_one(uid))
    }
}

/// Values by the ids of tests.
#[derive(Debug, Default)]
pub(crate) struct ByUid<V> {
    keys: Keys,
    values: HashMap<Digest, V, RandomState>,
}

impl<V: Default> ByUid<V> {
    /// A short hash of any text, to compare texts of one test with each other.
    pub(crate) fn hash(&self, text: &str) -> u32 {
        let [a, b, c, d, ..] = self.keys.0.hash_one(text).to_le_bytes();
        u32::from_le_bytes([a, b, c, d])
    }

    /// The value of a test; a new one if there is none.
    pub(crate) fn entry(&mut self, uid: &str) -> &mut V {
        self.values.entry(self.keys.digest(uid)).or_default()
    }

    /// Returns the value of a test; `None` if the test has no value.
    pub(crate) fn get(&self, uid: &str) -> Option<&V> {
        self.values.get(&self.keys.digest(uid))
    }

    /// Whether there is a value of a test.
    pub(crate) fn contains(&self, uid: &str) -> bool {
        self.values.contains_key(&self.keys.digest(uid))
    }

    /// All values.
    pub(crate) fn values_mut(&mut self) -> impl Iterator<Item = &mut V> {
        self.values.values_mut()
    }
}

/// A set of ids of tests.
#[derive(Debug, Default)]
pub(crate) struct Uids {
    keys: Keys,
    digests: HashSet<Digest, RandomState>,
}

impl Uids {
    /// A row of a test has a result; that test too.
    pub(crate) fn insert_row(&mut self, uid: &str, name: &str) {
        self.insert(uid);
        self.digests.insert(self.row(uid, name));
    }

    /// Whether a row of a test has one, by the name that it has.
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
    fn ids_are_told_apart() {
        let (mut uids, mut counts) = (Uids::default(), ByUid::<u32>::default());
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
