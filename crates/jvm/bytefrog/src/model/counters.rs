//! How much there was of everything.
//!
//! Owns: [`Counters`].

/// What was counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counters {
    /// Calls that have begun.
    pub entries: u64,
    /// Calls that have ended by themselves.
    pub exits: u64,
    /// Exceptions thrown by the program.
    pub exceptions: u64,
    /// Calls that an exception has ended.
    pub bubbles: u64,
    /// Lines that have run, once for each call.
    pub visits: u64,
    /// Markers.
    pub markers: u64,
    /// Data breaks.
    pub data_breaks: u64,
    /// Events that never came.
    pub missing: u64,
    /// Places where events never came, one or many.
    pub gaps: u64,
    /// Events with a sequence id that was used, or given up.
    pub repeated: u64,
    /// F1: drops.
    pub drops: u64,
    /// F1: events that they tell of.
    pub dropped: u64,
    /// F1: drops that do not say how many.
    pub drops_unknown: u64,
    /// F1: times that a thread has gone on after its recording was suspended. These are no drops.
    pub suspensions: u64,
    /// F1: events that were not recorded in them, as far as they were counted.
    pub suspended: u64,
    /// Ends of calls without a beginning, though nothing was missing.
    pub orphans: u64,
    /// Versions 2 to 4: of `bubbles`, those that came as an exit with a flag.
    pub flagged: u64,
    /// F1: calls of all methods as the agent has counted them, by its last snapshot. None of them was sent as an event.
    pub counted: u64,
    /// F1: threads that were too fast for HQ, and whose further calls the agent only counts.
    pub degraded: u64,
}

impl Counters {
    /// Calls that have begun: those that were sent as events, and those that the agent has only counted.
    pub fn calls(&self) -> u64 {
        self.entries.saturating_add(self.counted)
    }

    /// Calls that were only counted although others were sent as events: their times, callers and threads are not known.
    pub fn counted_besides(&self) -> u64 {
        if self.entries > 0 { self.counted } else { 0 }
    }

    /// Whether events are missing, and nobody meant them to.
    pub(super) fn has_losses(&self) -> bool {
        self.missing > 0 || self.dropped > 0 || self.drops_unknown > 0 || self.degraded > 0
    }
}
