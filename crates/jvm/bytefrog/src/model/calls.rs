//! Stacks of threads: what a call takes, and what happens when its end does not come.
//!
//! Owns: [`Calls`], the threads with their stacks, the tree and the counts of methods, and the rules by which a frame is
//! opened and closed. A frame is opened by an entry and by nothing else. It is closed by an exit of its method; if that is not
//! seen, it is *cut*: the call stays counted, its time is unknown and counts for nobody.

use super::changes::{Change, StackChange};
use super::ids::Ids;
use super::selection::Ranges;
use super::slow::Slow;
use hashbrown::HashMap;

use super::tree::{NONE, OUTSIDE, Tree};

/// How far down a stack the method of an exit is looked for. Deeper, the exit has no entry: a search of whole stacks at
/// each event would let an agent that lies keep HQ busy.
const SEARCH: usize = 64;

/// Nodes of which it is kept how long calls ran that a break has cut. 24 bytes each.
const MOST_CUT: usize = 1 << 16;

/// Counts of a method.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Method {
    /// The agent's id.
    pub(crate) id: u32,
    /// Calls that have begun.
    pub(crate) entries: u64,
    /// Calls that have ended by themselves.
    pub(crate) exits: u64,
    /// Calls that an exception has ended.
    pub(crate) bubbles: u64,
    /// Exceptions thrown by the program in it.
    pub(crate) throws: u64,
    /// Ends without a beginning.
    pub(crate) orphans: u64,
    /// Time in it without callees, in units of the clock.
    pub(crate) own: u64,
    /// It has run, as coverage says.
    pub(crate) covered: bool,
}

#[derive(Debug, Clone, Copy)]
struct Frame {
    node: u32,
    method: u32,
    entered: i64,
    /// Time in calls made from here.
    callees: u64,
}

/// An exception on its way: where it began.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Flight {
    pub(crate) exception: u32,
}

#[derive(Debug)]
pub(crate) struct Thread {
    /// The agent's id.
    pub(crate) id: u32,
    pub(crate) root: u32,
    stack: Vec<Frame>,
    /// Calls on top of a stack that is as deep as stacks may be.
    deeper: u64,
    /// The break that the stack has seen last.
    epoch: u64,
    /// Its clock: does not go back.
    pub(crate) time: i64,
    /// F1: the number of its next event.
    pub(crate) next: u64,
    pub(crate) flight: Option<Flight>,
    pub(crate) entries: u64,
    pub(crate) ended: bool,
    /// After a break, exits without an entry are what is to be expected.
    excused: bool,
}

/// How much is kept.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Bounds {
    pub(crate) methods: u32,
    pub(crate) threads: u32,
    pub(crate) depth: usize,
    pub(crate) frames: usize,
}

/// What an exit was, for whoever follows exceptions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Left {
    /// It had a frame.
    Frame,
    /// It had none, though nothing was missing.
    Orphan,
    /// It had none, after a break.
    Excused,
}

/// What calls of a node took as far as it was seen: their end was not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct SoFar {
    /// With callees, in units of the clock.
    pub(crate) total: u64,
    /// Without them.
    pub(crate) own: u64,
}

impl SoFar {
    pub(crate) fn add(&mut self, other: Self) {
        self.total = self.total.saturating_add(other.total);
        self.own = self.own.saturating_add(other.own);
    }
}

/// What each call of a stack took until then, by its node. Those that have no node, or are not counted, are left out.
fn so_far(stack: &[Frame], end: i64) -> impl Iterator<Item = (u32, SoFar)> + '_ {
    let span = |from: i64, until: i64| u64::try_from(until.saturating_sub(from)).unwrap_or(0);
    // A call is itself what runs until it calls the next one.
    let left = stack.iter().skip(1).map(|frame| frame.entered).chain([end]);
    stack.iter().zip(left).filter(|(frame, _)| frame.node != NONE && frame.node != OUTSIDE).map(
        move |(frame, left)| {
            let own = span(frame.entered, left).saturating_sub(frame.callees);
            (frame.node, SoFar { total: span(frame.entered, end), own })
        },
    )
}

#[derive(Debug)]
pub(crate) struct Calls {
    /// Of calls that a break has cut, by node: what they took until then.
    pub(crate) cut: HashMap<u32, SoFar, foldhash::fast::RandomState>,
    pub(crate) tree: Tree,
    pub(crate) threads: Vec<Thread>,
    thread_ids: Ids,
    pub(crate) methods: Vec<Method>,
    method_ids: Ids,
    bounds: Bounds,
    /// Counts breaks that all threads have.
    epoch: u64,
    frames: usize,
    /// Events of threads and methods beyond the bounds.
    pub(crate) beyond: u64,
    /// Calls deeper than stacks may be.
    pub(crate) too_deep: u64,
    /// The clock went back within a thread.
    pub(crate) backwards: u64,
    pub(crate) slow: Slow,
    /// What begins outside of these times, in units of the clock, is not counted.
    pub(crate) times: Option<Ranges<i64>>,
    /// Nor is anything that begins while this is off.
    pub(crate) counting: bool,
    /// What has happened since it was taken last, if that is asked for. Times are in units of the clock.
    pub(crate) log: Option<Vec<Change>>,
}

