//! What a trace has come to, at any time.
//!
//! Owns: [`Report`], which borrows nothing: the trace goes on while it is shown. Ids are gone here: methods
//! with one signature are one, from however many class loaders. Places and paths share the texts that they name: a name
//! may have 64 KiB, and there are hundreds of thousands of places.

use std::sync::Arc;

use runtap_bytefrog_proto::{Dialect, Location};

use super::counters::Counters;
use super::exceptions::Fate;
use super::findings::Finding;
use super::segments::Segment;

/// A method, with what its calls took. Times are in nanoseconds.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct MethodReport {
    /// `internal/Class.method;ACCESS;descriptor`, or `(method 17)` if the agent has not said it.
    pub signature: String,
    /// Calls that have begun.
    pub entries: u64,
    /// Calls that have ended by themselves.
    pub exits: u64,
    /// Calls that an exception has ended.
    pub bubbles: u64,
    /// Exceptions thrown by the program in it.
    pub throws: u64,
    /// Time in it without callees.
    pub own: u64,
    /// Time in it with callees; calls from within itself are not counted again. A lower bound if calls have no node
    /// ([`Report::untold`]).
    pub inclusive: u64,
    /// F1: calls that the agent has only counted, those that an exception ended, and their time. They are in none of the
    /// numbers above.
    pub counted: Option<(u64, u64, u64)>,
    /// Whether it has run.
    pub has_run: bool,
    /// What calls without an end took with callees, until it was clear that there is none: those that are open, until the
    /// last event. It is not in `inclusive`.
    pub so_far: u64,
    /// The same without callees.
    pub own_so_far: u64,
}

impl MethodReport {
    /// Calls that have begun: those that were sent as events, and those that the agent has only counted.
    pub fn calls(&self) -> u64 {
        self.entries.saturating_add(self.counted.map_or(0, |(calls, ..)| calls))
    }

    /// Calls that an exception has ended.
    pub fn thrown(&self) -> u64 {
        self.bubbles.saturating_add(self.counted.map_or(0, |(_, thrown, _)| thrown))
    }

    /// Calls that have ended by themselves. Of calls that were only counted it is not known whether they have ended, so all
    /// are taken to have.
    pub fn returns(&self) -> u64 {
        self.exits.saturating_add(self.counted.map_or(0, |(calls, thrown, _)| calls.saturating_sub(thrown)))
    }

    /// Whether it is known how calls have ended: not if the agent has only said that the method ran.
    pub fn counts_ends(&self) -> bool {
        self.calls() > 0 || self.exits > 0 || self.bubbles > 0
    }

    /// Calls that were only counted although others of the method were sent as events: the method's times are without them.
    pub fn untimed(&self) -> u64 {
        if self.entries > 0 { self.counted.map_or(0, |(calls, ..)| calls) } else { 0 }
    }

    /// Whether calls took longer than its times say: the end of some was not seen, or some were only counted.
    pub fn is_partly_timed(&self) -> bool {
        self.without_end() > 0 || self.untimed() > 0
    }

    /// Calls of which no end has come; 0 if the agent has only counted.
    pub fn without_end(&self) -> u64 {
        self.entries.saturating_sub(self.exits).saturating_sub(self.bubbles)
    }

    /// Time with callees of calls that have ended. `None`: nobody knows any.
    pub fn ended_total(&self) -> Option<u64> {
        match self.counted {
            _ if self.exits + self.bubbles > 0 => Some(self.inclusive),
            Some((.., time)) if time > 0 => Some(time),
            _ => None,
        }
    }

    /// The same without callees. Agents that count do not know it.
    pub fn ended_own(&self) -> Option<u64> {
        (self.exits + self.bubbles > 0).then_some(self.own)
    }

    /// Time with callees of all calls, at least. `None`: nobody knows any.
    pub fn total(&self) -> Option<u64> {
        let known = self.ended_total();
        known.or_else(|| (self.so_far > 0).then_some(0)).map(|time| time.saturating_add(self.so_far))
    }

    /// The same without callees.
    pub fn own(&self) -> Option<u64> {
        let known = self.ended_own();
        known.or_else(|| (self.own_so_far > 0).then_some(0)).map(|time| time.saturating_add(self.own_so_far))
    }
}

