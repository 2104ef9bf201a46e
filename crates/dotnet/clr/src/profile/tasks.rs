//! Asynchronous operations: who waits for whom, told by the task library's events, and how long each takes.
//!
//! An operation lives from the moment when it first gives up its thread to its end. While it awaits another operation that
//! is known, the time is that one's; else it is its own, running or waiting. So the time of an operation that nobody
//! awaits is split over the chain below it, and no moment counts twice. The stack of an operation is the code
//! that started the outermost of its chain, up to another operation, then the methods of the chain: an operation may be
//! started by one that does not await it, and lie on the stack of one whose end let others go on.

use std::rc::Rc;

use foldhash::fast::RandomState;
use hashbrown::{HashMap, HashSet};
use runtap_model::{FrameHandle, StackHandle};
use runtap_nettrace::TraceHeader;

use super::collect::{Collector, Raw, Text, What};
use super::namer::Namer;

/// Longest chain that is shown; a longer one is cut at its outer end.
const MAX_CHAIN: usize = 256;

/// Adds the time of all operations. `raw` is in the order of time.
pub(super) fn add(raw: &[Raw], collector: &Collector, header: &TraceHeader, end: u64, namer: &mut Namer<'_>) {
    let mut operations = Operations::default();
    for raw in raw {
        operations.take(raw);
    }
    let Operations { mut list, .. } = operations;
    for operation in &mut list {
        operation.close(end);
    }

    let mut spans: Vec<(u64, u64, usize)> = Vec::new();
    for (index, operation) in list.iter().enumerate() {
        spans.extend(operation.own.iter().map(|(from, to)| (*from, *to, index)));
    }
    spans.sort_unstable();
    let mut shapes = Shapes {
        collector,
        known: HashMap::default(),
        depends: HashMap::default(),
        operations: HashSet::default(),
        callers: HashMap::default(),
    };
    for operation in &list {
        let itself = shapes.of(operation, namer).itself;
        shapes.operations.insert(itself);
    }
    for (from, to, index) in spans {
        let chain = chain(&list, index);
        let outermost = chain.last().copied().unwrap_or(index);
        let Some(begun) = list.get(outermost) else { continue };
        let Some(thread) = namer.builder.thread_for_sample(begun.begin.thread) else { continue };
        let mut stack = shapes.callers(begun, namer);
        for operation in chain.iter().rev().filter_map(|index| list.get(*index)) {
            let itself = shapes.of(operation, namer).itself;
            stack = Some(namer.builder.stack(stack, itself));
        }
        namer.builder.took(chain.len(), 0);
        let ns = u64::try_from(header.ticks_to_ns(i128::from(to) - i128::from(from))).unwrap_or(0);
        namer.builder.add_event(thread, super::since_start(header, from), ns, stack);
    }
}

/// From an operation outwards: who awaits it, who awaits that one.
fn chain(list: &[Operation], index: usize) -> Vec<usize> {
    let mut chain = vec![index];
    while let Some(outer) = chain.last().and_then(|index| list.get(*index)?.awaited_by)
        && chain.len() < MAX_CHAIN
    {
        chain.push(outer);
    }
    chain
}

struct Operation {
    name: Option<Text>,
    /// The event that told of it first.
    begin: Raw,
    /// From when on the time is its own.
    since: Option<u64>,
    /// The times that were its own.
    own: Vec<(u64, u64)>,
    awaited_by: Option<usize>,
    /// What it awaits, if that is known.
    awaits: Option<usize>,
    ended: bool,
}

impl Operation {
    fn close(&mut self, at: u64) {
        if let Some(since) = self.since.take()
            && since < at
        {
            self.own.push((since, at));
        }
    }

    fn open(&mut self, at: u64) {
        if !self.ended {
            self.since.get_or_insert(at);
        }
    }
}

#[derive(Default)]
struct Operations {
    list: Vec<Operation>,
    /// The live ones by the number of their task.
    live: HashMap<u32, usize, RandomState>,
}

impl Operations {
    fn take(&mut self, raw: &Raw) {
        let now = raw.timestamp;
        match raw.what {
            What::TaskBegins { task, name } => {
                self.end(task, now);
                self.begin(task, Some(name), raw);
            }
            What::TaskEnds { task } => self.end(task, now),
            What::TaskRuns { task } => {
                let Some(operation) = self.live.get(&task).and_then(|index| self.list.get_mut(*index)) else {
                    return;
                };
                operation.open(now);
                // What it awaited is over, though it may be told later: when all who awaited it have gone on.
                if let Some(awaited) = operation.awaits.take().and_then(|index| self.list.get_mut(index)) {
                    awaited.close(now);
                    awaited.ended = true;
                }
            }
            What::TaskAwaits { task, awaited } => {
                // It may have begun before the session.
                let outer = match self.live.get(&task) {
                    Some(outer) => *outer,
                    None => self.begin(task, None, raw),
                };
                let Some(inner) = self.live.get(&awaited).copied().filter(|inner| *inner != outer) else {
                    return;
                };
                if chain(&self.list, outer).contains(&inner) {
                    return;
                }
                if let Some(inner) = self.list.get_mut(inner) {
                    inner.awaited_by.get_or_insert(outer);
                }
                if let Some(outer) = self.list.get_mut(outer) {
                    outer.awaits = Some(inner);
                    outer.close(now);
                }
            }
            _ => {}
        }
    }

