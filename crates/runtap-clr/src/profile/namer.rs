//! Turns addresses into frames of the model, each distinct one once.

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
    /// What became of each stack of `stacks`.
    named: Vec<Option<Named>>,
    /// Addresses whose meaning does not depend on the time, as leaves and as callers.
    always: HashMap<(u64, bool), FrameHandle, RandomState>,
    methods: HashMap<MethodId, FrameHandle, RandomState>,
    unknown: HashMap<u64, FrameHandle, RandomState>,
}

#[derive(Debug, Clone, Copy)]
enum Named {
    /// Every address on it has one meaning.
    Always(Option<StackHandle>),
    /// Its memory was used for several methods: to be named for each sample.
    Depends,
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
        }
    }

    /// A stack of the stream, by its index, as it was at a time.
    pub(super) fn stack(&mut self, index: u32, timestamp: u64) -> Option<StackHandle> {
        let index = usize::try_from(index).unwrap_or(usize::MAX);
        match self.named.get(index).copied().flatten() {
            Some(Named::Always(stack)) => stack,
            Some(Named::Depends) => self.whole(index, timestamp).0,
            None => {
                let (stack, always) = self.whole(index, timestamp);
                if let Some(slot) = self.named.get_mut(index) {
                    *slot = Some(if always { Named::Always(stack) } else { Named::Depends });
                }
                stack
            }
        }
    }

    /// The named stack, and whether it is the same at any time.
    fn whole(&mut self, index: usize, timestamp: u64) -> (Option<StackHandle>, bool) {
        let ips = self.stacks.get(index);
        let mark = self.truncated(ips);
        let (mut always, mut stack) = (true, mark.map(|mark| self.builder.stack(None, mark)));
        for (depth, ip) in ips.iter().enumerate().rev() {
            let (frame, same) = self.frame(*ip, depth == 0, timestamp);
            always &= same;
            stack = Some(self.builder.stack(stack, frame));
        }
        (stack, always)
    }

    /// The frame of an address, and whether it is the same at any time.
    fn frame(&mut self, ip: u64, is_leaf: bool, timestamp: u64) -> (FrameHandle, bool) {
        let key = (ip, is_leaf);
        if let Some(frame) = self.always.get(&key) {
            return (*frame, true);
        }
        let (method, same) = self.names.method(ip, is_leaf, timestamp);
        let frame = match method {
            Some(method) => self.method(method),
            None => self.unknown(ip),
        };
        if same {
            self.always.insert(key, frame);
        }
        (frame, same)
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

    /// An address without a method bears its own number, not that of the call before it.
    fn unknown(&mut self, ip: u64) -> FrameHandle {
        let builder = &mut self.builder;
        *self.unknown.entry(ip).or_insert_with(|| builder.add_frame(&frame::clr(None, &format!("{ip:#x}"))))
    }

    /// The frames of a stack of the stream, leaf first, up to one that `is_wanted`: from there to the root. `None` where
    /// no frame is.
    pub(super) fn below_frame(
        &mut self,
        index: u32,
        timestamp: u64,
        is_wanted: impl Fn(&str) -> bool,
    ) -> Option<Vec<FrameHandle>> {
        let ips = self.stacks.get(usize::try_from(index).unwrap_or(usize::MAX));
        let names = self.names;
        let start = ips.iter().enumerate().position(|(depth, ip)| {
            names.method(*ip, depth == 0, timestamp).0.is_some_and(|method| is_wanted(names.texts(method).1))
        })?;
        let rest = ips.iter().enumerate().skip(start);
        let mut frames: Vec<_> = rest.map(|(depth, ip)| self.frame(*ip, depth == 0, timestamp).0).collect();
        frames.extend(self.truncated(ips));
        Some(frames)
    }

    /// The root frame of a stack that has as many frames as a runtime records: the callers of the last one are unknown.
    fn truncated(&mut self, ips: &[u64]) -> Option<FrameHandle> {
        (ips.len() == MAX_STACK_DEPTH).then(|| {
            let label = format!("[truncated at {MAX_STACK_DEPTH} frames]");
            self.builder.add_frame(&Frame::label(&label))
        })
    }
}
