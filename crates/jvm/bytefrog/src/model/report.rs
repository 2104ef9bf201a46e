//! The report on a trace.
//!
//! [`Report`] borrows nothing, so that the trace can continue while it is shown. It contains no IDs: methods with
//! the same signature are combined, whatever their class loaders. Sites and paths share the texts of names: a name
//! may have 64 KiB, and there are hundreds of thousands of sites.

use std::sync::Arc;

use runtap_bytefrog_proto::{Dialect, Location};

use super::counters::Counters;
use super::exceptions::Fate;
use super::findings::Finding;
use super::segments::Segment;

/// A method with the durations of its calls. Times are in nanoseconds.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct MethodReport {
    /// The signature `internal/Class.method;ACCESS;descriptor`, or `(method 17)` if the agent has not sent it.
    pub signature: String,
    /// The number of calls that have begun.
    pub entries: u64,
    /// The number of calls that returned.
    pub exits: u64,
    /// The number of calls that ended with an exception.
    pub bubbles: u64,
    /// The number of exceptions that the method threw.
    pub throws: u64,
    /// The time in the method without callees.
    pub own: u64,
    /// The time in the method including callees; recursive calls are not counted again. A lower bound if some calls
    /// have no node ([`Report::without_node`]).
    pub inclusive: u64,
    /// F1: the number of calls that the agent only counted, the number of these that ended with an exception, and
    /// their total time. They are not included in the fields above.
    pub counted: Option<(u64, u64, u64)>,
    /// Whether the method has run.
    pub has_run: bool,
    /// The time in calls without an end, including callees: up to the last event for open calls, and until their
    /// end was missed for others. It is not part of `inclusive`.
    pub so_far: u64,
    /// The time in calls without an end, without callees.
    pub own_so_far: u64,
}

impl MethodReport {
    /// Returns the number of calls, both those sent as events and those only counted by the agent.
    pub fn calls(&self) -> u64 {
        self.entries.saturating_add(self.counted.map_or(0, |(calls, ..)| calls))
    }

    /// Returns the number of calls that ended with an exception.
    pub fn thrown(&self) -> u64 {
        self.bubbles.saturating_add(self.counted.map_or(0, |(_, thrown, _)| thrown))
    }

    /// Returns the number of calls that returned. Calls that were only counted are assumed to have ended.
    pub fn returns(&self) -> u64 {
        self.exits.saturating_add(self.counted.map_or(0, |(calls, thrown, _)| calls.saturating_sub(thrown)))
    }

    /// Returns whether the numbers of ends are known: not if the agent reported only that the method has run.
    pub fn counts_ends(&self) -> bool {
        self.calls() > 0 || self.exits > 0 || self.bubbles > 0
    }

    /// Returns the number of calls that were only counted although others of the method were sent as events: the
    /// method's times exclude them.
    pub fn untimed(&self) -> u64 {
        if self.entries > 0 { self.counted.map_or(0, |(calls, ..)| calls) } else { 0 }
    }

    /// Returns whether the times are lower bounds: the end of some calls was not seen, or some calls were only
    /// counted.
    pub fn is_partly_timed(&self) -> bool {
        self.without_end() > 0 || self.untimed() > 0
    }

    /// Returns the number of calls whose end was not seen; 0 if the agent only counted.
    pub fn without_end(&self) -> u64 {
        self.entries.saturating_sub(self.exits).saturating_sub(self.bubbles)
    }

    /// Returns the time including callees of calls that have ended; `None` if unknown.
    pub fn ended_total(&self) -> Option<u64> {
        match self.counted {
            _ if self.exits + self.bubbles > 0 => Some(self.inclusive),
            Some((.., time)) if time > 0 => Some(time),
            _ => None,
        }
    }

    /// Returns the time without callees of calls that have ended; `None` if unknown, as for agents that only count.
    pub fn ended_own(&self) -> Option<u64> {
        (self.exits + self.bubbles > 0).then_some(self.own)
    }

    /// Returns a lower bound on the time of all calls including callees; `None` if unknown.
    pub fn total(&self) -> Option<u64> {
        let known = self.ended_total();
        known.or_else(|| (self.so_far > 0).then_some(0)).map(|time| time.saturating_add(self.so_far))
    }

    /// Returns a lower bound on the time of all calls without callees; `None` if unknown.
    pub fn own(&self) -> Option<u64> {
        let known = self.ended_own();
        known.or_else(|| (self.own_so_far > 0).then_some(0)).map(|time| time.saturating_add(self.own_so_far))
    }
}

