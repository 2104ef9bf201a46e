//! What a trace has come to, at any time.
//!
//! Owns: [`Report`], which borrows nothing: the trace goes on while it is shown. Ids are gone here: methods
//! with one signature are one, from however many class loaders. Places and paths share the texts that they name: a name
//! may have 64 KiB, and there are hundreds of thousands of places.

use std::sync::Arc;

use hashbrown::{HashMap, HashSet};
use runtap_bytefrog_proto::{Dialect, Location, Rule};

use super::Model;
use super::apply::{Core, UNNAMED};
use super::call_tree::inclusive;
use super::counters::Counters;
use super::exceptions::{Fate, Place};
use super::findings::Finding;
use super::segments::Segment;
use super::tree::NONE;

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
    /// Calls, each on its own; or nothing at all.
    Calls,
    /// F1: how often methods were called. Nothing is known of callers and times.
    Counts,
    /// F1: which methods have run.
    Coverage,
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
}

/// Whether a trace is less than what the agent had to say: of its events, of what had room, of what was understood.
fn loses(counters: &Counters, without_room: [u64; 3], findings: &[Finding]) -> bool {
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
        } else {
            Detail::Calls
        }
    }
}

impl Core {
    /// Events of threads and methods, and places, that had no room.
    fn beyond(&self) -> u64 {
        self.calls.beyond + self.flow.beyond + self.segments.beyond
    }
}

impl Model {
    pub(super) fn nanoseconds(&self, ticks: u64) -> u64 {
        ticks.saturating_mul(self.dialect.nanoseconds())
    }

    pub(super) fn signature(&self, id: u32) -> String {
        match self.core.names.methods.get(&id) {
            Some(name) => name.to_string(),
            None => format!("(method {id})"),
        }
    }

    /// The signatures, sorted, and which one each method has.
    pub(super) fn signatures(&self) -> (Vec<String>, Vec<usize>) {
        let each: Vec<String> =
            self.core.calls.methods.iter().map(|method| self.signature(method.id)).collect();
        let mut sorted = each.clone();
        sorted.sort_unstable();
        sorted.dedup();
        let which = each.iter().map(|signature| sorted.binary_search(signature).unwrap_or(0)).collect();
        (sorted, which)
    }

    /// What the trace has come to so far.
    pub fn report(&self) -> Report {
        let core = &self.core;
        let tree = self.call_tree(None);
        let (signatures, which) = self.signatures();
        let mut methods: Vec<MethodReport> = signatures
            .iter()
            .map(|signature| MethodReport { signature: signature.clone(), ..MethodReport::default() })
            .collect();
        let mut unnamed = 0;
        for ((index, method), at) in (0u32..).zip(&core.calls.methods).zip(&which) {
            let Some(report) = methods.get_mut(*at) else { continue };
            report.entries += method.entries;
            report.exits += method.exits;
            report.bubbles += method.bubbles;
            report.throws += method.throws;
            report.own = report.own.saturating_add(self.nanoseconds(method.own));
            report.has_run |= method.covered || method.entries > 0;
            if let Some(counted) = core.counted.get(&index) {
                let total = counted.total();
                let (calls, thrown, time) = report.counted.unwrap_or_default();
                report.counted = Some((
                    calls.saturating_add(total.calls),
                    thrown.saturating_add(total.thrown),
                    time.saturating_add(total.nanoseconds),
                ));
                report.has_run |= total.calls > 0;
            }
            unnamed += u64::from(!core.names.methods.contains_key(&method.id));
        }
        inclusive(&tree, &mut methods);
        let shared: Vec<Arc<str>> = signatures.into_iter().map(Arc::from).collect();
        let thread = |thread: usize| core.calls.threads.get(thread).map_or(0, |thread| thread.id);
        let threads = core.calls.threads.iter().map(|thread| ThreadReport {
            id: thread.id,
            name: core.names.threads.get(&thread.id).map(ToString::to_string),
            entries: thread.entries,
            ended: thread.ended,
        });
        // Names are compared by their ranks: two of them may have 64 KiB each, and there are hundreds of thousands of rows.
        let rank = |method: u32| which.get(method as usize).copied().unwrap_or(0);
        let named = |rank: usize| shared.get(rank).map_or_else(|| Arc::from(""), Arc::clone);
        let signature = |method: u32| named(rank(method));
        let places = core.flow.places();
        let (classes, class_ranks, nameless) = self.exception_names(places.iter().map(|(place, _)| place));
        let mut places: Vec<_> = places
            .into_iter()
            .map(|(place, count)| {
                let class = class_ranks.get(&place.exception).copied().unwrap_or(0);
                ((class, rank(place.method), place.line, place.fate), count)
            })
            .collect();
        places.sort_unstable();
        // Ids of several class loaders.
        places.dedup_by(|next, kept| {
            let same = next.0 == kept.0;
            kept.1 += if same { next.1 } else { 0 };
            same
        });
        let exceptions = places.into_iter().map(|((class, method, line, fate), count)| ExceptionReport {
            exception: classes.get(class).map_or_else(|| Arc::from(""), Arc::clone),
            signature: named(method),
            line,
            fate,
            count,
        });
        let scale = i64::try_from(self.dialect.nanoseconds()).unwrap_or(1);
        let segments = core.segments.all(&core.entries()).into_iter().map(|mut segment| {
            segment.start = segment.start.saturating_mul(scale);
            segment.end = segment.end.map(|end| end.saturating_mul(scale));
            let calls = segment.calls.iter().map(|(method, calls)| (rank(*method), *calls)).collect();
            let calls = merged(calls).into_iter().map(|(method, calls)| (named(method), calls)).collect();
            SegmentReport { segment, calls }
        });
        let slow_calls = core.calls.slow.calls().into_iter().map(|call| {
            let (path, depth) = self.path(call.node, call.method, &signature);
            SlowCall {
                took: self.nanoseconds(call.took),
                start: call.entered.saturating_mul(scale),
                thread: thread(call.thread),
                path,
                depth,
            }
        });
        let mut lines: Vec<(usize, Option<Location>, u64)> = core
            .visited
            .iter()
            .map(|((method, location), count)| (rank(*method), core.locations.get(location).copied(), *count))
            .collect();
        lines.sort_by_key(|(method, location, count)| {
            let place = location.map(|place| (place.start_line, place.end_line, place.location));
            (*method, place, *count)
        });
        let lines = lines.into_iter().map(|(method, location, count)| Line {
            signature: named(method),
            location,
            count,
        });
        let mut findings = core.findings.all();
        let mut add = |rule: Rule, count: u64, what: &str| {
            if count > 0 {
                findings.push(Finding { rule, count, first: vec![format!("{count} {what}")] });
            }
        };
        add(Rule::UnknownMethod, unnamed, "methods");
        add(Rule::UnknownException, nameless, "exceptions");
        add(Rule::ClockBackwards, core.calls.backwards, "events");
        let exhausted = self.dialect != Dialect::F1 && core.calls.threads.len() > usize::from(u16::MAX);
        add(Rule::ThreadsExhausted, exhausted.into(), "time");
        findings.sort_by_key(|finding| finding.rule);
        Report {
            dialect: self.dialect,
            counters: core.counters,
            sequences: self.sequences(),
            signatures: core.names.signatures(),
            methods,
            threads: threads.collect(),
            exceptions: exceptions.collect(),
            segments: segments.collect(),
            slow_calls: slow_calls.collect(),
            lines: lines.collect(),
            findings,
            untold: core.calls.tree.untold,
            beyond: core.beyond(),
            too_deep: core.calls.too_deep,
        }
    }

