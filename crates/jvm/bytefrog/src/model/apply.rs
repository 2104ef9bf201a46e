//! The interpretation of events that are in order.
//!
//! [`TraceState`] is all of a trace except the order of its events.

use std::collections::BTreeSet;

use hashbrown::HashMap;
use runtap_bytefrog_proto::{Dialect, JavaStr, JavaString, Location, Rule};

use super::calls::{InFlight, LeaveOutcome};
use super::counters::Counters;
use super::event::{Event, EventKind};
use super::exceptions::{ExceptionSite, ExceptionSites};
use super::f1::AgentCounts;
use super::order::Ordered;
use super::segments::Segments;
use super::selection::{Ranges, Selection};
use super::slow::SlowCallLog;
use super::{AddOutcome, Bounds, Calls, Fate, Findings, Limits, Names, names};

/// The exception of a bubble that does not name one: versions 2 to 4 have only a flag.
pub(crate) const UNNAMED: u32 = u32::MAX;

/// The maximum number of data breaks that may arrive before their events.
const MAX_BREAKS: usize = 1024;

/// The maximum number of markers whose texts may wait for earlier events.
const MAX_MARKERS: usize = 4096;

/// Converts a time of F1 to a signed one, as used for the other versions.
#[inline]
pub(crate) fn signed(time: u64) -> i64 {
    i64::try_from(time).unwrap_or(i64::MAX)
}

#[derive(Debug)]
pub(crate) struct TraceState {
    pub(crate) calls: Calls,
    pub(crate) exceptions: ExceptionSites,
    pub(crate) segments: Segments,
    pub(crate) names: Names,
    pub(crate) findings: Findings,
    pub(crate) counters: Counters,
    pub(crate) locations: HashMap<u32, Location, foldhash::fast::RandomState>,
    /// The number of times that a location has run, by method and location.
    pub(crate) visited: HashMap<(u32, u32), u64, foldhash::fast::RandomState>,
    pub(crate) counted: HashMap<u32, AgentCounts, foldhash::fast::RandomState>,
    /// The total number of calls in `counted`, where `counters` saturates.
    pub(super) counted_calls: u128,
    lines: usize,
    markers: Vec<Option<(JavaString, JavaString)>>,
    /// The free indices in `markers`.
    free_markers: Vec<u32>,
    breaks: BTreeSet<u64>,
    /// The smallest element of `breaks`.
    next_break: u64,
    /// The time of the last event, which extends the times of versions 1 to 4 beyond their wrap-around.
    pub(crate) clock: i64,
    pub(super) reset: bool,
    /// F1: the number of complete resets of the agent's counters.
    pub(super) resets: u64,
    /// F1: the number of events in the last batch or snapshot that had already arrived.
    pub(super) skipped: u64,
    /// Versions 1 to 4: the ID of the first event.
    pub(crate) first: Option<u64>,
    /// The number of events at the last gap.
    at_gap: Option<u64>,
    /// Versions 1 to 4: the sequence ID of the current event, if it is a marker.
    at_marker: u64,
    /// The sequence IDs that are counted; `None` for all.
    sequences: Option<Ranges<u64>>,
    /// Whether only a part of the trace is counted. The agent's own counts are then ignored, because they cover the
    /// whole trace.
    pub(super) is_part: bool,
}

impl TraceState {
    pub(super) fn new(dialect: Dialect, limits: &Limits, slow: u64) -> Self {
        let bounds = Bounds {
            methods: limits.methods,
            threads: limits.threads,
            depth: limits.depth,
            frames: limits.frames,
        };
        let slow = SlowCallLog::new(limits.slow_calls, slow.div_ceil(dialect.nanoseconds()));
        Self {
            calls: Calls::new(bounds, limits.nodes, slow),
            exceptions: ExceptionSites::new(limits.places),
            segments: Segments::new(limits.segments, 1 << 20),
            names: Names::new(limits.names),
            findings: Findings::default(),
            counters: Counters::default(),
            locations: HashMap::default(),
            visited: HashMap::default(),
            counted: HashMap::default(),
            counted_calls: 0,
            lines: limits.lines,
            markers: Vec::new(),
            free_markers: Vec::new(),
            breaks: BTreeSet::new(),
            next_break: u64::MAX,
            clock: 0,
            reset: false,
            resets: 0,
            skipped: 0,
            first: None,
            at_gap: None,
            at_marker: 0,
            sequences: None,
            is_part: false,
        }
    }

    /// Restricts the counting to a selection from now on.
    pub(super) fn select(&mut self, selection: Selection, unit: u64) {
        let unit = i64::try_from(unit).unwrap_or(1);
        self.is_part |= selection != Selection::All;
        match selection {
            Selection::All => {}
            Selection::Times(ranges) => {
                // A time that is not a whole number of units is rounded up, to the first unit that is not before it.
                let up = |time: i64| time.div_euclid(unit) + i64::from(time.rem_euclid(unit) > 0);
                let ranges = ranges.into_iter().map(|(from, until)| (up(from), up(until)));
                self.calls.times = Some(Ranges::new(ranges.collect()));
            }
            Selection::Sequences(ranges) => self.sequences = Some(Ranges::new(ranges)),
        }
    }

