//! The rings of all threads.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::ring::Ring;

/// All rings, by address: a program may start and end many threads at once. Locked when a thread makes its first event or
/// ends, and by the reader: never by an event.
#[derive(Debug, Default)]
pub(crate) struct Rings(Mutex<BTreeMap<usize, Arc<Ring>>>);

fn address(ring: &Ring) -> usize {
    std::ptr::from_ref(ring).addr()
}

impl Rings {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<usize, Arc<Ring>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn add(&self, ring: Arc<Ring>) {
        self.lock().insert(address(&ring), ring);
    }

    pub(crate) fn all(&self) -> Vec<Arc<Ring>> {
        self.lock().values().cloned().collect()
    }

    pub(crate) fn count(&self) -> usize {
        self.lock().len()
    }

    /// Keeps a ring that is in use from being freed.
    pub(crate) fn hold(&self, ring: &Ring) -> Option<Arc<Ring>> {
        self.lock().get(&address(ring)).cloned()
    }

    pub(crate) fn forget(&self, ring: &Ring) {
        // Freed without the lock.
        let forgotten = self.lock().remove(&address(ring));
        drop(forgotten);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ring::NOBODY;

    #[test]
    fn a_ring_that_is_held_is_not_freed() {
        let rings = Rings::default();
        let ring = Arc::new(Ring::new(9, Vec::new(), NOBODY).unwrap());
        let weak = Arc::downgrade(&ring);
        rings.add(Arc::clone(&ring));
        let held = rings.hold(&ring);
        rings.forget(&ring);
        assert!(rings.hold(&ring).is_none());
        drop(ring);
        assert!(weak.upgrade().is_some(), "its place is not given to another one");
        drop(held);
        assert!(weak.upgrade().is_none());
    }
}