    fn begin(&mut self, task: u32, name: Option<Text>, raw: &Raw) -> usize {
        let index = self.list.len();
        self.list.push(Operation {
            name,
            begin: *raw,
            since: Some(raw.timestamp),
            own: Vec::new(),
            awaited_by: None,
            awaits: None,
            ended: false,
        });
        self.live.insert(task, index);
        index
    }

    fn end(&mut self, task: u32, now: u64) {
        let Some(index) = self.live.remove(&task) else { return };
        let Some(operation) = self.list.get_mut(index) else { return };
        operation.close(now);
        operation.ended = true;
        // Who awaited it goes on, or waits for a thread to go on with.
        if let Some(outer) = operation.awaited_by.and_then(|outer| self.list.get_mut(outer))
            && outer.awaits == Some(index)
        {
            outer.awaits = None;
            outer.open(now);
        }
    }
}

/// How an operation looks on a stack.
#[derive(Debug, Clone)]
struct Shape {
    itself: FrameHandle,
    /// The code that started it, leaf first, as far as it is not known to have been let go on by others.
    callers: Rc<[FrameHandle]>,
}

/// What tells shapes apart.
type Key = (u32, u64, Option<Text>);

/// The shapes of operations. Those that begin at one place at one time, under one name, look the same.
struct Shapes<'a> {
    collector: &'a Collector,
    known: HashMap<Key, Shape, RandomState>,
    /// Whether a stack means something else at another time.
    depends: HashMap<u32, bool, RandomState>,
    /// The frames of all operations.
    operations: HashSet<FrameHandle, RandomState>,
    /// The stacks of callers that were put together.
    callers: HashMap<Key, Option<StackHandle>, RandomState>,
}

/// Returns whether a method resumes an operation or runs its continuations. The frames below such a method did not call the
/// code above it.
fn resumes(method: &str) -> bool {
    method.contains("StateMachineBox")
        || method.contains("MoveNextRunner")
        || method.starts_with("System.Threading.Tasks.Task.RunContinuations")
}

impl Shapes<'_> {
    fn key(&mut self, operation: &Operation, namer: &Namer<'_>) -> Key {
        let Raw { stack, timestamp, .. } = operation.begin;
        let depends = *self.depends.entry(stack).or_insert_with(|| namer.depends_on_time(stack));
        (stack, if depends { timestamp } else { 0 }, operation.name)
    }

    fn of(&mut self, operation: &Operation, namer: &mut Namer<'_>) -> Shape {
        let key = self.key(operation, namer);
        if let Some(known) = self.known.get(&key) {
            return known.clone();
        }
        let shape = self.found(operation, namer);
        self.known.insert(key, shape.clone());
        shape
    }

    /// The code that started an operation, up to another one: that has a time of its own, which this would add to.
    fn callers(&mut self, operation: &Operation, namer: &mut Namer<'_>) -> Option<StackHandle> {
        let key = self.key(operation, namer);
        if let Some(known) = self.callers.get(&key) {
            return *known;
        }
        let callers = self.of(operation, namer).callers;
        let own = callers.iter().position(|frame| self.operations.contains(frame)).unwrap_or(callers.len());
        let stack = namer.builder.stack_of(callers.iter().take(own).rev().copied());
        self.callers.insert(key, stack);
        stack
    }

    fn found(&self, operation: &Operation, namer: &mut Namer<'_>) -> Shape {
        let Raw { stack, timestamp, .. } = operation.begin;
        let name = operation.name.map_or("", |name| self.collector.texts.get(name));
        let method = name.strip_prefix("Async: ");
        if operation.name.is_none() || method.is_some() {
            // The innermost state machine on the stack is the one that gives up its thread.
            let wanted =
                |frame: &str| frame.contains(".MoveNext(") && frame.contains(method.unwrap_or_default());
            let frames = namer.below_frame(stack, timestamp, wanted, resumes).unwrap_or_default();
            if let Some((itself, callers)) = frames.split_first() {
                return Shape { itself: *itself, callers: callers.into() };
            }
        }
        // What the task library does to start it says nothing.
        let of_library = |frame: &str| {
            ["System.Threading.Tasks.", "System.Runtime.CompilerServices."]
                .iter()
                .any(|part| frame.starts_with(part))
        };
        let callers =
            namer.below_frame(stack, timestamp, |frame| !of_library(frame), resumes).unwrap_or_default();
        let name = if name.is_empty() { "an asynchronous operation" } else { name };
        Shape { itself: namer.builder.label(name), callers: callers.into() }
    }
}
