//! The model of a Java program, from the events of its agent: a call tree, counts of methods, exceptions, segments,
//! slow calls.
//!
//! [`Model`] handles the messages of one agent, from all of its data connections in any order, and produces a
//! [`Report`](crate::Report). It uses neither sockets nor clocks.
//!
//! - **Order**: events of versions 1 to 4 are put in order by their sequence IDs, in a window of bounded size
//!   (`order`); those of F1 are already in order per thread.
//! - **Nothing is invented**: a frame is opened by an entry only. Where events are missing, or recording was
//!   suspended, open frames are cut: counted, without a duration. An exit without an entry is counted for its
//!   method and creates no frame.
//! - **Memory** is bounded by [`Limits`], whatever the number of events: what exceeds a limit is counted.
//!
//! A data break of versions 1 to 4 may name an ID that is a few events too early: an entry among these events
//! appears as a caller of what follows the break, until the thread's next exit shows otherwise. F1's drops are
//! exact.

mod apply;
pub(crate) mod call_tree;
mod calls;
mod changes;
mod combined;
mod counters;
mod event;
mod exceptions;
mod f1;
mod findings;
mod ids;
mod names;
mod order;
pub(crate) mod report;
mod segments;
mod selection;
mod slow;
mod summary;
mod tree;

use runtap_bytefrog_proto::{Dialect, Exit, Message, Rule, Stamp};

use apply::TraceState;
use calls::{Bounds, Calls};
use event::{Event, EventKind};
use findings::Findings;
use names::{AddOutcome, Names};
use order::Window;

pub use changes::{Change, StackChange};
pub use combined::CombinedReport;
pub use counters::Counters;
pub use exceptions::Fate;
pub use findings::Finding;
pub use segments::Segment;
pub use selection::{Selection, in_order};

/// The limits on what is kept of a trace. What exceeds them is counted in the report.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// The number of events that may wait for earlier ones, a power of two; 20 bytes each. A data connection that
    /// is further behind the others loses its events: they are counted as missing, and then as repeated.
    pub window: usize,
    /// The number of nodes in all call trees together; 60 bytes each.
    pub nodes: usize,
    /// The number of methods; 64 bytes each.
    pub methods: u32,
    /// The number of threads; 140 bytes each. Versions 1 to 4 have at most 65,536.
    pub threads: u32,
    /// The number of calls on one stack.
    pub depth: usize,
    /// The number of calls on all stacks together; 24 bytes each.
    pub frames: usize,
    /// The number of sites where exceptions originate or end.
    pub places: usize,
    /// The number of source locations, and of those that have run; 70 bytes each.
    pub lines: usize,
    /// The number of segments.
    pub segments: usize,
    /// The number of calls in the log of slow calls.
    pub slow_calls: usize,
    /// The total size of all names, in bytes.
    pub names: usize,
}

impl Limits {
    /// Returns an eighth of each limit, except for the calls on one stack and the log of slow calls: for traces
    /// that may be numerous.
    #[must_use]
    pub fn small(&self) -> Self {
        const DIVISOR: usize = 8;
        const DIVISOR_32: u32 = 8;
        Self {
            window: (self.window / DIVISOR).max(1),
            nodes: self.nodes / DIVISOR,
            methods: self.methods / DIVISOR_32,
            threads: self.threads / DIVISOR_32,
            depth: self.depth,
            frames: self.frames / DIVISOR,
            places: self.places / DIVISOR,
            lines: self.lines / DIVISOR,
            segments: self.segments / DIVISOR,
            slow_calls: self.slow_calls,
            names: self.names / DIVISOR,
        }
    }
}

impl Default for Limits {
    /// Returns limits for 10,000 methods in each of 100 threads, within 100 MB, or for 262,144 threads, which F1
    /// can have.
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
    state: TraceState,
}

