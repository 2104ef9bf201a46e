//! The table in which probes find the ring of their thread.
//!
//! Owns: its layout, which the probes (`probe`) also use: 65,536 pairs of words, the id of a Java thread and the address of
//! its ring.

use std::io;
use std::sync::atomic::Ordering;

use crate::region::Region;
use crate::ring::Ring;

/// The number of slots: thread ids are assigned consecutively, so two live threads share a slot only if a multiple of this
/// number of threads was started between them.
pub(crate) const SLOTS: u64 = 65_536;

/// The table in which probes look up the ring of their thread.
#[derive(Debug)]
pub(crate) struct Table(Region);

impl Table {
    pub(crate) fn new() -> io::Result<Self> {
        let region = Region::new(usize::try_from(SLOTS).unwrap_or(0) * 16)?;
        // A thread whose object is not constructed yet has the id 0, as empty slots do.
        region.word(0).store(u64::MAX, Ordering::Release);
        Ok(Self(region))
    }

    pub(crate) fn address(&self) -> u64 {
        self.0.address()
    }

    fn slot(tid: u64) -> usize {
        usize::try_from(tid % SLOTS).unwrap_or(0) * 16
    }

    /// Makes the thread's probes find its ring. If another live thread has the slot, the thread's probes use the slow path.
    pub(crate) fn enter(&self, ring: &Ring) {
        let slot = Self::slot(ring.tid);
        // An id that no thread has reserves the slot while the address is written.
        let claimed =
            self.0.word(slot).compare_exchange(0, u64::MAX, Ordering::SeqCst, Ordering::SeqCst).is_ok();
        if claimed {
            self.0.word(slot + 8).store(ring.address(), Ordering::Release);
            self.0.word(slot).store(ring.tid, Ordering::Release);
        }
    }

    /// Removes a thread that has ended.
    pub(crate) fn leave(&self, ring: &Ring) {
        let word = self.0.word(Self::slot(ring.tid));
        // An entry of another thread stays.
        let _ = word.compare_exchange(ring.tid, 0, Ordering::SeqCst, Ordering::SeqCst);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ring::CAPACITY;

    #[test]
    fn a_slot_belongs_to_one_thread_at_a_time() {
        let table = Table::new().unwrap();
        let ring = |tid| Ring::new(tid, Vec::new(), CAPACITY).unwrap();
        let (first, second, none) = (ring(5), ring(5 + SLOTS), ring(SLOTS));
        let slot = |tid: u64| {
            let at = Table::slot(tid);
            (table.0.word(at).load(Ordering::Relaxed), table.0.word(at + 8).load(Ordering::Relaxed))
        };
        table.enter(&first);
        table.enter(&second);
        assert_eq!(slot(5), (5, first.address()));
        table.leave(&second);
        assert_eq!(slot(5).0, 5, "the slot belongs to another thread");
        table.leave(&first);
        table.enter(&second);
        assert_eq!(slot(5), (5 + SLOTS, second.address()));
        // Slot 0 would match a thread without an id.
        table.enter(&none);
        assert_eq!(slot(0), (u64::MAX, 0));
    }
}
