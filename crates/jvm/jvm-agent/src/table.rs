//! The table in which probes find the ring of their thread.
//!
//! Owns: its layout, which the probes (`probe`) know too: 65,536 pairs of words, the id of a Java thread and the address of
//! its ring.

use std::io;
use std::sync::atomic::Ordering;

use crate::region::Region;
use crate::ring::Ring;

/// Slots: ids of threads are given one after the other, so two live threads share one only if as many others were
/// started between them.
pub(crate) const SLOTS: u64 = 65_536;

/// Where probes look for the ring of their thread.
#[derive(Debug)]
pub(crate) struct Table(Region);

impl Table {
    pub(crate) fn new() -> io::Result<Self> {
        let region = Region::new(usize::try_from(SLOTS).unwrap_or(0) * 16)?;
        // A thread whose object is not constructed yet has the id 0, which is what empty slots have.
        region.word(0).store(u64::MAX, Ordering::Release);
        Ok(Self(region))
    }

    pub(crate) fn address(&self) -> u64 {
        self.0.address()
    }

    fn slot(tid: u64) -> usize {
        usize::try_from(tid % SLOTS).unwrap_or(0) * 16
    }

    /// Lets the thread's probes find its ring. Not if another live thread has the slot: its probes take the slow path then.
    pub(crate) fn enter(&self, ring: &Ring) {
        let slot = Self::slot(ring.tid);
        // An id that no thread has holds the slot while the address is written.
        let claimed =
            self.0.word(slot).compare_exchange(0, u64::MAX, Ordering::SeqCst, Ordering::SeqCst).is_ok();
        if claimed {
            self.0.word(slot + 8).store(ring.address(), Ordering::Release);
            self.0.word(slot).store(ring.tid, Ordering::Release);
        }
    }

    /// The thread is gone.
    pub(crate) fn leave(&self, ring: &Ring) {
        let word = self.0.word(Self::slot(ring.tid));
        // Somebody else's stays.
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
        assert_eq!(slot(5).0, 5, "it was not its own");
        table.leave(&first);
        table.enter(&second);
        assert_eq!(slot(5), (5 + SLOTS, second.address()));
        // Slot 0 would match a thread without an id.
        table.enter(&none);
        assert_eq!(slot(0), (u64::MAX, 0));
    }
}
