//! What has begun and not ended: in the order in which it began, and found by the id of its test.

use std::collections::{BTreeMap, HashMap, VecDeque};

/// Any number of tests, of which several may have the same id.
#[derive(Debug)]
pub struct Begun<T> {
    all: BTreeMap<u64, T>,
    /// The numbers of those with an id, the first in front.
    by_uid: HashMap<String, VecDeque<u64>>,
    /// How many there ever were.
    count: u64,
}

impl<T> Default for Begun<T> {
    fn default() -> Self {
        Self { all: BTreeMap::new(), by_uid: HashMap::new(), count: 0 }
    }
}

impl<T> Begun<T> {
    /// A test with this id begins. Returns its number: that of a later one is higher.
    pub fn begin(&mut self, uid: String, test: T) -> u64 {
        let number = self.count;
        self.count += 1;
        self.by_uid.entry(uid).or_default().push_back(number);
        self.all.insert(number, test);
        number
    }

    /// A test with this id ends: of several, the first.
    pub fn end(&mut self, uid: &str) -> Option<(u64, T)> {
        let numbers = self.by_uid.get_mut(uid)?;
        let number = numbers.pop_front();
        if numbers.is_empty() {
            self.by_uid.remove(uid);
        }
        number.and_then(|number| self.all.remove_entry(&number))
    }

    /// The first with this id.
    pub fn first_mut(&mut self, uid: &str) -> Option<&mut T> {
        let number = self.by_uid.get(uid)?.front()?;
        self.all.get_mut(number)
    }

    /// The one with this number, while it has not ended.
    pub fn get(&self, number: u64) -> Option<&T> {
        self.all.get(&number)
    }

    /// See [`get`](Self::get).
    pub fn get_mut(&mut self, number: u64) -> Option<&mut T> {
        self.all.get_mut(&number)
    }

    /// All of them; the first began first.
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        self.all.values()
    }

    /// See [`iter`](Self::iter).
    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.all.values_mut()
    }

    /// See [`iter`](Self::iter).
    pub fn into_values(self) -> impl Iterator<Item = T> {
        self.all.into_values()
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_tests_with_one_id_the_first_ends_first() {
        let mut begun = Begun::default();
        let numbers = [("a", 1), ("b", 2), ("a", 3)].map(|(uid, test)| begun.begin(uid.to_owned(), test));
        assert!(numbers.is_sorted());
        assert_eq!(begun.first_mut("a"), Some(&mut 1));
        assert_eq!(begun.end("a"), Some((numbers[0], 1)));
        assert_eq!(begun.iter().copied().collect::<Vec<_>>(), [2, 3]);
        assert_eq!((begun.end("a"), begun.end("a"), begun.end("c")), (Some((numbers[2], 3)), None, None));
        assert_eq!((begun.get(numbers[0]), begun.get(numbers[1]), begun.len()), (None, Some(&2), 1));
        begun.end("b");
        assert!(begun.is_empty() && begun.by_uid.is_empty());
    }
}
