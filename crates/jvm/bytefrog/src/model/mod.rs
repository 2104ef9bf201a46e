//! What a Java program does, from the events of its agent: a call tree, counts of methods, exceptions, segments, slow calls.
//!
//! Owns: [`Model`], which takes the messages of one agent, of all its data connections in any order, and
//! [`Report`](crate::Report), what it has come to. Refuses to: touch a socket or a clock.
//!
//! - **Order**: events of versions 1 to 4 are put in order by their sequence ids in a window of bounded size (`order`); those
//!   of F1 are in order for each thread.
//! - **Nothing is invented**: a frame is opened by an entry only. Where events are missing, or recording was suspended, open
//!   frames are cut: counted, without a time. An end without a beginning is counted for its method and makes no frame.
//! - **Memory** is bounded by [`Limits`], however many events come: what has no room is counted.
//!
//! A data break of versions 1 to 4 may name an id that is a few events too early: an entry among these is a caller of what
//! comes after the break, until its thread's next exit shows otherwise. F1's drops are exact.

mod apply;
pub(crate) mod call_tree;
mod calls;
mod changes;
mod counters;
mod event;
mod exceptions;
mod findings;
mod ids;
mod names;
mod order;
mod ours;
pub(crate) mod report;
mod segments;
mod selection;
mod slow;
mod summary;
mod sums;
mod tree;

use runtap_bytefrog_proto::{Dialect, Exit, Message, Rule, Stamp};

use apply::Core;
use calls::{Bounds, Calls};
use event::{Event, Kind};
use findings::Findings;
use names::{Named, Names};
use order::Window;

pub use changes::{Change, StackChange};
pub use counters::Counters;
pub use exceptions::Fate;
pub use findings::Finding;
pub use segments::Segment;
pub use selection::{Selection, in_order};
pub use sums::Sums;

/// How much is kept. What has no room is counted, and said in the report.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Events that may wait for those before them; a power of two. 20 bytes each. A data connection that is further behind
    /// the others than that loses what it has: its events are counted as missing, and then as repeated.
    pub window: usize,
    /// Nodes of all call trees together. 60 bytes each.
    pub nodes: usize,
    /// Methods. 64 bytes each.
    pub methods: u32,
    /// Threads. 140 bytes each. Versions 1 to 4 have 65,536 at most.
    pub threads: u32,
    /// Calls on one stack.
    pub depth: usize,
    /// Calls on all stacks together. 24 bytes each.
    pub frames: usize,
    /// Places where exceptions begin or end.
    pub places: usize,
    /// Source locations, and as many of them that have run. 70 bytes each.
    pub lines: usize,
    /// Segments.
    pub segments: usize,
    /// Calls in the log of slow calls.
    pub slow_calls: usize,
    /// Bytes of all names together.
    pub names: usize,
}

impl Limits {
    /// An eighth of each, but for the calls on one stack and the log of slow calls: for traces of which there may be many.
    #[must_use]
    pub fn small(&self) -> Self {
        const PART: usize = 8;
        const PART_32: u32 = 8;
        Self {
            window: (self.window / PART).max(1),
            nodes: self.nodes / PART,
            methods: self.methods / PART_32,
            threads: self.threads / PART_32,
            depth: self.depth,
            frames: self.frames / PART,
            places: self.places / PART,
            lines: self.lines / PART,
            segments: self.segments / PART,
            slow_calls: self.slow_calls,
            names: self.names / PART,
        }
    }
}

impl Default for Limits {
    /// Room for 10,000 methods in each of 100 threads, within 100 MB; or for 262,144 threads, as F1 can have them.
    fn default() -> Self {
        Self {
            window: 1 << 17,
            nodes: (1 << 20) - (1 << 14),
            methods: 1 << 16,
            threads: 1 << 18,
            depth: 1 << 16,
            frames: 1 << 19,
            places: 1 << 16,
            lines: 1 << 19,
            segments: 1 << 12,
            slow_calls: 1000,
            names: 16 << 20,
        }
    }
}

/// The trace of one agent.
#[derive(Debug)]
pub struct Model {
    dialect: Dialect,
    window: Window<Event>,
    core: Core,
}

