//! Sorting of lists that are sorted once per command.
//!
//! The standard library's stable sort is 5 kB of code for each type of list. The functions here sort the indices of the
//! elements, which is one instance for all types, and then move the elements. Use the standard library's where a list has
//! an element per event, sample or call.

use std::cmp::Ordering;

/// Sorts like [`slice::sort_by`]: equal elements keep their order.
pub fn sort_by<T>(list: &mut [T], mut compare: impl FnMut(&T, &T) -> Ordering) {
    let mut order: Vec<usize> = (0..list.len()).collect();
    sort_indices(&mut order, &mut |a, b| compare(&list[a], &list[b]));
    arrange(list, &mut order);
}

/// Sorts like [`slice::sort_by_key`]: equal elements keep their order, and the key is computed for each comparison.
pub fn sort_by_key<T, K: Ord>(list: &mut [T], mut key: impl FnMut(&T) -> K) {
    sort_by(list, |a, b| key(a).cmp(&key(b)));
}

fn sort_indices(order: &mut [usize], compare: &mut dyn FnMut(usize, usize) -> Ordering) {
    order.sort_by(|a, b| compare(*a, *b));
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
            super::sort_by(&mut ours, |a, b| b.1.cmp(&a.1).then(a.0.cmp(&b.0)));
            theirs.sort_by(|a, b| b.1.cmp(&a.1).then(a.0.cmp(&b.0)));
            prop_assert_eq!(ours, theirs);
        }
    }
}
