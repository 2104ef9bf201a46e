//! Asynchronous operations: which one awaits which, according to the task library's events, and how long each takes.
//!
//! An operation exists from the moment when it first yields its thread to its end. While it awaits another known operation, the time
//! belongs to that one; otherwise the time is its own, running or waiting. So the time of an outermost operation is divided among
//! the chain below it, and no moment counts twice. The stack of an operation is the code that started the outermost operation of its
//! chain, up to another operation, followed by the methods of the chain: an operation may be started by one that does not await it,
//! and be on the stack of one whose end resumes others.

use std::rc::Rc;

use foldhash::fast::RandomState;
use hashbrown::{HashMap, HashSet};
use runtap_model::{FrameHandle, StackHandle};
use runtap_nettrace::TraceHeader;

use super::collect::{Collector, Raw, RawKind, Text};
use super::namer::Namer;

/// The maximum length of a chain. Longer ones are truncated at their outer end.
const MAX_CHAIN: usize = 256;

/// Adds the time of all operations. `raw` must be sorted by time.
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

/// Returns the chain of operations from this one to the outermost one that awaits it.
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
    /// The first event of the operation.
    begin: Raw,
    /// The time since which the time counts as its own.
    since: Option<u64>,
    /// The time spans that count as its own.
    own: Vec<(u64, u64)>,
    awaited_by: Option<usize>,
    /// The operation that it awaits, if known.
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
    /// The pending operations, by the number of their task.
    live: HashMap<u32, usize, RandomState>,
}

impl Operations {
    fn take(&mut self, raw: &Raw) {
        let now = raw.timestamp;
        match raw.kind {
            RawKind::TaskBegins { task, name } => {
                self.end(task, now);
                self.begin(task, Some(name), raw);
            }
            RawKind::TaskEnds { task } => self.end(task, now),
            RawKind::TaskRuns { task } => {
                let Some(operation) = self.live.get(&task).and_then(|index| self.list.get_mut(*index)) else {
                    return;
                };
                operation.open(now);
                // The awaited operation is over, although its end may be reported later, after all its awaiters have resumed.
                if let Some(awaited) = operation.awaits.take().and_then(|index| self.list.get_mut(index)) {
                    awaited.close(now);
                    awaited.ended = true;
                }
            }
            RawKind::TaskAwaits { task, awaited } => {
                // The operation may have begun before the session.
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
        // The awaiting operation resumes, or waits for a thread.
        if let Some(outer) = operation.awaited_by.and_then(|outer| self.list.get_mut(outer))
            && outer.awaits == Some(index)
        {
            outer.awaits = None;
            outer.open(now);
        }
    }
}

/// The frames of an operation.
#[derive(Debug, Clone)]
struct Shape {
    itself: FrameHandle,
    /// The code that started it, leaf first, as far as it is not known to have been resumed by others.
    callers: Rc<[FrameHandle]>,
}

/// The identity of a shape: stack, time if relevant, and name.
type ShapeKey = (u32, u64, Option<Text>);

/// The shapes of operations. Operations with one place, time and name have equal shapes.
struct Shapes<'a> {
    collector: &'a Collector,
    known: HashMap<ShapeKey, Shape, RandomState>,
    /// Whether the meaning of a stack depends on the time.
    depends: HashMap<u32, bool, RandomState>,
    /// The frames of all operations.
    operations: HashSet<FrameHandle, RandomState>,
    /// The stacks of callers.
    callers: HashMap<ShapeKey, Option<StackHandle>, RandomState>,
}

/// Whether a method resumes an operation or runs its continuations. The frames below such a method did not call the code above it.
fn resumes(method: &str) -> bool {
    method.contains("StateMachineBox")
        || method.contains("MoveNextRunner")
        || method.starts_with("System.Threading.Tasks.Task.RunContinuations")
}

impl Shapes<'_> {
    fn key(&mut self, operation: &Operation, namer: &Namer<'_>) -> ShapeKey {
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

    /// Returns the code that started an operation, up to another operation, whose time counts separately.
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
            // The innermost state machine on the stack is the one that yields its thread.
            let wanted =
                |frame: &str| frame.contains(".MoveNext(") && frame.contains(method.unwrap_or_default());
            let frames = namer.below_frame(stack, timestamp, wanted, resumes).unwrap_or_default();
            if let Some((itself, callers)) = frames.split_first() {
                return Shape { itself: *itself, callers: callers.into() };
            }
        }
        // Skip the frames of the task library.
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
