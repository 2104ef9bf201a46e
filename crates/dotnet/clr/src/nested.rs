//! Nested intervals on one thread, such as compilations.

use foldhash::fast::RandomState;
use hashbrown::HashMap;

/// Open intervals, identified by numbers that several may share. The total cost is proportional to the number of intervals.
#[derive(Debug, Clone)]
pub(crate) struct Nested<T> {
    open: Vec<(u64, T)>,
    /// The positions at which intervals with a number were added. Some may be gone.
    places: HashMap<u64, Vec<usize>, RandomState>,
}

impl<T> Default for Nested<T> {
    fn default() -> Self {
        Self { open: Vec::new(), places: HashMap::default() }
    }
}

impl<T> Nested<T> {
    pub(crate) fn begin(&mut self, number: u64, thing: T) {
        self.places.entry(number).or_default().push(self.open.len());
        self.open.push((number, thing));
    }

    /// Ends the last interval with a number, and discards later ones that never ended.
    pub(crate) fn end(&mut self, number: u64) -> Option<T> {
        let places = self.places.get_mut(&number)?;
        while let Some(place) = places.pop() {
            if self.open.get(place).is_some_and(|(of, _)| *of == number) {
                self.open.truncate(place + 1);
                return self.open.pop().map(|(_, thing)| thing);
            }
        }
        None
    }

    /// Returns the innermost open interval.
    pub(crate) fn innermost(&mut self) -> Option<&mut T> {
        self.open.last_mut().map(|(_, thing)| thing)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn an_end_matches_a_linear_search_from_the_end(steps in prop::collection::vec((0u64..4, any::<bool>()), 0..60)) {
            let (mut nested, mut list) = (Nested::default(), Vec::new());
            for (at, (number, begins)) in steps.into_iter().enumerate() {
                if begins {
                    nested.begin(number, at);
                    list.push((number, at));
                    continue;
                }
                let found = list.iter().rposition(|(of, _)| *of == number);
                let ended = found.and_then(|place| {
                    list.truncate(place + 1);
                    list.pop().map(|(_, at)| at)
                });
                prop_assert_eq!(nested.end(number), ended);
                prop_assert_eq!(nested.innermost().copied(), list.last().map(|(_, at)| *at));
            }
        }
    }
}
