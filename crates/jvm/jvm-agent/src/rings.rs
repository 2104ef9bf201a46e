//! The set of the rings of all threads.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use crate::ring::Ring;
use crate::session::locked;

/// All rings, by address, because a program may start and end many threads at once. Locked when a thread makes its first
/// event or ends, and by the reader, but never for an event.
#[derive(Debug, Default)]
pub(crate) struct Rings(Mutex<BTreeMap<usize, Arc<Ring>>>);

fn address(ring: &Ring) -> usize {
    std::ptr::from_ref(ring).addr()
}

impl Rings {
    pub(crate) fn add(&self, ring: Arc<Ring>) {
        locked(&self.0).insert(address(&ring), ring);
    }

    pub(crate) fn all(&self) -> Vec<Arc<Ring>> {
        locked(&self.0).values().cloned().collect()
    }

    pub(crate) fn count(&self) -> usize {
        locked(&self.0).len()
    }

    /// Prevents a ring that is in use from being freed.
    pub(crate) fn hold(&self, ring: &Ring) -> Option<Arc<Ring>> {
        locked(&self.0).get(&address(ring)).cloned()
    }

    pub(crate) fn forget(&self, ring: &Ring) {
        // The memory is freed after the lock is released.
        let forgotten = locked(&self.0).remove(&address(ring));
        drop(forgotten);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ring::UNREAD;

    #[test]
    fn a_ring_that_is_held_is_not_freed() {
        let rings = Rings::default();
        let ring = Arc::new(Ring::new(9, Vec::new(), UNREAD).unwrap());
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