impl Model {
    /// A trace of which nothing has come. Calls that take `slow` nanoseconds or more get into the log of slow calls.
    pub fn new(dialect: Dialect, limits: &Limits, slow: u64) -> Self {
        // F1 needs no window.
        let window = if dialect == Dialect::F1 { 0 } else { limits.window };
        Self { dialect, window: Window::new(window), core: Core::new(dialect, limits, slow) }
    }

    /// Counts a part of the trace only. To be said before the first event: what was counted stays.
    #[must_use]
    pub fn selecting(mut self, selection: Selection) -> Self {
        self.core.select(selection, self.dialect.nanoseconds());
        self
    }

    /// Counts calls that begin from now on, or does not, until it is said again. To be said before the first event, too. What the
    /// agent itself has counted (F1) is of the whole, and left out of parts. Of a trace that is selected by sequence ids
    /// it changes nothing.
    pub fn set_counting(&mut self, counting: bool) {
        self.core.is_part = true;
        self.core.calls.counting = counting;
    }

    /// Keeps every change of a stack until it is [taken](Self::take_changes).
    pub fn log_changes(&mut self) {
        self.core.calls.log.get_or_insert_default();
    }

    /// What has changed since it was taken last, in the order in which it happened. What is kept grows with each event, so
    /// this is for after each chunk.
    pub fn take_changes(&mut self) -> Vec<Change> {
        let mut changes = self.core.calls.log.as_mut().map(std::mem::take).unwrap_or_default();
        let unit = i64::try_from(self.dialect.nanoseconds()).unwrap_or(1);
        for change in &mut changes {
            change.time = change.time.saturating_mul(unit);
        }
        changes
    }

    /// The signature of a method by its index, as [`StackChange::Opened`] has it; as far as it is known now.
    pub fn method(&self, index: u32) -> String {
        let method = self.core.calls.methods.get(index as usize);
        method.map_or_else(|| format!("(method {index})"), |method| self.signature(method.id))
    }

    /// What the agent speaks.
    pub fn dialect(&self) -> Dialect {
        self.dialect
    }

    /// What was counted so far.
    pub fn counters(&self) -> Counters {
        self.core.counters
    }

    /// Events that wait for those before them.
    pub fn waiting(&self) -> usize {
        self.window.waiting()
    }

    /// The sequence id of the next event that counts, in 64 bits.
    pub(crate) fn awaited(&self) -> u64 {
        self.window.next()
    }

    /// The whole id of a message's event, if it is so far ahead of the awaited one that taking it gives ids up. None of F1,
    /// whose events are in order.
    #[inline]
    pub(crate) fn beyond(&self, message: &Message<'_>) -> Option<u64> {
        if self.dialect == Dialect::F1 {
            return None;
        }
        match message {
            Message::Entry { at, .. }
            | Message::Exit { at, .. }
            | Message::Exception { at, .. }
            | Message::Bubble { at, .. }
            | Message::Visit { at, .. } => self.window.beyond(at.sequence),
            Message::Marker { sequence, .. } => self.window.beyond(*sequence),
            _ => None,
        }
    }

    /// Whether that is still so for an event.
    pub(crate) fn is_beyond(&self, id: u64) -> bool {
        self.window.is_beyond(id)
    }

    /// The id of the first event that waits. Those between the awaited one and it have not come either.
    pub(crate) fn first_held(&self) -> Option<u64> {
        self.window.first_held()
    }

    /// The events before this id that have not come will not come.
    pub(crate) fn give_up_before(&mut self, id: u64) {
        let core = &mut self.core;
        self.window.give_up_before(id, |ordered| core.apply(ordered));
    }

    /// Takes a message of a data connection, or a data break. Others are not for a trace, and ignored.
    #[inline]
    pub fn take(&mut self, message: &Message<'_>) {
        match *message {
            Message::Entry { at, method } => {
                let event = Event::new(Kind::Entry, &at, method, 0);
                self.offer(&at, event);
            }
            Message::Exit { at, method, exit } => {
                let (event, flagged) = match exit {
                    Exit::Line(line) => (Event::new(Kind::Exit, &at, method, 0).with_line(line), 0),
                    Exit::Thrown(0) => (Event::new(Kind::Exit, &at, method, 0), 0),
                    Exit::Thrown(_) => (Event::new(Kind::Bubble, &at, method, apply::UNNAMED), 1),
                };
                let used = self.offer(&at, event);
                self.core.counters.flagged += u64::from(used) & flagged;
            }
            Message::Batch(batch) => self.core.batch(&batch),
            _ => self.take_rare(message),
        }
    }