    /// Applies the next event of versions 1 to 4, or the gap before it.
    #[inline]
    pub(super) fn apply(&mut self, ordered: Ordered<Event>) {
        match ordered {
            Ordered::Event(id, event) => {
                if id >= self.next_break {
                    self.pass_breaks(id);
                }
                if let Some(sequences) = &self.sequences {
                    self.calls.counting = sequences.has(id);
                }
                if event.kind == EventKind::Marker {
                    self.at_marker = id;
                }
                let [.., a, b, c, d] = self.clock.to_be_bytes();
                let step = event.time.wrapping_sub(u32::from_be_bytes([a, b, c, d])).cast_signed();
                self.clock = self.clock.saturating_add(step.into());
                self.apply_event(event, self.clock);
            }
            Ordered::Missing(count) => self.missing(count),
        }
    }

    /// Applies an event at its time.
    #[inline]
    pub(super) fn apply_event(&mut self, event: Event, time: i64) {
        if event.kind == EventKind::Marker {
            return self.marker(event.method, time);
        }
        let Some(thread) = self.calls.thread(event.thread) else { return self.count_only(event.kind) };
        self.calls.touch(thread);
        let in_flight = self.calls.at(thread, time);
        match event.kind {
            EventKind::Entry => self.enter(thread, event.method, in_flight),
            EventKind::Exit => self.exit(thread, event.method, in_flight),
            EventKind::Exception => self.throw(thread, event.method, event.more, event.line),
            EventKind::Bubble => self.bubble(thread, event.method, event.more),
            EventKind::Visit => {
                self.counters.visits += 1;
                if self.calls.counts(thread) {
                    self.cover(event.method, Some(event.more));
                }
            }
            EventKind::Marker => {}
        }
    }

    /// Counts an event of a thread that exceeds the limit of threads.
    #[cold]
    fn count_only(&mut self, kind: EventKind) {
        match kind {
            EventKind::Entry => self.counters.entries += 1,
            EventKind::Exit => self.counters.exits += 1,
            EventKind::Exception => self.counters.exceptions += 1,
            EventKind::Bubble => self.counters.bubbles += 1,
            EventKind::Visit => self.counters.visits += 1,
            EventKind::Marker => {}
        }
    }

    /// Returns the number of events that have a sequence ID.
    pub(super) fn events(&self) -> u64 {
        let Counters { entries, exits, exceptions, bubbles, visits, markers, .. } = self.counters;
        [exits, exceptions, bubbles, visits, markers].into_iter().fold(entries, u64::saturating_add)
    }

    /// Counts a gap, unless no event has arrived since the last one: IDs are given up in pieces.
    pub(super) fn count_gap(&mut self) {
        let events = Some(self.events());
        if self.at_gap != events {
            self.at_gap = events;
            self.counters.gaps += 1;
        }
    }

    #[cold]
    fn missing(&mut self, count: u64) {
        if self.events() == 0 {
            self.first = Some(self.first.unwrap_or(0).saturating_add(count));
        }
        self.count_gap();
        self.counters.missing = self.counters.missing.saturating_add(count);
        self.findings.add_many(Rule::SequenceGap, count, || format!("{count} events"));
        // The threads of the missing events are unknown.
        self.calls.break_all();
    }

    pub(super) fn break_at(&mut self, id: u64) {
        if self.breaks.len() >= MAX_BREAKS {
            // Agents do not send so many breaks: break the stacks now, which affects the events before the next
            // break too.
            self.calls.break_all();
            return;
        }
        self.breaks.insert(id);
        self.next_break = self.breaks.first().copied().unwrap_or(u64::MAX);
    }

    #[cold]
    fn pass_breaks(&mut self, id: u64) {
        while self.breaks.first().is_some_and(|at| *at <= id) {
            self.breaks.pop_first();
        }
        self.next_break = self.breaks.first().copied().unwrap_or(u64::MAX);
        self.calls.break_all();
    }

    #[inline]
    pub(super) fn enter(&mut self, thread: usize, method: u32, in_flight: bool) {
        self.counters.entries += 1;
        if in_flight {
            self.handle_in_flight(thread);
        }
        if let Some(method) = self.calls.method(method) {
            self.calls.enter(thread, method);
        }
    }

    #[inline]
    pub(super) fn exit(&mut self, thread: usize, method: u32, in_flight: bool) {
        self.counters.exits += 1;
        if in_flight {
            self.handle_in_flight(thread);
        }
        if let Some(index) = self.calls.method(method)
            && self.calls.leave(thread, index, false) == LeaveOutcome::Orphan
        {
            self.orphan(thread, method);
        }
    }

    #[cold]
    fn orphan(&mut self, thread: usize, method: u32) {
        self.counters.orphans += 1;
        let thread = self.calls.threads.get(thread).map_or(0, |thread| thread.id);
        self.findings.add(Rule::ExitWithoutEntry, || format!("method {method} in thread {thread}"));
    }