impl Calls {
    pub(crate) fn new(bounds: Bounds, nodes: usize, slow: Slow) -> Self {
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

    /// The index of a thread; `None`: there are too many.
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
            flight: None,
            entries: 0,
            ended: false,
            excused: false,
        });
        Some(index as usize)
    }

    /// The index of a method; `None`: there are too many.
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

    /// Forgets the stack if a break has come since.
    #[inline]
    pub(crate) fn touch(&mut self, thread: usize) {
        if self.threads.get(thread).is_some_and(|state| state.epoch != self.epoch) {
            self.clear(thread);
        }
    }

    /// Sets the thread's clock, which does not go back. Gives whether an exception is on its way.
    #[inline]
    pub(crate) fn at(&mut self, thread: usize, time: i64) -> bool {
        let Some(state) = self.threads.get_mut(thread) else { return false };
        if time >= state.time {
            state.time = time;
        } else {
            self.backwards += 1;
        }
        state.flight.is_some()
    }

    /// A break for all threads. Costs nothing: each forgets its stack when its next event comes.
    pub(crate) fn break_all(&mut self) {
        self.epoch += 1;
    }

    /// A break: what is open is cut.
    #[cold]
    pub(crate) fn clear(&mut self, thread: usize) {
        let Some(state) = self.threads.get_mut(thread) else { return };
        self.frames -= state.stack.len();
        for (node, time) in so_far(&state.stack, state.time) {
            if self.cut.len() < MOST_CUT || self.cut.contains_key(&node) {
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
            log.push(Change { thread, time: state.time, what: StackChange::Cut(inside) });
        }
        state.stack.shrink_to(64);
        state.deeper = 0;
        state.flight = None;
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
            log.push(Change { thread, time: state.time, what: StackChange::Opened(method) });
        }
    }

    /// A call that is not in the part that is counted: it is followed, and no more.
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

    /// Whether what happens now in a thread, and is no call, is counted.
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
    pub(crate) fn leave(&mut self, thread: usize, method: u32, thrown: bool) -> Left {
        let Some(state) = self.threads.get_mut(thread) else { return Left::Excused };
        if state.deeper > 0 {
            state.deeper -= 1;
            if self.counts(thread) {
                self.count_end(method, thrown);
            }
            return Left::Frame;
        }
        if state.stack.last().is_none_or(|top| top.method != method)
            && let Some(left) = self.search(thread, method)
        {
            if self.counts(thread) {
                self.count_end(method, thrown);
            }
            return left;
        }
        let Some(state) = self.threads.get_mut(thread) else { return Left::Excused };
        let Some(frame) = state.stack.pop() else { return Left::Excused };
        self.frames -= 1;
        if frame.node == OUTSIDE {
            return Left::Frame;
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
            log.push(Change { thread, time: state.time, what: StackChange::Closed });
        }
        if let Some(method) = self.methods.get_mut(method as usize) {
            method.own = method.own.saturating_add(own);
        }
        self.count_end(method, thrown);
        if took >= self.slow.threshold() {
            self.slow.add(took, frame.entered, thread, method, frame.node);
        }
        Left::Frame
    }

    /// An exit that is not that of the top: cuts what lies above its frame. What is returned is the end of it.
    #[cold]
    fn search(&mut self, thread: usize, method: u32) -> Option<Left> {
        let state = self.threads.get_mut(thread)?;
        let below = state.stack.iter().rev().take(SEARCH).position(|frame| frame.method == method);
        let Some(above) = below else {
            if let Some(method) = self.methods.get_mut(method as usize) {
                method.orphans += 1;
            }
            return Some(if state.excused && state.stack.is_empty() { Left::Excused } else { Left::Orphan });
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
            log.push(Change { thread, time: state.time, what: StackChange::Cut(inside) });
        }
        None
    }

    /// The method at the top of a stack.
    pub(crate) fn top(&self, thread: usize) -> Option<u32> {
        self.threads.get(thread)?.stack.last().map(|frame| frame.method)
    }

    /// Returns the number of calls on all stacks.
    pub(crate) fn depth(&self) -> usize {
        self.threads.iter().map(|thread| thread.stack.len()).sum()
    }

    /// Gives back the memory of calls that have ended.
    pub(crate) fn shrink(&mut self) {
        self.threads.iter_mut().for_each(|thread| thread.stack.shrink_to_fit());
    }

    /// The calls that are open, by their nodes, with what they took until the last event of all threads. Stacks that a break
    /// has made void are not there.
    pub(crate) fn open(&self) -> impl Iterator<Item = (u32, SoFar)> + '_ {
        let end = self.threads.iter().map(|thread| thread.time).max().unwrap_or(0);
        let current = |thread: &&Thread| thread.epoch == self.epoch;
        self.threads.iter().filter(current).flat_map(move |thread| so_far(&thread.stack, end))
    }
}
