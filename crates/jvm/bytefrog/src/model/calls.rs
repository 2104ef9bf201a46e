//! The stacks of threads, the duration of calls, and calls whose end is missing.
//!
//! [`Calls`] has the threads with their stacks, the call tree, and the counts of methods. A frame is opened only by
//! an entry, and closed by an exit of its method. If the exit is not seen, the frame is *cut*: the call remains
//! counted, but its duration is unknown and counts nowhere.

use super::changes::{Change, StackChange};
use super::ids::Ids;
use super::selection::Ranges;
use super::slow::SlowCallLog;
use hashbrown::HashMap;

use super::tree::{NONE, OUTSIDE, Tree};

/// The depth to which a stack is searched for the method of an exit. An exit of a deeper frame counts as one
/// without an entry: searching whole stacks for each event would let a malicious agent keep HQ busy.
const MAX_SEARCH_DEPTH: usize = 64;

/// The maximum number of nodes for which the duration of cut calls is kept, at 24 bytes each.
const MAX_CUT_NODES: usize = 1 << 16;

/// The counts of a method.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Method {
    /// The agent's ID of the method.
    pub(crate) id: u32,
    /// The number of calls that have begun.
    pub(crate) entries: u64,
    /// The number of calls that returned.
    pub(crate) exits: u64,
    /// The number of calls that ended with an exception.
    pub(crate) bubbles: u64,
    /// The number of exceptions that the method threw.
    pub(crate) throws: u64,
    /// The number of exits without an entry.
    pub(crate) orphans: u64,
    /// The time in the method without callees, in units of the clock.
    pub(crate) own: u64,
    /// Whether coverage reports that the method has run.
    pub(crate) covered: bool,
}

#[derive(Debug, Clone, Copy)]
struct Frame {
    node: u32,
    method: u32,
    entered: i64,
    /// The time in calls made by this frame.
    callees: u64,
}

/// An exception in flight.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct InFlight {
    pub(crate) exception: u32,
}

#[derive(Debug)]
pub(crate) struct Thread {
    /// The agent's ID of the thread.
    pub(crate) id: u32,
    pub(crate) root: u32,
    stack: Vec<Frame>,
    /// The number of calls above the maximum depth of the stack.
    deeper: u64,
    /// The last break that was applied to the stack.
    epoch: u64,
    /// The thread's clock, which does not go backwards.
    pub(crate) time: i64,
    /// F1: the number of the next event.
    pub(crate) next: u64,
    pub(crate) in_flight: Option<InFlight>,
    pub(crate) entries: u64,
    pub(crate) ended: bool,
    /// Whether exits without an entry are expected, after a break.
    excused: bool,
}

/// The limits on stacks, threads and methods.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Bounds {
    pub(crate) methods: u32,
    pub(crate) threads: u32,
    pub(crate) depth: usize,
    pub(crate) frames: usize,
}

/// The frame that an exit belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LeaveOutcome {
    /// The exit had a frame.
    Frame,
    /// The exit had no frame, although no events were missing.
    Orphan,
    /// The exit had no frame, after a break.
    Excused,
}

/// The time in the calls of a node whose end was not seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Elapsed {
    /// The time including callees, in units of the clock.
    pub(crate) total: u64,
    /// The time without callees, in units of the clock.
    pub(crate) own: u64,
}

impl Elapsed {
    pub(crate) fn add(&mut self, other: Self) {
        self.total = self.total.saturating_add(other.total);
        self.own = self.own.saturating_add(other.own);
    }
}

