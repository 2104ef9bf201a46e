//! Converts addresses to frames of the model, each distinct one once.

use foldhash::fast::RandomState;
use hashbrown::HashMap;
use runtap_model::{Frame, FrameHandle, StackHandle, TraceBuilder};
use runtap_nettrace::MAX_STACK_DEPTH;

use crate::code_map::MethodId;
use crate::frame;
use crate::names::Names;
use crate::stacks::Stacks;

pub(super) struct Namer<'a> {
    names: &'a Names,
    stacks: &'a Stacks,
    pub(super) builder: TraceBuilder,
    /// The result for each stack of `stacks`.
    named: Vec<Option<NamedStack>>,
    /// The frames of addresses that do not depend on the time, as leaves and as callers.
    always: HashMap<(u64, bool), FrameHandle, RandomState>,
    methods: HashMap<MethodId, FrameHandle, RandomState>,
    unknown: HashMap<u64, FrameHandle, RandomState>,
    /// The steps of lookups that have not been passed to the builder yet.
    steps: usize,
}

#[derive(Debug, Clone)]
enum NamedStack {
    /// No address depends on the time.
    Always(Option<StackHandle>),
    /// Some addresses were used for several methods.
    Depends(Box<TimedStack>),
}

/// Whether the meaning of an address depends on the time.
enum Meaning {
    Always,
    /// It does; with the method at that time, if any.
    AtTime(Option<MethodId>),
}

/// The most recent result for a stack that depends on the time.
#[derive(Debug, Clone)]
struct TimedStack {
    stack: Option<StackHandle>,
    /// The depths of addresses that depend on the time, and their methods.
    methods: Vec<(usize, Option<MethodId>)>,
}

impl<'a> Namer<'a> {
    pub(super) fn new(names: &'a Names, stacks: &'a Stacks, builder: TraceBuilder) -> Self {
        Self {
            names,
            stacks,
            builder,
            named: vec![None; stacks.len()],
            always: HashMap::default(),
            methods: HashMap::default(),
            unknown: HashMap::default(),
            steps: 0,
        }
    }

    /// Returns the stack with this index at a time.
    pub(super) fn stack(&mut self, index: u32, timestamp: u64) -> Option<StackHandle> {
        let index = usize::try_from(index).unwrap_or(usize::MAX);
        match self.named.get(index).and_then(Option::as_ref) {
            Some(NamedStack::Always(stack)) => return *stack,
            Some(NamedStack::Depends(then)) => {
                let (ips, names, mut steps) = (self.stacks.get(index), self.names, 0);
                let holds = then.methods.iter().all(|(depth, method)| {
                    let found = ips.get(*depth).map(|ip| names.look_up(*ip, *depth == 0, timestamp));
                    steps += found.map_or(0, |found| found.steps);
                    found.is_some_and(|found| found.method == *method)
                });
                let stack = then.stack;
                self.builder.took(0, steps);
                if holds {
                    return stack;
                }
            }
            None => {}
        }
        let (stack, methods) = self.whole(index, timestamp);
        if let Some(slot) = self.named.get_mut(index) {
            *slot = Some(if methods.is_empty() {
                NamedStack::Always(stack)
            } else {
                NamedStack::Depends(Box::new(TimedStack { stack, methods }))
            });
        }
        stack
    }

    /// Returns the named stack, and those of its methods that depend on the time.
    fn whole(
        &mut self,
        index: usize,
        timestamp: u64,
    ) -> (Option<StackHandle>, Vec<(usize, Option<MethodId>)>) {
        let ips = self.stacks.get(index);
        let mark = self.truncated(ips);
        let (mut then, mut stack) = (Vec::new(), mark.map(|mark| self.builder.stack(None, mark)));
        for (depth, ip) in ips.iter().enumerate().rev() {
            let (frame, meaning) = self.frame(*ip, depth == 0, timestamp);
            if let Meaning::AtTime(method) = meaning {
                then.push((depth, method));
            }
            stack = Some(self.builder.stack(stack, frame));
        }
        let steps = std::mem::take(&mut self.steps);
        // A stack that does not depend on the time is named once, at a cost bounded by its size in the stream.
        self.builder.took(ips.len(), if then.is_empty() { 0 } else { steps + ips.len() });
        (stack, then)
    }