impl Model {
    /// Creates an empty trace. Calls of at least `slow` nanoseconds are logged as slow.
    pub fn new(dialect: Dialect, limits: &Limits, slow: u64) -> Self {
        // F1 does not use the window.
        let window = if dialect == Dialect::F1 { 0 } else { limits.window };
        Self { dialect, window: Window::new(window), state: TraceState::new(dialect, limits, slow) }
    }

    /// Restricts the counting to a part of the trace. To be called before the first event: earlier counts remain.
    #[must_use]
    pub fn selecting(mut self, selection: Selection) -> Self {
        self.state.select(selection, self.dialect.nanoseconds());
        self
    }

    /// Enables or disables the counting of calls that begin from now on; to be called before the first event, too.
    /// The agent's own counts (F1) cover the whole trace and are therefore ignored. Has no effect on a trace that
    /// is selected by sequence IDs.
    pub fn set_counting(&mut self, counting: bool) {
        self.state.is_part = true;
        self.state.calls.counting = counting;
    }

    /// Enables the log of stack changes, which [`take_changes`](Self::take_changes) empties.
    pub fn log_changes(&mut self) {
        self.state.calls.log.get_or_insert_default();
    }

    /// Returns the changes since the last call, in the order in which they happened. Call this after each chunk,
    /// because the log grows with each event.
    pub fn take_changes(&mut self) -> Vec<Change> {
        let mut changes = self.state.calls.log.as_mut().map(std::mem::take).unwrap_or_default();
        let unit = i64::try_from(self.dialect.nanoseconds()).unwrap_or(1);
        for change in &mut changes {
            change.time = change.time.saturating_mul(unit);
        }
        changes
    }

    /// Returns the signature of a method by its index, as in [`StackChange::Opened`], as far as it is known now.
    pub fn method(&self, index: u32) -> String {
        let method = self.state.calls.methods.get(index as usize);
        method.map_or_else(|| format!("(method {index})"), |method| self.signature(method.id))
    }

    /// Returns the dialect of the agent.
    pub fn dialect(&self) -> Dialect {
        self.dialect
    }

    /// Returns the totals so far.
    pub fn counters(&self) -> Counters {
        self.state.counters
    }

    /// Returns the number of events that wait for earlier ones.
    pub fn waiting(&self) -> usize {
        self.window.waiting()
    }

    /// Returns the 64-bit sequence ID of the next event in order.
    pub(crate) fn awaited(&self) -> u64 {
        self.window.next()
    }

    /// Returns the 64-bit ID of a message's event if the event is so far ahead of the awaited one that accepting it
    /// means giving up IDs. Always `None` for F1, whose events are in order.
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

    /// Returns whether this still applies to an event.
    pub(crate) fn is_beyond(&self, id: u64) -> bool {
        self.window.is_beyond(id)
    }

    /// Returns the ID of the first waiting event. The events between the awaited one and it have not arrived either.
    pub(crate) fn first_held(&self) -> Option<u64> {
        self.window.first_held()
    }

    /// Gives up the events before this ID that have not arrived.
    pub(crate) fn give_up_before(&mut self, id: u64) {
        let state = &mut self.state;
        self.window.give_up_before(id, |ordered| state.apply(ordered));
    }

    /// Handles a message of a data connection, or a data break. Other messages are ignored.
    #[inline]
    pub fn take(&mut self, message: &Message<'_>) {
        match *message {
            Message::Entry { at, method } => {
                let event = Event::new(EventKind::Entry, &at, method, 0);
                self.offer(&at, event);
            }
            Message::Exit { at, method, exit } => {
                let (event, flagged) = match exit {
                    Exit::Line(line) => (Event::new(EventKind::Exit, &at, method, 0).with_line(line), 0),
                    Exit::Thrown(0) => (Event::new(EventKind::Exit, &at, method, 0), 0),
                    Exit::Thrown(_) => (Event::new(EventKind::Bubble, &at, method, apply::UNNAMED), 1),
                };
                let used = self.offer(&at, event);
                self.state.counters.flagged += u64::from(used) & flagged;
            }
            Message::Batch(batch) => self.state.batch(&batch),
            _ => self.take_rare(message),
        }
    }