    #[inline]
    fn offer(&mut self, at: &Stamp, event: Event) -> bool {
        let core = &mut self.core;
        let used = self.window.offer(at, event, |ordered| core.apply(ordered)).is_ok();
        if !used {
            core.counters.repeated += 1;
            core.findings.add(Rule::SequenceRepeated, || format!("sequence {}", at.sequence));
        }
        used
    }

    /// The same for what F1 has too, where only the thread counts.
    fn offer_single(&mut self, at: &Stamp, event: Event) -> bool {
        if self.dialect == Dialect::F1 { self.core.single(at, event) } else { self.offer(at, event) }
    }

    #[cold]
    fn take_rare(&mut self, message: &Message<'_>) {
        match *message {
            Message::Exception { at, method, exception, line } => {
                let event = Event::new(Kind::Exception, &at, method, exception).with_line(line);
                self.offer_single(&at, event);
            }
            Message::Bubble { at, method, exception } => {
                let event = Event::new(Kind::Bubble, &at, method, exception);
                self.offer_single(&at, event);
            }
            Message::Visit { at, method, location } => {
                self.offer(&at, Event::new(Kind::Visit, &at, method, location));
            }
            Message::Marker { time, sequence, thread, key, value } => {
                let at = Stamp { time, sequence, thread: thread.unwrap_or(0) };
                // The texts wait beside the window. Their place is the event's method.
                let slot = self.core.keep_marker(key, value);
                let event = Event::new(Kind::Marker, &at, slot, 0);
                if !self.offer_single(&at, event) {
                    self.core.forget_marker(slot);
                }
            }
            Message::MapThreadName { thread, name, .. } => {
                self.core.name(names::Kind::Thread, thread, name);
            }
            Message::MapMethod { method, signature } => {
                self.core.name(names::Kind::Method, method, signature);
            }
            Message::MapException { exception, name } => {
                self.core.name(names::Kind::Exception, exception, name);
            }
            Message::MapLocation(location) => self.core.locate(&location),
            Message::DataBreak { sequence } => self.data_break(sequence),
            Message::ThreadEnd { thread, time } => self.core.thread_end(thread, time),
            Message::Drop(drop) => self.core.dropped(&drop),
            Message::Counts(rows) if !self.core.is_part => self.core.count(&rows),
            Message::Coverage(rows) if !self.core.is_part => {
                for hit in rows.hits() {
                    self.core.cover(hit.method, hit.location);
                }
            }
            _ => {}
        }
    }

    /// Recording was suspended before the event with this id.
    fn data_break(&mut self, sequence: u32) {
        self.core.counters.data_breaks += 1;
        match self.window.whole(sequence) {
            Some(at) if at >= self.window.next() => self.core.break_at(at),
            at => {
                let behind = at.map_or(0, |at| self.window.next() - at);
                self.core.findings.add(Rule::LateBreak, || format!("{behind} events too late"));
                self.core.calls.break_all();
            }
        }
    }

    /// Nothing more will come: what waits is used, and what it waits for is missing.
    pub fn finish(&mut self) {
        let core = &mut self.core;
        self.window.flush(|ordered| core.apply(ordered));
        core.calls.tree.seal();
        core.calls.shrink();
    }

    /// Whether all that is kept of it takes no more than these limits allow.
    pub(crate) fn fits(&self, limits: &Limits) -> bool {
        let Core { calls, flow, segments, names, locations, visited, .. } = &self.core;
        calls.tree.nodes().len() <= limits.nodes
            && calls.methods.len() <= limits.methods as usize
            && calls.threads.len() <= limits.threads as usize
            && calls.depth() <= limits.frames
            && flow.len() <= limits.places
            && locations.len().max(visited.len()) <= limits.lines
            && segments.len() <= limits.segments
            && names.size() <= limits.names
    }
}