    /// Returns the frame of an address, and whether it depends on the time.
    fn frame(&mut self, ip: u64, is_leaf: bool, timestamp: u64) -> (FrameHandle, Meaning) {
        let key = (ip, is_leaf);
        if let Some(frame) = self.always.get(&key) {
            return (*frame, Meaning::Always);
        }
        let found = self.names.look_up(ip, is_leaf, timestamp);
        self.steps += found.steps;
        let frame = match found.method {
            Some(method) => self.method(method),
            None => self.unknown(ip),
        };
        if found.is_always {
            self.always.insert(key, frame);
            return (frame, Meaning::Always);
        }
        (frame, Meaning::AtTime(found.method))
    }

    /// Whether the meaning of a stack depends on the time.
    pub(super) fn depends_on_time(&self, index: u32) -> bool {
        let ips = self.stacks.get(usize::try_from(index).unwrap_or(usize::MAX));
        ips.iter().enumerate().any(|(depth, ip)| !self.names.look_up(*ip, depth == 0, 0).is_always)
    }

    fn method(&mut self, id: MethodId) -> FrameHandle {
        if let Some(frame) = self.methods.get(&id) {
            return *frame;
        }
        let (module, name) = self.names.texts(id);
        let frame = self.builder.add_frame(&frame::clr(module, name));
        self.methods.insert(id, frame);
        frame
    }

    /// An unknown address is shown as it is, not as that of the call before it.
    fn unknown(&mut self, ip: u64) -> FrameHandle {
        let builder = &mut self.builder;
        *self.unknown.entry(ip).or_insert_with(|| builder.add_frame(&frame::clr(None, &format!("{ip:#x}"))))
    }

    /// Returns the frames of a stack, leaf first, from the first one that `is_wanted` to the root, or up to the first one that
    /// `is_other`. `None` if no frame is wanted.
    pub(super) fn below_frame(
        &mut self,
        index: u32,
        timestamp: u64,
        is_wanted: impl Fn(&str) -> bool,
        is_other: impl Fn(&str) -> bool,
    ) -> Option<Vec<FrameHandle>> {
        let ips = self.stacks.get(usize::try_from(index).unwrap_or(usize::MAX));
        let (names, mut steps) = (self.names, 0);
        let mut has_name = |depth: usize, is: &dyn Fn(&str) -> bool| {
            let found = ips.get(depth).map(|ip| names.look_up(*ip, depth == 0, timestamp));
            steps += found.as_ref().map_or(0, |found| found.steps);
            found.and_then(|found| found.method).is_some_and(|method| is(names.texts(method).1))
        };
        let start = (0..ips.len()).find(|depth| has_name(*depth, &is_wanted));
        let first = start.unwrap_or(ips.len());
        let end = (first..ips.len()).skip(1).find(|depth| has_name(*depth, &is_other));
        let rest = ips.iter().enumerate().take(end.unwrap_or(ips.len())).skip(first);
        let mut frames: Vec<_> = rest.map(|(depth, ip)| self.frame(*ip, depth == 0, timestamp).0).collect();
        steps += std::mem::take(&mut self.steps) + frames.len();
        self.builder.took(frames.len(), steps);
        start?;
        frames.extend(self.truncated(ips).filter(|_| end.is_none()));
        Some(frames)
    }

    /// Returns a root frame for a stack with the maximum number of frames that a runtime records: the callers of its last frame are
    /// unknown.
    fn truncated(&mut self, ips: &[u64]) -> Option<FrameHandle> {
        (ips.len() == MAX_STACK_DEPTH).then(|| {
            let label = format!("[truncated at {MAX_STACK_DEPTH} frames]");
            self.builder.add_frame(&Frame::label(&label))
        })
    }
}