    #[inline]
    fn offer(&mut self, at: &Stamp, event: Event) -> bool {
        let state = &mut self.state;
        let used = self.window.offer(at, event, |ordered| state.apply(ordered)).is_ok();
        if !used {
            state.counters.repeated += 1;
            state.findings.add(Rule::SequenceRepeated, || format!("sequence {}", at.sequence));
        }
        used
    }

    /// Offers an event that F1 has too, where only the order within its thread matters.
    fn offer_single(&mut self, at: &Stamp, event: Event) -> bool {
        if self.dialect == Dialect::F1 { self.state.single(at, event) } else { self.offer(at, event) }
    }

    #[cold]
    fn take_rare(&mut self, message: &Message<'_>) {
        match *message {
            Message::Exception { at, method, exception, line } => {
                let event = Event::new(EventKind::Exception, &at, method, exception).with_line(line);
                self.offer_single(&at, event);
            }
            Message::Bubble { at, method, exception } => {
                let event = Event::new(EventKind::Bubble, &at, method, exception);
                self.offer_single(&at, event);
            }
            Message::Visit { at, method, location } => {
                self.offer(&at, Event::new(EventKind::Visit, &at, method, location));
            }
            Message::Marker { time, sequence, thread, key, value } => {
                let at = Stamp { time, sequence, thread: thread.unwrap_or(0) };
                // The texts are stored beside the window; the event's method is their index.
                let slot = self.state.keep_marker(key, value);
                let event = Event::new(EventKind::Marker, &at, slot, 0);
                if !self.offer_single(&at, event) {
                    self.state.forget_marker(slot);
                }
            }
            Message::MapThreadName { thread, name, .. } => {
                self.state.name(names::NameKind::Thread, thread, name);
            }
            Message::MapMethod { method, signature } => {
                self.state.name(names::NameKind::Method, method, signature);
            }
            Message::MapException { exception, name } => {
                self.state.name(names::NameKind::Exception, exception, name);
            }
            Message::MapLocation(location) => self.state.locate(&location),
            Message::DataBreak { sequence } => self.data_break(sequence),
            Message::ThreadEnd { thread, time } => self.state.thread_end(thread, time),
            Message::Drop(drop) => self.state.dropped(&drop),
            Message::Counts(rows) if !self.state.is_part => self.state.count(&rows),
            Message::Coverage(rows) if !self.state.is_part => {
                for hit in rows.hits() {
                    self.state.cover(hit.method, hit.location);
                }
            }
            _ => {}
        }
    }

    /// Handles a data break: recording was suspended before the event with this ID.
    fn data_break(&mut self, sequence: u32) {
        self.state.counters.data_breaks += 1;
        match self.window.extend(sequence) {
            Some(at) if at >= self.window.next() => self.state.break_at(at),
            at => {
                let behind = at.map_or(0, |at| self.window.next() - at);
                self.state.findings.add(Rule::LateBreak, || format!("{behind} events too late"));
                self.state.calls.break_all();
            }
        }
    }

    /// Ends the trace: waiting events are used, and the events they wait for are missing.
    pub fn finish(&mut self) {
        let state = &mut self.state;
        self.window.flush(|ordered| state.apply(ordered));
        state.calls.tree.seal();
        self.state.calls.shrink();
    }

    /// Returns whether the trace would fit into these limits.
    pub(crate) fn fits(&self, limits: &Limits) -> bool {
        let TraceState { calls, exceptions, segments, names, locations, visited, .. } = &self.state;
        calls.tree.nodes().len() <= limits.nodes
            && calls.methods.len() <= limits.methods as usize
            && calls.threads.len() <= limits.threads as usize
            && calls.depth() <= limits.frames
            && exceptions.len() <= limits.places
            && locations.len().max(visited.len()) <= limits.lines
            && segments.len() <= limits.segments
            && names.size() <= limits.names
    }
}