    /// The names of the exceptions at these places, sorted, which of them each exception has, and how many have none.
    fn exception_names<'p>(
        &self,
        places: impl Iterator<Item = &'p Place>,
    ) -> (Vec<Arc<str>>, HashMap<u32, usize>, u64) {
        let mut nameless = 0;
        let ids: HashSet<u32> = places.map(|place| place.exception).collect();
        let each: Vec<(u32, Arc<str>)> = ids
            .into_iter()
            .map(|id| {
                let name = match self.core.names.exceptions.get(&id) {
                    Some(name) => name.to_string(),
                    None if id == UNNAMED => "(any)".to_owned(),
                    None => {
                        nameless += 1;
                        format!("(exception {id})")
                    }
                };
                (id, name.into())
            })
            .collect();
        let mut sorted: Vec<Arc<str>> = each.iter().map(|(_, name)| Arc::clone(name)).collect();
        sorted.sort_unstable();
        sorted.dedup();
        let ranks = each.into_iter().map(|(id, name)| (id, sorted.binary_search(&name).unwrap_or(0)));
        let ranks = ranks.collect();
        (sorted, ranks, nameless)
    }

    /// [`Report::has_losses`] without a report, which is much work.
    pub fn has_losses(&self) -> bool {
        let core = &self.core;
        let without_room = [core.calls.tree.untold, core.beyond(), core.calls.too_deep];
        loses(&core.counters, without_room, core.findings.each())
    }

    fn sequences(&self) -> Option<(u64, u64)> {
        let last = self.window.next().checked_sub(1)?;
        (self.dialect != Dialect::F1 && self.core.events() > 0).then(|| (self.core.first.unwrap_or(0), last))
    }

    /// The callers of a call, outermost first, and itself, as far as they are kept; and how many there are.
    fn path(
        &self,
        mut node: u32,
        method: u32,
        signature: &dyn Fn(u32) -> Arc<str>,
    ) -> (Vec<Arc<str>>, usize) {
        let nodes = self.core.calls.tree.nodes();
        let (mut path, mut depth) = (Vec::new(), 0);
        while let Some(at) = nodes.get(node as usize).filter(|at| at.parent != NONE) {
            if path.len() < LONGEST_PATH {
                path.push(signature(at.method));
            }
            depth += 1;
            node = at.parent;
        }
        if path.is_empty() {
            path.push(signature(method));
        }
        path.reverse();
        let depth = depth.max(path.len());
        (path, depth)
    }
}

/// Sorted by the ranks of signatures, with the calls of equal ones added up.
fn merged(mut calls: Vec<(usize, u64)>) -> Vec<(usize, u64)> {
    calls.sort_unstable();
    calls.dedup_by(|next, kept| {
        let same = next.0 == kept.0;
        kept.1 += if same { next.1 } else { 0 };
        same
    });
    calls
}