/// What an agent has told of calls: by it, it is clear which questions a trace can answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Detail {
    /// Calls, each on its own; or that there were none.
    Calls,
    /// F1: how often methods were called. Nothing is known of callers and times.
    Counts,
    /// F1: which methods have run.
    Coverage,
    /// Nothing, and the agent ended before it had sent what it had counted: nothing is known of calls.
    Unsent,
}

/// A thread.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ThreadReport {
    /// The agent's id.
    pub id: u32,
    /// Its last name, if it has one.
    pub name: Option<String>,
    /// Calls that have begun.
    pub entries: u64,
    /// F1: whether it is gone.
    pub ended: bool,
}

/// What happened to an exception at a place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExceptionReport {
    /// Its class; `(exception 3)` if the agent has not said it, `(any)` if its version says none.
    pub exception: Arc<str>,
    /// The method.
    pub signature: Arc<str>,
    /// The line, where it is known.
    pub line: Option<u16>,
    /// What happened.
    pub fate: Fate,
    /// How often.
    pub count: u64,
}

/// A segment, with the methods that were called in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SegmentReport {
    /// The segment. Its times are nanoseconds here.
    pub segment: Segment,
    /// Signatures and calls.
    pub calls: Vec<(Arc<str>, u64)>,
}

/// A slow call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SlowCall {
    /// What it took, in nanoseconds.
    pub took: u64,
    /// When it began, in nanoseconds.
    pub start: i64,
    /// The agent's id of its thread.
    pub thread: u32,
    /// Who has called it, outermost first, and itself: the last [`LONGEST_PATH`] of them.
    pub path: Vec<Arc<str>>,
    /// How many callers there are, and itself.
    pub depth: usize,
}

/// The longest path of a slow call that is kept in a report: a thousand calls may each be as deep as stacks are.
pub const LONGEST_PATH: usize = 256;

/// A place in a source file that has run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    /// The method.
    pub signature: Arc<str>,
    /// Where it is; `None` if the agent has not said it.
    pub location: Option<Location>,
    /// How often, or that it has run at all.
    pub count: u64,
}

/// What a trace has come to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Report {
    /// What the agent speaks.
    pub dialect: Dialect,
    /// What was counted.
    pub counters: Counters,
    /// The sequence ids of the first and of the last event, counted on where they have wrapped. `None`: there was none, or
    /// each thread has its own (F1).
    pub sequences: Option<(u64, u64)>,
    /// Signatures that the agent has told, each once, with or without calls.
    pub signatures: usize,
    /// By signature.
    pub methods: Vec<MethodReport>,
    /// In the order in which they were first seen.
    pub threads: Vec<ThreadReport>,
    /// By exception, method and line.
    pub exceptions: Vec<ExceptionReport>,
    /// By their beginning.
    pub segments: Vec<SegmentReport>,
    /// The longest first.
    pub slow_calls: Vec<SlowCall>,
    /// By method and place.
    pub lines: Vec<Line>,
    /// The rules that were broken.
    pub findings: Vec<Finding>,
    /// Calls without a node in the tree: the tree had no room.
    pub untold: u64,
    /// Events of threads and methods, and places, that had no room.
    pub beyond: u64,
    /// Calls deeper than stacks may be.
    pub too_deep: u64,
    /// Whether the agent was to count calls, or what ran, and ended before it had sent all of that, as its connections and its
    /// configuration say.
    pub unsent: bool,
}

/// Whether a trace is less than what the agent had to say: of its events, of what had room, of what was understood.
pub(super) fn loses(counters: &Counters, without_room: [u64; 3], findings: &[Finding]) -> bool {
    counters.has_losses()
        || without_room.iter().any(|count| *count > 0)
        || findings.iter().any(|finding| finding.rule.loses())
}

impl Report {
    /// Whether it is less than what the agent had to say, and nobody meant it to: events never came, were dropped, or could
    /// not be used, or there was no room for what they say. What recording was suspended for is no loss.
    pub fn has_losses(&self) -> bool {
        loses(&self.counters, [self.untold, self.beyond, self.too_deep], &self.findings)
    }

    /// What the agent has told of calls.
    pub fn detail(&self) -> Detail {
        if self.counters.entries > 0 {
            Detail::Calls
        } else if self.methods.iter().any(|method| method.calls() > 0) {
            Detail::Counts
        } else if self.methods.iter().any(|method| method.has_run) {
            Detail::Coverage
        } else if self.unsent {
            Detail::Unsent
        } else {
            Detail::Calls
        }
    }
}
