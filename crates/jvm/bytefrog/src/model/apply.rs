//! Events in their order to what they mean.
//!
//! Owns: [`Core`]: everything of a trace but the order of its events.

use std::collections::BTreeSet;

use hashbrown::HashMap;
use runtap_bytefrog_proto::{Dialect, JavaStr, JavaString, Location, Rule};

use super::calls::{Flight, Left};
use super::counters::Counters;
use super::event::{Event, Kind};
use super::exceptions::{Flow, Place};
use super::order::Ordered;
use super::ours::Counted;
use super::segments::Segments;
use super::selection::{Ranges, Selection};
use super::slow::Slow;
use super::{Bounds, Calls, Fate, Findings, Limits, Named, Names, names};

/// The exception of a bubble that names none: versions 2 to 4 have a flag only.
pub(crate) const UNNAMED: u32 = u32::MAX;

/// Data breaks that may be told ahead of their events.
const MOST_BREAKS: usize = 1024;

/// Texts of markers that may wait for the events before theirs.
const MOST_MARKERS: usize = 4096;

/// A time of F1 as a signed one, like those of the other versions.
#[inline]
pub(crate) fn signed(time: u64) -> i64 {
    i64::try_from(time).unwrap_or(i64::MAX)
}

#[derive(Debug)]
pub(crate) struct Core {
    pub(crate) calls: Calls,
    pub(crate) flow: Flow,
    pub(crate) segments: Segments,
    pub(crate) names: Names,
    pub(crate) findings: Findings,
    pub(crate) counters: Counters,
    pub(crate) locations: HashMap<u32, Location, foldhash::fast::RandomState>,
    /// Places that have run, by method and location, and how often.
    pub(crate) visited: HashMap<(u32, u32), u64, foldhash::fast::RandomState>,
    pub(crate) counted: HashMap<u32, Counted, foldhash::fast::RandomState>,
    /// The calls of all methods in `counted`, of which `counters` has as many as it can.
    pub(super) counted_calls: u128,
    lines: usize,
    markers: Vec<Option<(JavaString, JavaString)>>,
    /// Places in `markers` that are free.
    free_markers: Vec<u32>,
    breaks: BTreeSet<u64>,
    /// The first of them.
    next_break: u64,
    /// The time of the last event, which those of versions 1 to 4 wrap around.
    pub(crate) clock: i64,
    pub(super) reset: bool,
    /// F1: resets of the agent's counters that are complete.
    pub(super) resets: u64,
    /// F1: how many events of what was begun last had come before.
    pub(super) skipped: u64,
    /// Versions 1 to 4: the id of the first event.
    pub(crate) first: Option<u64>,
    /// How many events there had been at the last gap.
    at_gap: Option<u64>,
    /// Versions 1 to 4: the sequence id of the event that happens now, if it is a marker.
    at_marker: u64,
    /// What is counted, by sequence ids.
    sequences: Option<Ranges<u64>>,
    /// Only a part is counted: what the agent has counted itself is of the whole, and says nothing of it.
    pub(super) is_part: bool,
}