/// Returns the time in each call of a stack until `end`, by node. Calls without a node, or outside of the
/// selection, are skipped.
fn elapsed(stack: &[Frame], end: i64) -> impl Iterator<Item = (u32, Elapsed)> + '_ {
    let span = |from: i64, until: i64| u64::try_from(until.saturating_sub(from)).unwrap_or(0);
    // A call itself runs until it calls the next one.
    let called_next = stack.iter().skip(1).map(|frame| frame.entered).chain([end]);
    stack.iter().zip(called_next).filter(|(frame, _)| frame.node != NONE && frame.node != OUTSIDE).map(
        move |(frame, next)| {
            let own = span(frame.entered, next).saturating_sub(frame.callees);
            (frame.node, Elapsed { total: span(frame.entered, end), own })
        },
    )
}

#[derive(Debug)]
pub(crate) struct Calls {
    /// The time in cut calls until their end was missed, by node.
    pub(crate) cut: HashMap<u32, Elapsed, foldhash::fast::RandomState>,
    pub(crate) tree: Tree,
    pub(crate) threads: Vec<Thread>,
    thread_ids: Ids,
    pub(crate) methods: Vec<Method>,
    method_ids: Ids,
    bounds: Bounds,
    /// The number of breaks that affected all threads.
    epoch: u64,
    frames: usize,
    /// The number of events of threads and methods beyond the limits.
    pub(crate) beyond: u64,
    /// The number of calls beyond the maximum depth of stacks.
    pub(crate) too_deep: u64,
    /// The number of times that the clock of a thread went backwards.
    pub(crate) backwards: u64,
    pub(crate) slow: SlowCallLog,
    /// The times to which counting is restricted, in units of the clock; `None` for no restriction.
    pub(crate) times: Option<Ranges<i64>>,
    /// Whether calls that begin now are counted.
    pub(crate) counting: bool,
    /// The changes since the log was last taken, with times in units of the clock; `None` if not requested.
    pub(crate) log: Option<Vec<Change>>,
}

impl Calls {
    pub(crate) fn new(bounds: Bounds, nodes: usize, slow: SlowCallLog) -> Self {
        Self {
            cut: HashMap::default(),
            times: None,
            counting: true,
            log: None,
            tree: Tree::new(nodes),
            threads: Vec::new(),
            thread_ids: Ids::default(),
            methods: Vec::new(),
            method_ids: Ids::default(),
            bounds,
            epoch: 0,
            frames: 0,
            beyond: 0,
            too_deep: 0,
            backwards: 0,
            slow,
        }
    }

    /// Returns the index of a thread; `None` if there are too many threads.
    #[inline]
    pub(crate) fn thread(&mut self, id: u32) -> Option<usize> {
        match self.thread_ids.get(id) {
            Some(index) => Some(index as usize),
            None => self.new_thread(id),
        }
    }

    #[cold]
    fn new_thread(&mut self, id: u32) -> Option<usize> {
        let Some(index) = self.thread_ids.add(id, self.bounds.threads) else {
            self.beyond += 1;
            return None;
        };
        let root = self.tree.root(index);
        self.threads.push(Thread {
            id,
            root,
            stack: Vec::new(),
            deeper: 0,
            epoch: self.epoch,
            time: i64::MIN,
            next: 0,
            in_flight: None,
            entries: 0,
            ended: false,
            excused: false,
        });
        Some(index as usize)
    }

    /// Returns the index of a method; `None` if there are too many methods.
    #[inline]
    pub(crate) fn method(&mut self, id: u32) -> Option<u32> {
        match self.method_ids.get(id) {
            Some(index) => Some(index),
            None => self.new_method(id),
        }
    }

    #[cold]
    fn new_method(&mut self, id: u32) -> Option<u32> {
        let Some(index) = self.method_ids.add(id, self.bounds.methods) else {
            self.beyond += 1;
            return None;
        };
        self.methods.push(Method { id, ..Method::default() });
        Some(index)
    }

    /// Clears the stack if a break has occurred since the thread's last event.
    #[inline]
    pub(crate) fn touch(&mut self, thread: usize) {
        if self.threads.get(thread).is_some_and(|state| state.epoch != self.epoch) {
            self.clear(thread);
        }
    }

