//! Numbers that an agent gives to indices of ours.
//!
//! Owns: [`Ids`]. Agents count from 0 or 1, so a small id is a look into a vector; a large one, which only a strange agent
//! uses, is in a hash table. A limit bounds how many there are.

use hashbrown::HashMap;

/// Ids below this may be in the vector, which is 4 MiB then.
const DENSE: usize = 1 << 20;
/// Places that the vector has at least.
const LEAST: usize = 1024;
/// Places that the vector may have for each id that was seen: a single id must not take megabytes.
const PLACES_OF_AN_ID: usize = 64;

/// Indices from 0, in the order in which ids were first seen.
#[derive(Debug, Default)]
pub(crate) struct Ids {
    /// Index plus one; 0 is none.
    dense: Vec<u32>,
    sparse: HashMap<u32, u32, foldhash::fast::RandomState>,
    count: u32,
}

impl Ids {
    /// The index of an id that was seen.
    #[inline]
    pub(crate) fn get(&self, id: u32) -> Option<u32> {
        match self.dense.get(id as usize) {
            Some(index) => index.checked_sub(1),
            None => self.far(id),
        }
    }

    #[cold]
    fn far(&self, id: u32) -> Option<u32> {
        self.sparse.get(&id).copied()
    }

    /// Gives the next index to an id that was not seen; `None`: there are `limit` already.
    #[cold]
    pub(crate) fn add(&mut self, id: u32, limit: u32) -> Option<u32> {
        if self.count >= limit {
            return None;
        }
        let index = self.count;
        let place = id as usize;
        let dense = (index as usize).saturating_mul(PLACES_OF_AN_ID).clamp(LEAST, DENSE);
        if place < dense || place < self.dense.len() {
            if self.dense.len() <= place {
                let size = (place + 1).next_power_of_two().clamp(LEAST, DENSE);
                // What was far before is near now.
                self.dense.resize(size, 0);
                let near = |id: &u32| (*id as usize) < size;
                let moved: Vec<(u32, u32)> = self.sparse.extract_if(|id, _| near(id)).collect();
                for (id, index) in moved {
                    if let Some(slot) = self.dense.get_mut(id as usize) {
                        *slot = index + 1;
                    }
                }
            }
            *self.dense.get_mut(place)? = index + 1;
        } else {
            self.sparse.insert(id, index);
        }
        self.count += 1;
        Some(index)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_and_far() {
        let mut ids = Ids::default();
        for (index, id) in (0..).zip([7, u32::MAX, 0, 5000, 1 << 20, (1 << 20) - 1]) {
            assert_eq!(ids.get(id), None);
            assert_eq!(ids.add(id, 6), Some(index));
            assert_eq!(ids.get(id), Some(index));
        }
        assert_eq!(ids.add(8, 6), None);
        assert_eq!(ids.dense.len(), LEAST);
        assert_eq!((ids.get(7), ids.get(u32::MAX), ids.get(5000)), (Some(0), Some(1), Some(3)));
    }

    #[test]
    fn one_id_takes_no_megabytes_and_many_are_in_the_vector() {
        let mut ids = Ids::default();
        ids.add((1 << 20) - 1, 1 << 20);
        assert_eq!((ids.dense.len(), ids.sparse.len()), (0, 1));
        for id in 0..100_000 {
            ids.add(id, 1 << 20);
        }
        assert_eq!((ids.dense.len(), ids.sparse.len()), (1 << 17, 1));
        assert_eq!((ids.get((1 << 20) - 1), ids.get(0), ids.get(99_999)), (Some(0), Some(1), Some(100_000)));
    }
}
