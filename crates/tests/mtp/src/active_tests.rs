//! Started tests that have not ended, in start order and indexed by test id.

use std::borrow::Borrow;
use std::collections::hash_map::RandomState;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::hash::{BuildHasher as _, Hash};

/// A collection of running tests. Several may have the same id: rows of one test, distinguished by name.
#[derive(Debug)]
pub struct ActiveTests<T> {
    /// The tests by number, each with the hash of its row.
    all: BTreeMap<u64, (u64, T)>,
    /// The numbers of the tests by id, and by row.
    by_uid: HashMap<String, BTreeSet<u64>>,
    by_row: HashMap<u64, BTreeSet<u64>>,
    keys: RandomState,
    /// The number of tests that were ever started.
    count: u64,
}

impl<T> Default for ActiveTests<T> {
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

impl<T> ActiveTests<T> {
    /// Adds a test with this id, or a row of it with this name. Returns the test's number; later tests have higher
    /// numbers.
    pub fn begin(&mut self, uid: String, name: &str, test: T) -> u64 {
        let number = self.count;
        self.count += 1;
        let row = self.keys.hash_one((uid.as_str(), name));
        self.by_row.entry(row).or_default().insert(number);
        self.by_uid.entry(uid).or_default().insert(number);
        self.all.insert(number, (row, test));
        number
    }

    /// Removes the first row of the test with this name. If no row has this name, removes the first row of the test,
    /// which may have started under another name.
    pub fn end(&mut self, uid: &str, name: &str) -> Option<(u64, T)> {
        self.end_row(uid, name).or_else(|| {
            let number = *self.by_uid.get(uid)?.first()?;
            self.remove(uid, number)
        })
    }

    /// Removes the first row of the test with this name.
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

    /// Returns whether a test with this id is running.
    pub fn contains(&self, uid: &str) -> bool {
        self.by_uid.contains_key(uid)
    }

    /// Returns whether a row of the test with this name is running.
    pub fn contains_row(&self, uid: &str, name: &str) -> bool {
        self.by_row.contains_key(&self.keys.hash_one((uid, name)))
    }

    /// Returns the test with this number, or `None` if it has ended.
    pub fn get(&self, number: u64) -> Option<&T> {
        self.all.get(&number).map(|(_, test)| test)
    }

    /// Returns the test with this number, or `None` if it has ended.
    pub fn get_mut(&mut self, number: u64) -> Option<&mut T> {
        self.all.get_mut(&number).map(|(_, test)| test)
    }

    /// Returns all running tests in start order.
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        self.all.values().map(|(_, test)| test)
    }

    /// Returns all running tests in start order.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.all.values_mut().map(|(_, test)| test)
    }

    /// Returns all running tests in start order.
    pub fn into_values(self) -> impl Iterator<Item = T> {
        self.all.into_values().map(|(_, test)| test)
    }

    /// Returns the number of running tests.
    pub fn len(&self) -> usize {
        self.all.len()
    }

    /// Returns whether no test is running.
    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }
}

/// Removes a number from a set, and the set if it becomes empty.
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
    fn the_first_of_tests_with_equal_ids_ends_first() {
        let mut begun = ActiveTests::default();
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
    fn the_row_with_the_given_name_ends() {
        let mut begun = ActiveTests::default();
        for (number, name) in ["x", "y", "z", "y"].into_iter().enumerate() {
            begun.begin("a".to_owned(), name, number);
        }
        assert_eq!(begun.end_row("a", "w"), None);
        let mut end = |name: &str| begun.end("a", name).map(|(_, number)| number);
        assert_eq!([end("y"), end("y")], [Some(1), Some(3)]);
        // For an unknown name, the first row ends.
        assert_eq!([end("y"), end("z"), end("z")], [Some(0), Some(2), None]);
        assert!(begun.by_uid.is_empty() && begun.by_row.is_empty());
    }
}