    /// Advances the thread's clock, which does not go backwards. Returns whether an exception is in flight.
    #[inline]
    pub(crate) fn at(&mut self, thread: usize, time: i64) -> bool {
        let Some(state) = self.threads.get_mut(thread) else { return false };
        if time >= state.time {
            state.time = time;
        } else {
            self.backwards += 1;
        }
        state.in_flight.is_some()
    }

    /// Breaks the stacks of all threads. This is cheap: each stack is cleared at the next event of its thread.
    pub(crate) fn break_all(&mut self) {
        self.epoch += 1;
    }

    /// Breaks the stack of a thread: cuts its open calls.
    #[cold]
    pub(crate) fn clear(&mut self, thread: usize) {
        let Some(state) = self.threads.get_mut(thread) else { return };
        self.frames -= state.stack.len();
        for (node, time) in elapsed(&state.stack, state.time) {
            if self.cut.len() < MAX_CUT_NODES || self.cut.contains_key(&node) {
                self.cut.entry(node).or_default().add(time);
            }
        }
        let mut inside = 0;
        for frame in state.stack.drain(..) {
            inside += usize::from(frame.node != OUTSIDE);
            if let Some(node) = self.tree.get_mut(frame.node) {
                node.cut = node.cut.saturating_add(1);
            }
        }
        if let Some(log) = &mut self.log
            && inside > 0
        {
            log.push(Change { thread, time: state.time, kind: StackChange::Cut(inside) });
        }
        state.stack.shrink_to(64);
        state.deeper = 0;
        state.in_flight = None;
        state.epoch = self.epoch;
        state.excused = true;
    }

    #[inline]
    pub(crate) fn enter(&mut self, thread: usize, method: u32) {
        let Some(state) = self.threads.get_mut(thread) else { return };
        if !(self.counting && self.times.as_ref().is_none_or(|times| times.has(state.time))) {
            return self.enter_outside(thread, method);
        }
        state.entries += 1;
        if let Some(method) = self.methods.get_mut(method as usize) {
            method.entries += 1;
        }
        if state.stack.len() >= self.bounds.depth || self.frames >= self.bounds.frames {
            state.deeper += 1;
            self.too_deep += 1;
            return;
        }
        let parent = match state.stack.last() {
            Some(frame) if frame.node != OUTSIDE => frame.node,
            _ => state.root,
        };
        let node = self.tree.call(parent, method);
        state.stack.push(Frame { node, method, entered: state.time, callees: 0 });
        self.frames += 1;
        if let Some(log) = &mut self.log {
            log.push(Change { thread, time: state.time, kind: StackChange::Opened(method) });
        }
    }

    /// Opens a frame for a call outside of the selection, which is not counted.
    #[cold]
    fn enter_outside(&mut self, thread: usize, method: u32) {
        let Some(state) = self.threads.get_mut(thread) else { return };
        if state.stack.len() >= self.bounds.depth || self.frames >= self.bounds.frames {
            state.deeper += 1;
            return;
        }
        state.stack.push(Frame { node: OUTSIDE, method, entered: state.time, callees: 0 });
        self.frames += 1;
    }

    /// Returns whether events other than calls are counted in a thread now.
    pub(crate) fn counts(&self, thread: usize) -> bool {
        let has = |times: &Ranges<i64>| self.threads.get(thread).is_some_and(|state| times.has(state.time));
        self.counting && self.times.as_ref().is_none_or(has)
    }

    #[inline]
    fn count_end(&mut self, method: u32, thrown: bool) {
        if let Some(method) = self.methods.get_mut(method as usize) {
            if thrown {
                method.bubbles += 1;
            } else {
                method.exits += 1;
            }
        }
    }

