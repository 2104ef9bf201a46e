//! The mapping of an agent's IDs to indices.
//!
//! Agents count from 0 or 1, so a small ID is looked up in a vector; a large one, which only unusual agents use, in
//! a hash table. The number of IDs is limited.

use hashbrown::HashMap;

/// IDs below this may be in the vector, which then has 4 MiB.
const MAX_DENSE: usize = 1 << 20;
/// The minimum length of the vector.
const MIN_DENSE: usize = 1024;
/// The maximum length of the vector per ID that was added: a single ID must not use megabytes.
const MAX_DENSE_PER_ID: usize = 64;

/// A mapping of IDs to indices from 0, in the order in which the IDs were added.
#[derive(Debug, Default)]
pub(crate) struct Ids {
    /// The index plus one; 0 if there is none.
    dense: Vec<u32>,
    sparse: HashMap<u32, u32, foldhash::fast::RandomState>,
    count: u32,
}

impl Ids {
    /// Returns the index of an ID; `None` if the ID was not added.
    #[inline]
    pub(crate) fn get(&self, id: u32) -> Option<u32> {
        match self.dense.get(id as usize) {
            Some(index) => index.checked_sub(1),
            None => self.get_sparse(id),
        }
    }

    #[cold]
    fn get_sparse(&self, id: u32) -> Option<u32> {
        self.sparse.get(&id).copied()
    }

    /// Assigns the next index to a new ID; `None` if there are `limit` IDs already.
    #[cold]
    pub(crate) fn add(&mut self, id: u32, limit: u32) -> Option<u32> {
        if self.count >= limit {
            return None;
        }
        let index = self.count;
        let position = id as usize;
        let dense = (index as usize).saturating_mul(MAX_DENSE_PER_ID).clamp(MIN_DENSE, MAX_DENSE);
        if position < dense || position < self.dense.len() {
            if self.dense.len() <= position {
                let size = (position + 1).next_power_of_two().clamp(MIN_DENSE, MAX_DENSE);
                // IDs that are dense now move from the hash table to the vector.
                self.dense.resize(size, 0);
                let is_dense = |id: &u32| (*id as usize) < size;
                let moved: Vec<(u32, u32)> = self.sparse.extract_if(|id, _| is_dense(id)).collect();
                for (id, index) in moved {
                    if let Some(slot) = self.dense.get_mut(id as usize) {
                        *slot = index + 1;
                    }
                }
            }
            *self.dense.get_mut(position)? = index + 1;
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
    fn dense_and_sparse_ids_have_indices() {
        let mut ids = Ids::default();
        for (index, id) in (0..).zip([7, u32::MAX, 0, 5000, 1 << 20, (1 << 20) - 1]) {
            assert_eq!(ids.get(id), None);
            assert_eq!(ids.add(id, 6), Some(index));
            assert_eq!(ids.get(id), Some(index));
        }
        assert_eq!(ids.add(8, 6), None);
        assert_eq!(ids.dense.len(), MIN_DENSE);
        assert_eq!((ids.get(7), ids.get(u32::MAX), ids.get(5000)), (Some(0), Some(1), Some(3)));
    }

    #[test]
    fn one_large_id_is_sparse_and_many_ids_are_dense() {
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