    /// Counts an exception site, if the current event is counted.
    fn add_site(&mut self, thread: usize, site: ExceptionSite) {
        if self.calls.counts(thread) {
            self.exceptions.add(site);
        }
    }

    /// Notes that the exception in flight of a thread was caught by the call on top.
    #[cold]
    fn handle_in_flight(&mut self, thread: usize) {
        let in_flight = self.calls.threads.get_mut(thread).and_then(|thread| thread.in_flight.take());
        if let (Some(in_flight), Some(method)) = (in_flight, self.calls.top(thread)) {
            let exception = in_flight.exception;
            self.add_site(thread, ExceptionSite { exception, method, line: None, fate: Fate::Handled });
        }
    }

    fn throw(&mut self, thread: usize, method: u32, exception: u32, line: u16) {
        self.counters.exceptions += 1;
        self.handle_in_flight(thread);
        let Some(method) = self.calls.method(method) else { return };
        if self.calls.counts(thread)
            && let Some(method) = self.calls.methods.get_mut(method as usize)
        {
            method.throws += 1;
        }
        let line = (line != u16::MAX).then_some(line);
        self.add_site(thread, ExceptionSite { exception, method, line, fate: Fate::Thrown });
        if let Some(thread) = self.calls.threads.get_mut(thread) {
            thread.in_flight = Some(InFlight { exception });
        }
    }

    fn bubble(&mut self, thread: usize, method: u32, exception: u32) {
        self.counters.bubbles += 1;
        let Some(index) = self.calls.method(method) else { return };
        let in_flight = self.calls.threads.get(thread).and_then(|thread| thread.in_flight);
        if in_flight != Some(InFlight { exception }) {
            self.handle_in_flight(thread);
            self.add_site(thread, ExceptionSite { exception, method: index, line: None, fate: Fate::Raised });
        }
        if self.calls.leave(thread, index, true) == LeaveOutcome::Orphan {
            self.orphan(thread, method);
        }
        let escaped = self.calls.top(thread).is_none();
        if escaped {
            self.add_site(
                thread,
                ExceptionSite { exception, method: index, line: None, fate: Fate::Escaped },
            );
        }
        if let Some(thread) = self.calls.threads.get_mut(thread) {
            thread.in_flight = (!escaped).then_some(InFlight { exception });
        }
    }

    pub(super) fn name(&mut self, kind: names::NameKind, id: u32, name: JavaStr<'_>) {
        if self.names.add(kind, id, name) == AddOutcome::Changed && kind != names::NameKind::Thread {
            self.findings.add(Rule::Remapped, || format!("id {id}, now {:?}", name.to_string()));
        }
    }

    pub(super) fn locate(&mut self, location: &Location) {
        if self.locations.len() < self.lines {
            self.locations.insert(location.location, *location);
        }
    }

    /// Notes that a method, or a location in it, has run.
    pub(super) fn cover(&mut self, method: u32, location: Option<u32>) {
        let Some(method) = self.calls.method(method) else { return };
        if let Some(method) = self.calls.methods.get_mut(method as usize) {
            method.covered = true;
        }
        let Some(location) = location else { return };
        if let Some(count) = self.visited.get_mut(&(method, location)) {
            *count += 1;
        } else if self.visited.len() < self.lines {
            self.visited.insert((method, location), 1);
        } else {
            self.calls.beyond += 1;
        }
    }

    /// Stores the texts of a marker until its event is applied. Returns their index.
    pub(super) fn keep_marker(&mut self, key: JavaStr<'_>, value: JavaStr<'_>) -> u32 {
        let texts = Some((super::segments::truncated(key), super::segments::truncated(value)));
        if let Some(index) = self.free_markers.pop()
            && let Some(free) = self.markers.get_mut(index as usize)
        {
            *free = texts;
            return index;
        }
        if self.markers.len() >= MAX_MARKERS {
            self.segments.beyond += 1;
            return u32::MAX;
        }
        self.markers.push(texts);
        u32::try_from(self.markers.len() - 1).unwrap_or(u32::MAX)
    }

    /// Removes and returns the texts of a marker.
    fn take_marker(&mut self, index: u32) -> Option<(JavaString, JavaString)> {
        let texts = self.markers.get_mut(index as usize)?.take()?;
        self.free_markers.push(index);
        Some(texts)
    }

    /// Removes the texts of a marker whose event is not applied.
    pub(super) fn forget_marker(&mut self, index: u32) {
        self.take_marker(index);
    }

    #[cold]
    fn marker(&mut self, index: u32, time: i64) {
        self.counters.markers += 1;
        let Some((key, value)) = self.take_marker(index) else { return };
        let methods = &self.calls.methods;
        let calls = || methods.iter().map(|method| method.entries).collect();
        self.segments.marker(key.as_java_str(), value.as_java_str(), (time, self.at_marker), calls);
    }

    /// Returns the number of calls of each method.
    pub(super) fn entries(&self) -> Vec<u64> {
        self.calls.methods.iter().map(|method| method.entries).collect()
    }
}
