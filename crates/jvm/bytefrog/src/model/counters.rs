//! The totals of a trace.
//!

/// The totals of a trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counters {
    /// Calls that have begun.
    pub entries: u64,
    /// Calls that have returned.
    pub exits: u64,
    /// Exceptions that the program threw.
    pub exceptions: u64,
    /// Calls that ended with an exception.
    pub bubbles: u64,
    /// Lines that have run, once per call.
    pub visits: u64,
    /// Markers.
    pub markers: u64,
    /// Data breaks.
    pub data_breaks: u64,
    /// Events that never arrived.
    pub missing: u64,
    /// Gaps: sequences of one or more events that never arrived.
    pub gaps: u64,
    /// Events whose sequence ID was already used or given up.
    pub repeated: u64,
    /// F1: drop messages.
    pub drops: u64,
    /// F1: events that the drop messages report as dropped.
    pub dropped: u64,
    /// F1: drop messages without a count.
    pub drops_unknown: u64,
    /// F1: the number of times that a thread resumed after its recording was suspended. These are not drops.
    pub suspensions: u64,
    /// F1: events that were not recorded during suspensions, as far as they were counted.
    pub suspended: u64,
    /// Exits without an entry, although no events were missing.
    pub orphans: u64,
    /// Versions 2 to 4: the part of `bubbles` that arrived as exits with a flag.
    pub flagged: u64,
    /// F1: calls of all methods that the agent only counted and did not send as events, from its last snapshot.
    pub counted: u64,
    /// F1: threads whose further calls the agent only counts, because they were too fast for HQ.
    pub degraded: u64,
}

impl Counters {
    /// Returns the number of calls, both those sent as events and those only counted by the agent.
    pub fn calls(&self) -> u64 {
        self.entries.saturating_add(self.counted)
    }

    /// Returns the number of calls that were only counted although others were sent as events: their times, callers
    /// and threads are unknown.
    pub fn counted_besides(&self) -> u64 {
        if self.entries > 0 { self.counted } else { 0 }
    }

    /// Returns whether events are missing unintentionally.
    pub(super) fn has_losses(&self) -> bool {
        self.missing > 0 || self.dropped > 0 || self.drops_unknown > 0 || self.degraded > 0
    }
}
