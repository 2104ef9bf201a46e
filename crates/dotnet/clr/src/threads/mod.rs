//! The threads of a program at one moment, from a short recording of samples.
//!
//! The sampler stops the program about once a millisecond and records the stacks of all managed threads, so the first sample of each
//! thread belongs to one moment. Locks and their owners are not in the samples: what a thread waits for follows from its frames.

mod waits;

use foldhash::fast::RandomState;
use hashbrown::HashMap;
use runtap_model::thread_dump::{DumpedFrame, DumpedThread, ThreadDump, ThreadKind, ThreadState};
use runtap_nettrace::{Event, Observe, StreamItem};

use crate::clr::{self, IlMap, IlMapEvent, MethodEvent};
use crate::code_map::MethodId;
use crate::names::Names;
use crate::stacks::Stacks;

/// The type of a sample in native code, whether the thread runs or waits there.
const EXTERNAL: u32 = 1;
/// The type of a sample in managed code.
const MANAGED: u32 = 2;
/// The maximum number of threads.
const MAX_THREADS: usize = 100_000;
/// The maximum number of frames of all threads.
const MAX_FRAMES: usize = 2_000_000;

/// The samples of a thread.
#[derive(Debug, Clone, Copy)]
struct ThreadSamples {
    /// The type, the stack and the time of the first sample.
    kind: Option<u32>,
    stack: u32,
    timestamp: u64,
    count: u32,
    /// Whether all samples have the same type and stack.
    is_unchanged: bool,
}

/// Builds a [`ThreadDump`] from a recording of samples with method names.
#[derive(Debug, Clone, Default)]
pub struct ThreadDumpBuilder {
    names: Names,
    stacks: Stacks,
    threads: HashMap<u64, ThreadSamples, RandomState>,
    /// The thread ids in the order of their first samples.
    order: Vec<u64>,
    omitted: u64,
    /// The map that belongs to the next event about code, and the method and version to which it belongs.
    next_map: Option<IlMapEvent>,
    /// The maps, by the start of their code.
    maps: HashMap<u64, IlMap, RandomState>,
}

impl Observe for ThreadDumpBuilder {
    fn item(&mut self, item: &StreamItem<'_>) {
        self.names.item(item);
        let StreamItem::Event(event) = item else { return };
        let Some(metadata) = event.metadata else { return };
        match (&*metadata.provider, metadata.event_id) {
            (clr::SAMPLE_PROFILER, 0) => self.sample(event),
            (provider @ (clr::RUNDOWN | clr::RUNTIME), id) => self.map(provider, id, event.payload),
            _ => {}
        }
    }
}

impl ThreadDumpBuilder {
    /// Creates a builder.
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns the number of threads with samples.
    pub fn len(&self) -> usize {
        self.order.len()
    }

    /// Whether there are no samples.
    pub fn is_empty(&self) -> bool {
        self.order.is_empty()
    }

    /// Returns the number of samples of the thread that has most.
    pub fn samples_per_thread(&self) -> u32 {
        self.threads.values().map(|samples| samples.count).max().unwrap_or(0)
    }

    /// Returns the number of method events whose payload could not be read.
    pub fn malformed(&self) -> u64 {
        self.names.malformed()
    }

    /// Whether no names of methods were received.
    pub fn is_nameless(&self) -> bool {
        self.names.code().is_empty()
    }

    fn sample(&mut self, event: &Event<'_>) {
        let kind = event.payload.first_chunk().map(|bytes| u32::from_le_bytes(*bytes));
        let stack = self.stacks.index(event.stack);
        if let Some(known) = self.threads.get_mut(&event.thread_id) {
            known.count = known.count.saturating_add(1);
            known.is_unchanged &= known.stack == stack && known.kind == kind;
            return;
        }
        if self.order.len() >= MAX_THREADS {
            self.omitted += 1;
            return;
        }
        let timestamp = event.timestamp;
        let first = ThreadSamples { kind, stack, timestamp, count: 1, is_unchanged: true };
        self.threads.insert(event.thread_id, first);
        self.order.push(event.thread_id);
    }

    /// Keeps a map until the event about its code, which follows immediately.
    fn map(&mut self, provider: &str, id: u32, payload: &[u8]) {
        // Damaged events are counted by `names`.
        if let Ok(Some(map)) = IlMapEvent::decode(provider, id, payload) {
            self.next_map = Some(map);
        } else if let Some(map) = self.next_map.take()
            && let Ok(Some(method)) = MethodEvent::decode(provider, id, payload)
            && (method.method_id, method.rejit_id) == (map.method_id, map.rejit_id)
        {
            self.maps.insert(method.start, map.map);
        }
    }

    /// Returns the threads, sorted by their ids. `name` returns the name of a thread.
    pub fn finish(mut self, name: impl Fn(u64) -> Option<String>) -> ThreadDump {
        self.names.seal();
        self.order.sort_unstable();
        let mut dump = ThreadDump { omitted: self.omitted, ..ThreadDump::default() };
        let mut frames = 0_usize;
        for tid in &self.order {
            let Some(samples) = self.threads.get(tid) else { continue };
            let ips = self.stacks.get(usize::try_from(samples.stack).unwrap_or(usize::MAX));
            let room = MAX_FRAMES.saturating_sub(frames).min(ips.len());
            frames += room;
            dump.omitted += (ips.len() - room) as u64;
            let ips = ips.iter().take(room).enumerate();
            let stack: Vec<DumpedFrame> =
                ips.map(|(depth, ip)| self.frame(*ip, depth == 0, samples.timestamp)).collect();
            let is_native = samples.kind == Some(EXTERNAL);
            let wait = if is_native { waits::of_stack(&stack, self.is_stuck(samples)) } else { None };
            dump.threads.push(DumpedThread {
                kind: ThreadKind::Managed,
                tid: Some(*tid),
                name: name(*tid),
                state: match samples.kind {
                    Some(EXTERNAL) => Some(ThreadState::Native),
                    Some(MANAGED) => Some(ThreadState::Managed),
                    _ => None,
                },
                frames: stack,
                wait,
                ..DumpedThread::default()
            });
        }
        dump
    }

    /// Whether a thread did not move between samples, on a runtime without frames for waiting for a lock (.NET 9 and earlier).
    fn is_stuck(&self, samples: &ThreadSamples) -> bool {
        samples.count > 1 && samples.is_unchanged && !self.names.has_exact_states()
    }

    fn frame(&self, ip: u64, is_leaf: bool, time: u64) -> DumpedFrame {
        let (method, _) = self.names.method(ip, is_leaf, time);
        let Some((id, method)) = method.and_then(|id: MethodId| Some((id, self.names.code().method(id)?)))
        else {
            return DumpedFrame { name: format!("{ip:#x}"), ..DumpedFrame::default() };
        };
        let (module, name) = self.names.texts(id);
        let offset = ip.saturating_sub(method.start);
        // A return address is after its call.
        let call = offset.saturating_sub(u64::from(!is_leaf));
        let map = self.maps.get(&method.start);
        DumpedFrame {
            name: name.to_owned(),
            module: module.map(str::to_owned),
            il_offset: map.and_then(|map| map.il_offset(u32::try_from(call).ok()?)),
            native_offset: Some(offset),
            ..DumpedFrame::default()
        }
    }
}

#[cfg(test)]
mod tests;
