//! Matches the ends of suspensions to their starts.
//!
//! All threads are suspended not only for the collector, but also a thousand times per second for the sampler, and for others. Each
//! of them writes the same events, the first one before it waits for its turn, so the sampler's events are interleaved with those of
//! a collection. They are distinguished by thread: the thread that requests a suspension also ends it.

use foldhash::fast::RandomState;
use hashbrown::HashMap;

/// The pending suspensions.
#[derive(Debug, Default)]
pub(crate) struct Suspensions {
    by_thread: HashMap<u64, Suspension, RandomState>,
}

/// A suspension.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Suspension {
    /// The time of the request.
    pub(crate) start: u64,
    /// The time at which all threads were stopped, if reported.
    pub(crate) stopped: Option<u64>,
    pub(crate) why: Why,
}

/// The reason for a suspension.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Why {
    /// A collection.
    Collection,
    /// A later phase of a background collection.
    Background,
    /// Not the collector: the sampler, a debugger, or code replacement.
    Other,
}

impl Why {
    /// Converts the number in the event.
    pub(crate) fn of(reason: u64) -> Self {
        match reason {
            1 => Self::Collection,
            6 => Self::Background,
            _ => Self::Other,
        }
    }
}

impl Suspensions {
    /// Records a request of a thread. Its previous request has ended, although the end was not recorded.
    pub(crate) fn begin(&mut self, thread: u64, start: u64, why: Why) {
        self.by_thread.insert(thread, Suspension { start, stopped: None, why });
    }

    /// Records that all other threads are stopped.
    pub(crate) fn stopped(&mut self, thread: u64, at: u64) {
        if let Some(suspension) = self.by_thread.get_mut(&thread) {
            suspension.stopped.get_or_insert(at);
        }
    }

    /// Records that a thread has resumed the others. Returns the suspension if it was for the collector.
    pub(crate) fn end(&mut self, thread: u64) -> Option<Suspension> {
        self.by_thread.remove(&thread).filter(|suspension| suspension.why != Why::Other)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_end_belongs_to_the_thread_that_started_it() {
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
    fn a_restarted_suspension_has_ended() {
        let mut suspensions = Suspensions::default();
        suspensions.begin(1, 10, Why::of(6));
        suspensions.begin(1, 20, Why::of(5));
        assert_eq!(suspensions.end(1), None);
    }
}