/// The level of detail that an agent reported on calls, which determines which questions a trace can answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Detail {
    /// Each call, or no calls at all.
    Calls,
    /// F1: the number of calls of methods. Callers and times are unknown.
    Counts,
    /// F1: which methods have run.
    Coverage,
    /// Nothing: the agent stopped before it sent its counts.
    Unsent,
}

/// A thread.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ThreadReport {
    /// The agent's ID of the thread.
    pub id: u32,
    /// The last name of the thread; `None` if unknown.
    pub name: Option<String>,
    /// The number of calls that have begun.
    pub entries: u64,
    /// F1: whether the thread has ended.
    pub ended: bool,
}

/// An exception at a site.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExceptionReport {
    /// The class of the exception; `(exception 3)` if the agent has not sent it, `(any)` if its version has no such
    /// message.
    pub exception: Arc<str>,
    /// The method.
    pub signature: Arc<str>,
    /// The line; `None` if unknown.
    pub line: Option<u16>,
    /// What happened to the exception.
    pub fate: Fate,
    /// The number of times.
    pub count: u64,
}

/// A segment with the methods that were called in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SegmentReport {
    /// The segment, with its times in nanoseconds.
    pub segment: Segment,
    /// The signatures and numbers of calls.
    pub calls: Vec<(Arc<str>, u64)>,
}

/// A slow call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SlowCall {
    /// The duration, in nanoseconds.
    pub took: u64,
    /// The start, in nanoseconds.
    pub start: i64,
    /// The agent's ID of the thread.
    pub thread: u32,
    /// The innermost [`MAX_PATH_LENGTH`] methods of the stack, outermost first and ending with the called one.
    pub path: Vec<Arc<str>>,
    /// The depth of the stack, including the call.
    pub depth: usize,
}

/// The largest number of methods in [`SlowCall::path`]: each of a thousand calls may be as deep as stacks are.
pub const MAX_PATH_LENGTH: usize = 256;

/// A location in a source file that has run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    /// The method.
    pub signature: Arc<str>,
    /// The location; `None` if the agent has not sent it.
    pub location: Option<Location>,
    /// The number of times, or 1 if only known to have run.
    pub count: u64,
}

/// The report on a trace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Report {
    /// The dialect of the agent.
    pub dialect: Dialect,
    /// The totals.
    pub counters: Counters,
    /// The sequence IDs of the first and the last event, extended to 64 bits. `None` if there were no events, and
    /// for F1, where each thread has its own IDs.
    pub sequences: Option<(u64, u64)>,
    /// The number of distinct signatures that the agent sent, with or without calls.
    pub signatures: usize,
    /// The methods, sorted by signature.
    pub methods: Vec<MethodReport>,
    /// The threads, in the order in which they were first seen.
    pub threads: Vec<ThreadReport>,
    /// The exceptions, sorted by class, method and line.
    pub exceptions: Vec<ExceptionReport>,
    /// The segments, sorted by start.
    pub segments: Vec<SegmentReport>,
    /// The slow calls, longest first.
    pub slow_calls: Vec<SlowCall>,
    /// The lines that have run, sorted by method and location.
    pub lines: Vec<Line>,
    /// The rules that were broken.
    pub findings: Vec<Finding>,
    /// The number of calls without a node, because the tree was full.
    pub without_node: u64,
    /// The number of events of threads, methods and sites that exceeded a limit.
    pub beyond: u64,
    /// The number of calls beyond the maximum depth of stacks.
    pub too_deep: u64,
    /// Whether the agent stopped before it sent all of its counts or coverage, according to its connections and its
    /// configuration.
    pub unsent: bool,
}

/// Returns whether a trace is incomplete: events are missing, exceeded a limit, or could not be interpreted.
pub(super) fn is_incomplete(counters: &Counters, over_limit: [u64; 3], findings: &[Finding]) -> bool {
    counters.has_losses()
        || over_limit.iter().any(|count| *count > 0)
        || findings.iter().any(|finding| finding.rule.causes_loss())
}

impl Report {
    /// Returns whether the report is unintentionally incomplete: events never arrived, were dropped, could not be
    /// used, or exceeded a limit. Suspended recording is not a loss.
    pub fn has_losses(&self) -> bool {
        is_incomplete(&self.counters, [self.without_node, self.beyond, self.too_deep], &self.findings)
    }

    /// Returns the level of detail that the agent reported on calls.
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
