//! Values by small ids, such as metadata and stack ids: a dense array, with a hash map for ids that would make the array
//! too large.

use hashbrown::HashMap;

/// The allowed length of the dense part beyond twice the number of values. Ids are assigned in order, but definitions
/// can arrive out of order.
const SLACK: usize = 4096;

/// A map from metadata ids to values: as fast as an array for the ids that writers assign, and correct for any other id.
/// Its memory use is proportional to its number of values, whatever ids a stream contains.
#[derive(Debug, Clone)]
pub struct IdTable<T> {
    dense: Vec<Option<T>>,
    sparse: HashMap<u32, T, foldhash::fast::FixedState>,
    len: usize,
}

impl<T> Default for IdTable<T> {
    fn default() -> Self {
        Self { dense: Vec::new(), sparse: HashMap::default(), len: 0 }
    }
}

impl<T> IdTable<T> {
    /// Returns the value of `id`.
    #[inline]
    pub fn get(&self, id: u32) -> Option<&T> {
        match self.dense.get(index(id)) {
            Some(Some(value)) => Some(value),
            _ => self.get_sparse(id),
        }
    }

    #[cold]
    fn get_sparse(&self, id: u32) -> Option<&T> {
        self.sparse.get(&id)
    }

    /// Returns a mutable reference to the value of `id`.
    #[inline]
    pub fn get_mut(&mut self, id: u32) -> Option<&mut T> {
        match self.dense.get_mut(index(id)) {
            Some(Some(value)) => Some(value),
            _ => self.sparse.get_mut(&id),
        }
    }

    /// Returns the value of `id` if it is in the dense part. For fast paths that fall back to [`get`](Self::get).
    #[inline]
    pub fn get_dense(&self, id: u32) -> Option<&T> {
        self.dense.get(index(id))?.as_ref()
    }

    /// Returns a mutable reference to the value of `id` if it is in the dense part.
    #[inline]
    pub fn get_dense_mut(&mut self, id: u32) -> Option<&mut T> {
        self.dense.get_mut(index(id))?.as_mut()
    }

    /// Sets the value of `id` and returns the previous value.
    pub fn insert(&mut self, id: u32, value: T) -> Option<T> {
        let index = index(id);
        let old = if index < self.dense.len().max(self.len.saturating_mul(2).saturating_add(SLACK)) {
            if self.dense.len() <= index {
                self.dense.resize_with(index + 1, || None);
            }
            let old = self.dense.get_mut(index).and_then(|slot| slot.replace(value));
            // The dense part may have grown beyond an id that was added to the sparse part before.
            old.or_else(|| self.sparse.remove(&id))
        } else {
            self.sparse.insert(id, value)
        };
        self.len += usize::from(old.is_none());
        old
    }

    /// Removes the value of `id` and returns it.
    pub fn remove(&mut self, id: u32) -> Option<T> {
        let dense = self.dense.get_mut(index(id)).and_then(Option::take);
        let old = dense.or_else(|| self.sparse.remove(&id));
        self.len -= usize::from(old.is_some());
        old
    }

    /// Returns the number of values.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns whether the table is empty.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns all values, in no particular order.
    pub fn values(&self) -> impl Iterator<Item = &T> {
        self.dense.iter().flatten().chain(self.sparse.values())
    }

    /// Returns all values by value, in no particular order.
    pub fn into_values(self) -> impl Iterator<Item = T> {
        self.dense.into_iter().flatten().chain(self.sparse.into_values())
    }

    /// Removes all values and keeps the memory.
    pub fn clear(&mut self) {
        self.dense.clear();
        self.sparse.clear();
        self.len = 0;
    }
}

fn index(id: u32) -> usize {
    usize::try_from(id).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn the_table_behaves_like_a_map(
            entries in prop::collection::vec((prop_oneof![0..20_000u32, any::<u32>()], any::<u8>()), 0..200),
            gone in prop::collection::vec(0..200_usize, 0..50),
        ) {
            let mut table = IdTable::default();
            let mut map = std::collections::HashMap::new();
            for (id, value) in &entries {
                prop_assert_eq!(table.insert(*id, *value), map.insert(*id, *value));
            }
            for (id, _) in gone.iter().filter_map(|at| entries.get(*at)) {
                prop_assert_eq!(table.remove(*id), map.remove(id));
            }
            prop_assert_eq!(table.len(), map.len());
            for (id, _) in &entries {
                prop_assert_eq!(table.get(*id), map.get(id));
                prop_assert_eq!(table.get_mut(*id), map.get_mut(id));
                prop_assert!(table.get_dense(*id).is_none_or(|value| Some(value) == map.get(id)));
                prop_assert!(table.get_dense_mut(*id).is_none_or(|value| Some(value) == map.get_mut(id)));
                prop_assert_eq!(table.get(id ^ 1), map.get(&(id ^ 1)));
            }
            let sorted = |mut values: Vec<u8>| {
                values.sort_unstable();
                values
            };
            let values = sorted(map.into_values().collect());
            prop_assert_eq!(&sorted(table.values().copied().collect()), &values);
            prop_assert_eq!(sorted(table.clone().into_values().collect()), values);
            table.clear();
            prop_assert_eq!((table.len(), table.get(1)), (0, None));
        }
    }

    #[test]
    fn huge_ids_cost_no_memory() {
        let mut table = IdTable::default();
        table.insert(u32::MAX, 1);
        table.insert(1 << 31, 2);
        table.insert(1, 3);
        assert!(table.dense.capacity() <= SLACK);
        assert_eq!((table.get(u32::MAX), table.get(1 << 31), table.get(1)), (Some(&1), Some(&2), Some(&3)));
    }
    #[test]
    fn gaps_cost_no_more_than_the_values_between_them() {
        let mut table = IdTable::default();
        for n in 0..10_000 {
            table.insert(n * 4_000, n);
        }
        assert!(table.dense.len() <= 2 * table.len() + SLACK, "{} slots", table.dense.len());
        assert!((0..10_000).all(|n| table.get(n * 4_000) == Some(&n)));
        assert_eq!(table.len(), 10_000);
    }
}
