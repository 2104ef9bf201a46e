//! Events of virtual threads that did not fit into the ring of their carrier.
//!
//! Owns: [`Losses`], which a carrier fills and the reader takes. A virtual thread may continue on another carrier at once,
//! whose ring is read before this carrier has room again, so the reader needs losses before any event in the ring reports
//! them.

/// The number of virtual threads whose losses are kept separately until the reader takes them.
const MAX_THREADS: usize = 64;

/// A period in which events are missing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Loss {
    /// The times of the first and of the last missing event.
    pub(crate) first: u64,
    pub(crate) last: u64,
    pub(crate) count: u64,
}

impl Loss {
    fn one(time: u64) -> Self {
        Self { first: time, last: time, count: 1 }
    }

    fn extend(&mut self, time: u64) {
        self.first = self.first.min(time);
        self.last = self.last.max(time);
        self.count += 1;
    }
}

/// The events that a carrier could not write.
#[derive(Debug, Default)]
pub(crate) struct Losses {
    /// Losses by virtual thread.
    pub(crate) of: Vec<(u64, Loss)>,
    /// Losses of all other virtual threads combined.
    pub(crate) others: Option<Loss>,
}

impl Losses {
    /// Adds a missing event of a virtual thread.
    pub(crate) fn add(&mut self, tid: u64, time: u64) {
        if let Some((_, loss)) = self.of.iter_mut().rev().find(|(one, _)| *one == tid) {
            loss.extend(time);
        } else if self.of.len() < MAX_THREADS {
            self.of.push((tid, Loss::one(time)));
        } else if let Some(loss) = &mut self.others {
            loss.extend(time);
        } else {
            self.others = Some(Loss::one(time));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn losses_of_many_virtual_threads_are_kept_together() {
        let mut losses = Losses::default();
        for time in 0..1000 {
            losses.add(time % 100, time);
        }
        assert_eq!(losses.of.len(), MAX_THREADS);
        assert_eq!(losses.of[7], (7, Loss { first: 7, last: 907, count: 10 }));
        assert_eq!(losses.others, Some(Loss { first: 64, last: 999, count: 360 }));
    }
}
