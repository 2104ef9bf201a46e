//! Which end of a suspension belongs to which beginning.
//!
//! All threads are stopped for the collector, but also for the sampler, a thousand times a second, and for others. Each
//! writes the same events, and writes the first of them before it waits for its turn: the sampler's lie inside those of
//! a collection and across their ends. What tells them apart is the thread: the one that asked for a suspension is the
//! one that ends it.

use foldhash::fast::RandomState;
use hashbrown::HashMap;

/// The suspensions that go on.
#[derive(Debug, Default)]
pub(crate) struct Suspensions {
    by_thread: HashMap<u64, Suspension, RandomState>,
}

/// A suspension.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Suspension {
    /// When it was asked for.
    pub(crate) start: u64,
    /// When all threads stood still, if that was told.
    pub(crate) stopped: Option<u64>,
    pub(crate) why: Why,
}

/// What for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Why {
    /// A collection.
    Collection,
    /// The later steps of a background collection.
    Background,
    /// Not the collector: the sampler, a debugger, code that is replaced.
    Other,
}

impl Why {
    /// The meaning of the event's number.
    pub(crate) fn of(reason: u64) -> Self {
        match reason {
            1 => Self::Collection,
            6 => Self::Background,
            _ => Self::Other,
        }
    }
}

impl Suspensions {
    /// A thread asks for one. Whatever it asked for before has ended, though its end was not recorded.
    pub(crate) fn begin(&mut self, thread: u64, start: u64, why: Why) {
        self.by_thread.insert(thread, Suspension { start, stopped: None, why });
    }

    /// All others stand still.
    pub(crate) fn stopped(&mut self, thread: u64, at: u64) {
        if let Some(suspension) = self.by_thread.get_mut(&thread) {
            suspension.stopped.get_or_insert(at);
        }
    }

    /// A thread has let the others run again: what it had asked for, if the collector did.
    pub(crate) fn end(&mut self, thread: u64) -> Option<Suspension> {
        self.by_thread.remove(&thread).filter(|suspension| suspension.why != Why::Other)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_end_belongs_to_the_thread_that_began() {
        let mut suspensions = Suspensions::default();
        suspensions.begin(1, 10, Why::of(0));
        suspensions.begin(2, 11, Why::of(1));
        assert_eq!(suspensions.end(1), None, "the sampler's own");
        suspensions.stopped(2, 12);
        suspensions.begin(1, 13, Why::of(0));
        let collection = Suspension { start: 11, stopped: Some(12), why: Why::Collection };
        assert_eq!((suspensions.end(2), suspensions.end(2)), (Some(collection), None));
    }

    #[test]
    fn what_began_anew_has_ended() {
        let mut suspensions = Suspensions::default();
        suspensions.begin(1, 10, Why::of(6));
        suspensions.begin(1, 20, Why::of(5));
        assert_eq!(suspensions.end(1), None);
    }
}