    #[inline]
    pub(crate) fn leave(&mut self, thread: usize, method: u32, thrown: bool) -> LeaveOutcome {
        let Some(state) = self.threads.get_mut(thread) else { return LeaveOutcome::Excused };
        if state.deeper > 0 {
            state.deeper -= 1;
            if self.counts(thread) {
                self.count_end(method, thrown);
            }
            return LeaveOutcome::Frame;
        }
        if state.stack.last().is_none_or(|top| top.method != method)
            && let Some(left) = self.search(thread, method)
        {
            if self.counts(thread) {
                self.count_end(method, thrown);
            }
            return left;
        }
        let Some(state) = self.threads.get_mut(thread) else { return LeaveOutcome::Excused };
        let Some(frame) = state.stack.pop() else { return LeaveOutcome::Excused };
        self.frames -= 1;
        if frame.node == OUTSIDE {
            return LeaveOutcome::Frame;
        }
        let took = u64::try_from(state.time.saturating_sub(frame.entered)).unwrap_or(0);
        let own = took.saturating_sub(frame.callees);
        if let Some(caller) = state.stack.last_mut() {
            caller.callees = caller.callees.saturating_add(took);
        }
        if let Some(node) = self.tree.get_mut(frame.node) {
            node.inclusive = node.inclusive.saturating_add(took);
            node.own = node.own.saturating_add(own);
            node.thrown = node.thrown.saturating_add(thrown.into());
        }
        if let Some(log) = &mut self.log {
            log.push(Change { thread, time: state.time, kind: StackChange::Closed });
        }
        if let Some(method) = self.methods.get_mut(method as usize) {
            method.own = method.own.saturating_add(own);
        }
        self.count_end(method, thrown);
        if took >= self.slow.threshold() {
            self.slow.add(took, frame.entered, thread, method, frame.node);
        }
        LeaveOutcome::Frame
    }

    /// Handles an exit that does not belong to the top frame: cuts the frames above the frame of the method.
    /// Returns the outcome if there is no such frame.
    #[cold]
    fn search(&mut self, thread: usize, method: u32) -> Option<LeaveOutcome> {
        let state = self.threads.get_mut(thread)?;
        let below = state.stack.iter().rev().take(MAX_SEARCH_DEPTH).position(|frame| frame.method == method);
        let Some(above) = below else {
            if let Some(method) = self.methods.get_mut(method as usize) {
                method.orphans += 1;
            }
            return Some(if state.excused && state.stack.is_empty() {
                LeaveOutcome::Excused
            } else {
                LeaveOutcome::Orphan
            });
        };
        let keep = state.stack.len() - above;
        let mut inside = 0;
        for frame in state.stack.drain(keep..) {
            inside += usize::from(frame.node != OUTSIDE);
            if let Some(node) = self.tree.get_mut(frame.node) {
                node.cut = node.cut.saturating_add(1);
            }
            self.frames -= 1;
        }
        if let Some(log) = &mut self.log
            && inside > 0
        {
            log.push(Change { thread, time: state.time, kind: StackChange::Cut(inside) });
        }
        None
    }

    /// Returns the method at the top of a stack.
    pub(crate) fn top(&self, thread: usize) -> Option<u32> {
        self.threads.get(thread)?.stack.last().map(|frame| frame.method)
    }

    /// Returns the number of calls on all stacks.
    pub(crate) fn depth(&self) -> usize {
        self.threads.iter().map(|thread| thread.stack.len()).sum()
    }

    /// Frees the memory of calls that have ended.
    pub(crate) fn shrink(&mut self) {
        self.threads.iter_mut().for_each(|thread| thread.stack.shrink_to_fit());
    }

    /// Returns the open calls by node, with their time until the last event of all threads. Stacks that a break has
    /// invalidated are skipped.
    pub(crate) fn open(&self) -> impl Iterator<Item = (u32, Elapsed)> + '_ {
        let end = self.threads.iter().map(|thread| thread.time).max().unwrap_or(0);
        let current = |thread: &&Thread| thread.epoch == self.epoch;
        self.threads.iter().filter(current).flat_map(move |thread| elapsed(&thread.stack, end))
    }
}