impl Core {
    pub(super) fn new(dialect: Dialect, limits: &Limits, slow: u64) -> Self {
        let bounds = Bounds {
            methods: limits.methods,
            threads: limits.threads,
            depth: limits.depth,
            frames: limits.frames,
        };
        let slow = Slow::new(limits.slow_calls, slow.div_ceil(dialect.nanoseconds()));
        Self {
            calls: Calls::new(bounds, limits.nodes, slow),
            flow: Flow::new(limits.places),
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

    /// Counts nothing else from now on.
    pub(super) fn select(&mut self, selection: Selection, unit: u64) {
        let unit = i64::try_from(unit).unwrap_or(1);
        self.is_part |= selection != Selection::All;
        match selection {
            Selection::All => {}
            Selection::Times(ranges) => {
                // A time that is not a whole number of units: the unit after it is the first that is not before it.
                let up = |time: i64| time.div_euclid(unit) + i64::from(time.rem_euclid(unit) > 0);
                let ranges = ranges.into_iter().map(|(from, until)| (up(from), up(until)));
                self.calls.times = Some(Ranges::new(ranges.collect()));
            }
            Selection::Sequences(ranges) => self.sequences = Some(Ranges::new(ranges)),
        }
    }

    /// The next event of versions 1 to 4, or what is missing before it.
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
                if event.kind == Kind::Marker {
                    self.at_marker = id;
                }
                let [.., a, b, c, d] = self.clock.to_be_bytes();
                let step = event.time.wrapping_sub(u32::from_be_bytes([a, b, c, d])).cast_signed();
                self.clock = self.clock.saturating_add(step.into());
                self.happen(event, self.clock);
            }
            Ordered::Missing(count) => self.missing(count),
        }
    }

    #[inline]
    pub(super) fn happen(&mut self, event: Event, time: i64) {
        if event.kind == Kind::Marker {
            return self.marker(event.method, time);
        }
        let Some(thread) = self.calls.thread(event.thread) else { return self.count_only(event.kind) };
        self.calls.touch(thread);
        let flight = self.calls.at(thread, time);
        match event.kind {
            Kind::Entry => self.enter(thread, event.method, flight),
            Kind::Exit => self.exit(thread, event.method, flight),
            Kind::Exception => self.throw(thread, event.method, event.more, event.line),
            Kind::Bubble => self.bubble(thread, event.method, event.more),
            Kind::Visit => {
                self.counters.visits += 1;
                if self.calls.counts(thread) {
                    self.cover(event.method, Some(event.more));
                }
            }
            Kind::Marker => {}
        }
    }

    /// An event of a thread that has no room.
    #[cold]
    fn count_only(&mut self, kind: Kind) {
        match kind {
            Kind::Entry => self.counters.entries += 1,
            Kind::Exit => self.counters.exits += 1,
            Kind::Exception => self.counters.exceptions += 1,
            Kind::Bubble => self.counters.bubbles += 1,
            Kind::Visit => self.counters.visits += 1,
            Kind::Marker => {}
        }
    }

    /// Everything that has a sequence id.
    pub(super) fn events(&self) -> u64 {
        let Counters { entries, exits, exceptions, bubbles, visits, markers, .. } = self.counters;
        [exits, exceptions, bubbles, visits, markers].into_iter().fold(entries, u64::saturating_add)
    }

    /// Events are missing: a gap of its own, unless nothing has come since the last one, which is given up in pieces.
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
        // Whose they were is not known.
        self.calls.break_all();
    }

    pub(super) fn break_at(&mut self, id: u64) {
        if self.breaks.len() >= MOST_BREAKS {
            // More breaks than anyone makes: events before the next one are cut off with it.
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
    pub(super) fn enter(&mut self, thread: usize, method: u32, flight: bool) {
        self.counters.entries += 1;
        if flight {
            self.land(thread);
        }
        if let Some(method) = self.calls.method(method) {
            self.calls.enter(thread, method);
        }
    }

    #[inline]
    pub(super) fn exit(&mut self, thread: usize, method: u32, flight: bool) {
        self.counters.exits += 1;
        if flight {
            self.land(thread);
        }
        if let Some(index) = self.calls.method(method)
            && self.calls.leave(thread, index, false) == Left::Orphan
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

    /// Counts a place of an exception, if what happens now is counted.
    fn place(&mut self, thread: usize, place: Place) {
        if self.calls.counts(thread) {
            self.flow.add(place);
        }
    }

    /// Whatever is on its way in a thread was caught by the call on top.
    #[cold]
    fn land(&mut self, thread: usize) {
        let flight = self.calls.threads.get_mut(thread).and_then(|thread| thread.flight.take());
        if let (Some(flight), Some(method)) = (flight, self.calls.top(thread)) {
            let exception = flight.exception;
            self.place(thread, Place { exception, method, line: None, fate: Fate::Handled });
        }
    }

    fn throw(&mut self, thread: usize, method: u32, exception: u32, line: u16) {
        self.counters.exceptions += 1;
        self.land(thread);
        let Some(method) = self.calls.method(method) else { return };
        if self.calls.counts(thread)
            && let Some(method) = self.calls.methods.get_mut(method as usize)
        {
            method.throws += 1;
        }
        let line = (line != u16::MAX).then_some(line);
        self.place(thread, Place { exception, method, line, fate: Fate::Thrown });
        if let Some(thread) = self.calls.threads.get_mut(thread) {
            thread.flight = Some(Flight { exception });
        }
    }

    fn bubble(&mut self, thread: usize, method: u32, exception: u32) {
        self.counters.bubbles += 1;
        let Some(index) = self.calls.method(method) else { return };
        let flight = self.calls.threads.get(thread).and_then(|thread| thread.flight);
        if flight != Some(Flight { exception }) {
            self.land(thread);
            self.place(thread, Place { exception, method: index, line: None, fate: Fate::Raised });
        }
        if self.calls.leave(thread, index, true) == Left::Orphan {
            self.orphan(thread, method);
        }
        let escaped = self.calls.top(thread).is_none();
        if escaped {
            self.place(thread, Place { exception, method: index, line: None, fate: Fate::Escaped });
        }
        if let Some(thread) = self.calls.threads.get_mut(thread) {
            thread.flight = (!escaped).then_some(Flight { exception });
        }
    }

    pub(super) fn name(&mut self, kind: names::Kind, id: u32, name: JavaStr<'_>) {
        if self.names.add(kind, id, name) == Named::Changed && kind != names::Kind::Thread {
            self.findings.add(Rule::Remapped, || format!("id {id}, now {:?}", name.to_string()));
        }
    }

    pub(super) fn locate(&mut self, location: &Location) {
        if self.locations.len() < self.lines {
            self.locations.insert(location.location, *location);
        }
    }

    /// A method has run, or a place in it.
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

    /// Keeps the texts of a marker until its turn; gives their place.
    pub(super) fn keep_marker(&mut self, key: JavaStr<'_>, value: JavaStr<'_>) -> u32 {
        let texts = Some((super::segments::cut(key), super::segments::cut(value)));
        if let Some(place) = self.free_markers.pop()
            && let Some(free) = self.markers.get_mut(place as usize)
        {
            *free = texts;
            return place;
        }
        if self.markers.len() >= MOST_MARKERS {
            self.segments.beyond += 1;
            return u32::MAX;
        }
        self.markers.push(texts);
        u32::try_from(self.markers.len() - 1).unwrap_or(u32::MAX)
    }

    /// The texts of a marker, whose place is free then.
    fn take_marker(&mut self, place: u32) -> Option<(JavaString, JavaString)> {
        let texts = self.markers.get_mut(place as usize)?.take()?;
        self.free_markers.push(place);
        Some(texts)
    }

    /// Forgets the texts of a marker whose turn will not come.
    pub(super) fn forget_marker(&mut self, place: u32) {
        self.take_marker(place);
    }

    #[cold]
    fn marker(&mut self, place: u32, time: i64) {
        self.counters.markers += 1;
        let Some((key, value)) = self.take_marker(place) else { return };
        let methods = &self.calls.methods;
        let calls = || methods.iter().map(|method| method.entries).collect();
        self.segments.marker(key.as_java_str(), value.as_java_str(), (time, self.at_marker), calls);
    }

    /// Calls of each method.
    pub(super) fn entries(&self) -> Vec<u64> {
        self.calls.methods.iter().map(|method| method.entries).collect()
    }
}
