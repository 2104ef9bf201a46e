//! Sorting of lists that are sorted once per command.
//!
//! The standard library's sorts are 4 kB of code for each type of list, and so is collecting into a B-tree, which sorts
//! first. The functions here sort the indices of the elements, which is one instance for all types, and then move the
//! elements. Where a list has an element per event, sample or call, use [`sort_by_number`] or the standard library's.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};

/// Sorts like [`slice::sort`].
pub fn sort<T: Ord>(list: &mut [T]) {
    sort_by(list, T::cmp);
}

/// Sorts like [`slice::sort_by`]: equal elements keep their order.
pub fn sort_by<T>(list: &mut [T], mut compare: impl FnMut(&T, &T) -> Ordering) {
    let mut order = sorted_indices(list.len(), &mut |a, b| compare(&list[a], &list[b]));
    arrange(list, &mut order);
}

/// Sorts like [`slice::sort_by_key`]: equal elements keep their order, and the key is computed for each comparison.
pub fn sort_by_key<T, K: Ord>(list: &mut [T], mut key: impl FnMut(&T) -> K) {
    sort_by(list, |a, b| key(a).cmp(&key(b)));
}

/// Sorts like [`slice::sort_by_cached_key`]: equal elements keep their order, and each key is computed once.
pub fn sort_by_cached_key<T, K: Ord>(list: &mut [T], key: impl FnMut(&T) -> K) {
    let keys: Vec<K> = list.iter().map(key).collect();
    let mut order = sorted_indices(list.len(), &mut |a, b| keys[a].cmp(&keys[b]));
    arrange(list, &mut order);
}

/// Sorts like [`slice::sort_by_key`] by a number. Suits lists with an element per event: they are often sorted already,
/// and otherwise only the numbers are compared and moved.
pub fn sort_by_number<T>(list: &mut [T], key: impl FnMut(&T) -> u64) {
    let keys: Vec<u64> = list.iter().map(key).collect();
    if let Some(mut order) = order_of_numbers(keys) {
        arrange(list, &mut order);
    }
}

/// Collects into a map. Of equal keys, the last one's value is kept.
pub fn to_map<K: Ord, V>(entries: impl IntoIterator<Item = (K, V)>) -> BTreeMap<K, V> {
    let mut map = BTreeMap::new();
    for (key, value) in entries {
        map.insert(key, value);
    }
    map
}

/// Collects into a set.
pub fn to_set<T: Ord>(elements: impl IntoIterator<Item = T>) -> BTreeSet<T> {
    let mut set = BTreeSet::new();
    for element in elements {
        set.insert(element);
    }
    set
}

/// Returns nothing if there is nothing to arrange.
fn sorted_indices(count: usize, compare: &mut dyn FnMut(usize, usize) -> Ordering) -> Vec<usize> {
    if count < 2 {
        return Vec::new();
    }
    let mut order: Vec<usize> = (0..count).collect();
    order.sort_by(|a, b| compare(*a, *b));
    order
}

/// Returns the indices in the order of the numbers, or `None` if the numbers are sorted.
fn order_of_numbers(keys: Vec<u64>) -> Option<Vec<usize>> {
    if keys.is_sorted() {
        return None;
    }
    let mut numbered: Vec<(u64, usize)> = keys.into_iter().zip(0..).collect();
    numbered.sort_by_key(|(key, _)| *key);
    Some(numbered.into_iter().map(|(_, index)| index).collect())
}

/// Moves element `order[i]` to place `i`, one cycle of the permutation after the other.
fn arrange<T>(list: &mut [T], order: &mut [usize]) {
    for start in 0..order.len() {
        let mut place = start;
        loop {
            let source = std::mem::replace(&mut order[place], place);
            if source == start {
                break;
            }
            list.swap(place, source);
            place = source;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use proptest::prelude::*;

    proptest! {
        #[test]
        fn lists_are_sorted_as_by_the_standard_library(
            list in prop::collection::vec((0_u8..8, any::<u16>()), 0..200),
        ) {
            let (mut ours, mut theirs) = (list.clone(), list);
            super::sort_by_key(&mut ours, |(key, _)| std::cmp::Reverse(*key));
            theirs.sort_by_key(|(key, _)| std::cmp::Reverse(*key));
            prop_assert_eq!(&ours, &theirs);
            super::sort_by_cached_key(&mut ours, |(key, _)| key.to_string());
            theirs.sort_by_cached_key(|(key, _)| key.to_string());
            prop_assert_eq!(&ours, &theirs);
            super::sort_by_number(&mut ours, |(_, number)| u64::from(number % 16));
            theirs.sort_by_key(|(_, number)| number % 16);
            prop_assert_eq!(&ours, &theirs);
            super::sort_by(&mut ours, |a, b| b.1.cmp(&a.1).then(a.0.cmp(&b.0)));
            theirs.sort_by(|a, b| b.1.cmp(&a.1).then(a.0.cmp(&b.0)));
            prop_assert_eq!(&ours, &theirs);
            super::sort(&mut ours);
            theirs.sort_unstable();
            prop_assert_eq!(&ours, &theirs);
            super::sort_by_number(&mut ours, |(key, _)| u64::from(*key));
            prop_assert_eq!(ours, theirs);
        }

        #[test]
        fn trees_are_collected_as_by_the_standard_library(
            list in prop::collection::vec((0_u8..8, any::<u16>()), 0..200),
        ) {
            prop_assert_eq!(super::to_map(list.clone()), list.iter().copied().collect::<BTreeMap<_, _>>());
            prop_assert_eq!(super::to_set(list.clone()), list.into_iter().collect::<BTreeSet<_>>());
        }
    }
}
