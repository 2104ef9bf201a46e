//! Where exceptions begin, and where they end.
//!
//! Owns: [`Flow`], counts of places. What the wire has is a message for each `throw` of the program and one for each call
//! that an exception has ended. An exception of the JVM itself (null pointer) has no `throw`: it begins in the first call
//! that it ends. One that is followed by anything else than the end of the call on top was caught there (*handled*; a
//! `finally` catches too, and throws again). One that ends the lowest call of a stack has *escaped* to code that is not traced.

use hashbrown::HashMap;

/// What happened at a place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Fate {
    /// The program has thrown it here.
    Thrown,
    /// It began here without a `throw`: the JVM has thrown it, or code that is not traced.
    Raised,
    /// It was caught here.
    Handled,
    /// It went from here into code that is not traced.
    Escaped,
}

/// A place: exception, method, line if known, fate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Place {
    pub(crate) exception: u32,
    pub(crate) method: u32,
    pub(crate) line: Option<u16>,
    pub(crate) fate: Fate,
}

#[derive(Debug)]
pub(crate) struct Flow {
    places: HashMap<Place, u64, foldhash::fast::RandomState>,
    limit: usize,
    /// What happened at places beyond the limit.
    pub(crate) beyond: u64,
}

impl Flow {
    pub(crate) fn new(limit: usize) -> Self {
        Self { places: HashMap::default(), limit, beyond: 0 }
    }

    pub(crate) fn add(&mut self, place: Place) {
        if let Some(count) = self.places.get_mut(&place) {
            *count += 1;
        } else if self.places.len() < self.limit {
            self.places.insert(place, 1);
        } else {
            self.beyond += 1;
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.places.len()
    }

    /// In a fixed order.
    pub(crate) fn places(&self) -> Vec<(Place, u64)> {
        let mut places: Vec<(Place, u64)> =
            self.places.iter().map(|(place, count)| (*place, *count)).collect();
        places.sort_unstable();
        places
    }
}
