//! Values by a small id, as metadata and stack ids are: dense, with a hash map for ids that would make a dense
//! table large. Knows nothing of what it holds.

use hashbrown::HashMap;

/// How far beyond its end the dense part may grow at once. Ids are handed out in order, but the definitions can
/// arrive in blocks that are out of order.
const MAX_GAP: usize = 4096;

#[derive(Debug, Clone)]
pub(crate) struct IdTable<T> {
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
    #[inline]
    pub(crate) fn get(&self, id: u32) -> Option<&T> {
        match self.dense.get(index(id)) {
            Some(Some(value)) => Some(value),
            _ => self.get_sparse(id),
        }
    }

    #[cold]
    fn get_sparse(&self, id: u32) -> Option<&T> {
        self.sparse.get(&id)
    }

    /// Sets the value of `id` and returns the one it had.
    pub(crate) fn insert(&mut self, id: u32, value: T) -> Option<T> {
        let old = if index(id) < self.dense.len().saturating_add(MAX_GAP) {
            if self.dense.len() <= index(id) {
                self.dense.resize_with(index(id) + 1, || None);
            }
            let old = self.dense.get_mut(index(id)).and_then(|slot| slot.replace(value));
            // The dense part may have grown over an id that came when it was still far away.
            old.or_else(|| self.sparse.remove(&id))
        } else {
            self.sparse.insert(id, value)
        };
        self.len += usize::from(old.is_none());
        old
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Forgets all values and keeps the memory.
    pub(crate) fn clear(&mut self) {
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
        fn is_a_map(entries in prop::collection::vec((prop_oneof![0..20_000u32, any::<u32>()], any::<u8>()), 0..200)) {
            let mut table = IdTable::default();
            let mut map = std::collections::HashMap::new();
            for (id, value) in &entries {
                prop_assert_eq!(table.insert(*id, *value), map.insert(*id, *value));
            }
            prop_assert_eq!(table.len(), map.len());
            for (id, _) in &entries {
                prop_assert_eq!(table.get(*id), map.get(id));
                prop_assert_eq!(table.get(id ^ 1), map.get(&(id ^ 1)));
            }
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
        assert!(table.dense.capacity() < 2 * MAX_GAP);
        assert_eq!((table.get(u32::MAX), table.get(1 << 31), table.get(1)), (Some(&1), Some(&2), Some(&3)));
    }
}
