//! What has begun and not ended: in the order in which it began, and found by the id of its test.

use std::borrow::Borrow;
use std::collections::hash_map::RandomState;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::hash::{BuildHasher as _, Hash};

/// Any number of tests, of which several may have the same id: rows of one test, by their names.
#[derive(Debug)]
pub struct Begun<T> {
    /// Each with the hash of its row.
    all: BTreeMap<u64, (u64, T)>,
    /// The numbers of those with an id, and of those of a row.
    by_uid: HashMap<String, BTreeSet<u64>>,
    by_row: HashMap<u64, BTreeSet<u64>>,
    keys: RandomState,
    /// How many there ever were.
    count: u64,
}

impl<T> Default for Begun<T> {
    fn default() -> Self {
        Self {
            all: BTreeMap::new(),
            by_uid: HashMap::new(),
            by_row: HashMap::new(),
            keys: RandomState::new(),
            count: 0,
        }
    }
}

impl<T> Begun<T> {
    /// A test with this id begins, or a row of it with this name. Returns its number: that of a later one is higher.
    pub fn begin(&mut self, uid: String, name: &str, test: T) -> u64 {
        let number = self.count;
        self.count += 1;
        let row = self.keys.hash_one((uid.as_str(), name));
        self.by_row.entry(row).or_default().insert(number);
        self.by_uid.entry(uid).or_default().insert(number);
        self.all.insert(number, (row, test));
        number
    }

    /// Ends the first row of the test with this name. If no row has this name, ends the first row of the test, which may have begun
    /// under another name.
    pub fn end(&mut self, uid: &str, name: &str) -> Option<(u64, T)> {
        self.end_row(uid, name).or_else(|| {
            let number = *self.by_uid.get(uid)?.first()?;
            self.remove(uid, number)
        })
    }

    /// Ends the first row of the test with this name.
    pub fn end_row(&mut self, uid: &str, name: &str) -> Option<(u64, T)> {
        let number = *self.by_row.get(&self.keys.hash_one((uid, name)))?.first()?;
        self.remove(uid, number)
    }

    fn remove(&mut self, uid: &str, number: u64) -> Option<(u64, T)> {
        let (row, test) = self.all.remove(&number)?;
        forget(&mut self.by_uid, uid, number);
        forget(&mut self.by_row, &row, number);
        Some((number, test))
    }

    /// Whether a test with this id has begun and not ended.
    pub fn contains(&self, uid: &str) -> bool {
        self.by_uid.contains_key(uid)
    }

    /// The one with this number, while it has not ended.
    pub fn get(&self, number: u64) -> Option<&T> {
        self.all.get(&number).map(|(_, test)| test)
    }

    /// See [`get`](Self::get).
    pub fn get_mut(&mut self, number: u64) -> Option<&mut T> {
        self.all.get_mut(&number).map(|(_, test)| test)
    }

    /// All of them; the first began first.
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        self.all.values().map(|(_, test)| test)
    }

    /// See [`iter`](Self::iter).
    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.all.values_mut().map(|(_, test)| test)
    }

    /// See [`iter`](Self::iter).
    pub fn into_values(self) -> impl Iterator<Item = T> {
        self.all.into_values().map(|(_, test)| test)
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.all.len()
    }

    /// Whether all have ended.
    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }
}

/// Takes a number from a set, and the set away with its last one.
fn forget<K, Q>(sets: &mut HashMap<K, BTreeSet<u64>>, key: &Q, number: u64)
where
    K: Borrow<Q> + Eq + Hash,
    Q: Eq + Hash + ?Sized,
{
    if let Some(numbers) = sets.get_mut(key) {
        numbers.remove(&number);
        if numbers.is_empty() {
            sets.remove(key);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_tests_with_one_id_the_first_ends_first() {
        let mut begun = Begun::default();
        let numbers =
            [("a", 1), ("b", 2), ("a", 3)].map(|(uid, test)| begun.begin(uid.to_owned(), uid, test));
        assert!(numbers.is_sorted() && begun.contains("a"));
        assert_eq!(begun.end("a", "a"), Some((numbers[0], 1)));
        assert_eq!(begun.iter().copied().collect::<Vec<_>>(), [2, 3]);
        assert_eq!(
            (begun.end("a", "a"), begun.end("a", "a"), begun.end("c", "c")),
            (Some((numbers[2], 3)), None, None)
        );
        assert_eq!((begun.get(numbers[0]), begun.get(numbers[1]), begun.len()), (None, Some(&2), 1));
        begun.end("b", "b");
        assert!(begun.is_empty() && begun.by_uid.is_empty() && begun.by_row.is_empty());
    }

    #[test]
    fn of_the_rows_of_a_test_the_named_one_ends() {
        let mut begun = Begun::default();
        for (number, name) in ["x", "y", "z", "y"].into_iter().enumerate() {
            begun.begin("a".to_owned(), name, number);
        }
        assert_eq!(begun.end_row("a", "w"), None);
        let mut end = |name: &str| begun.end("a", name).map(|(_, number)| number);
        assert_eq!([end("y"), end("y")], [Some(1), Some(3)]);
        // Of a name that has not begun, it is the first.
        assert_eq!([end("y"), end("z"), end("z")], [Some(0), Some(2), None]);
        assert!(begun.by_uid.is_empty() && begun.by_row.is_empty());
    }
}
