//! How large a file will be, about, and where a trace has to end so that it is not larger than it may be.
//!
//! | format | what a sample costs |
//! |---|---|
//! | speedscope | every frame of a stack that differs from the one before |
//! | speedscope (evented), chrome, perfetto | every frame that opens or closes |
//! | folded | the names of every frame of a stack that the thread did not have before |
//! | pprof | a number for every frame of a stack that the thread did not have before |
//! | firefox | a row: stacks are written once, each frame as a reference to its caller's |
//! | flamegraph | a box of its own at most, and the narrow ones are not drawn |
//!
//! The first four can be made thousands of times larger than the recording: by a deep stack that comes and goes, by long
//! names, or by a call tree, in which a stack is one call more than another one. Samples that are sums have no times to cut
//! between: of their trees, the narrow branches are [left out](least). Refuses to: look at the bytes that are written.

use crate::{Format, Options};
use runtap_model::{Branches, StackHandle, Thread, Trace};

/// A change as text or as a message, without the name of its frame.
const CHANGE: u64 = 48;
/// The same for each track that Chrome's events name.
const CHROME_CHANGE: u64 = 96;
/// An index in a list of frames.
const INDEX: u64 = 7;
/// A line of folded stacks but for its names.
const LINE: u64 = 32;
/// The number of a frame in pprof's messages, before they are compressed.
const NUMBER: u64 = 3;
/// A row of the other formats.
const ROW: u64 = 64;

/// How many pieces of time are told apart.
const SLICES: usize = 4096;

/// The time in nanoseconds at which `trace` has to end so that the file holds at most about `options.max_bytes`; `None` if
/// it may stay whole.
pub(crate) fn end(format: Format, trace: &Trace, options: &Options) -> Option<u64> {
    let sizes = Sizes::new(format, trace, options)?;
    let (first, last) = span(trace, options).filter(|(first, last)| first < last)?;
    let mut width = (last - first) / SLICES as u64 + 1;
    loop {
        match sizes.slices_within(first, width, options) {
            // All of it is in the first slice: look closer.
            Some(0) if width > 1 => width = width.div_ceil(SLICES as u64),
            within => return Some(first + width * within? as u64),
        }
    }
}

/// The times of the first sample and of the last.
fn span(trace: &Trace, options: &Options) -> Option<(u64, u64)> {
    let first = trace.threads().filter_map(|(_, t)| Some(t.samples(options.view).next()?.time_ns)).min()?;
    let last = trace.threads().filter_map(|(_, t)| Some(t.samples(options.view).last()?.time_ns)).max()?;
    Some((first, last))
}

/// The weight that branches need so that the file holds at most about `options.max_bytes`, where all samples have one time;
/// `None` if all may stay, or if the trace can be cut at a [time](end).
pub(crate) fn least(format: Format, trace: &Trace, options: &Options) -> Option<u64> {
    let sizes = Sizes::new(format, trace, options)?;
    span(trace, options).filter(|(first, last)| first == last)?;
    let mut branches = Branches::new(trace.stacks());
    let mut weights: Vec<(u64, u64)> = Vec::new();
    for (_, thread) in trace.threads() {
        let found = branches.of(trace.stacks(), thread, options.view).branches;
        let bytes = |stack: StackHandle| sizes.stacks[stack.index()].saturating_add(LINE);
        weights.extend(found.into_iter().map(|(stack, weight)| (weight, bytes(stack))));
    }
    weights.sort_unstable();
    let mut sum = 0_u64;
    let too_much = weights.iter().rev().find(|(_, bytes)| {
        sum = sum.saturating_add(*bytes);
        sum > options.max_bytes
    });
    too_much.map(|(weight, _)| weight.saturating_add(1))
}

/// What a frame and a stack cost.
struct Sizes<'a> {
    format: Format,
    trace: &'a Trace,
    /// What every stack costs from its root on, by its index.
    stacks: Vec<u64>,
}

impl<'a> Sizes<'a> {
    /// How many slices of time from `first` on are not too much together; `None` if all of them are not.
    fn slices_within(&self, first: u64, width: u64, options: &Options) -> Option<usize> {
        let mut slices = vec![0_u64; SLICES];
        let mut seen = vec![false; self.stacks.len()];
        for (_, thread) in self.trace.threads() {
            self.of_samples(thread, options, &mut seen, |time_ns, bytes| {
                let slice = usize::try_from(time_ns.saturating_sub(first) / width).unwrap_or(usize::MAX);
                if let Some(slice) = slices.get_mut(slice) {
                    *slice = slice.saturating_add(bytes);
                }
            });
        }
        let mut sum = 0_u64;
        slices.iter().position(|bytes| {
            sum = sum.saturating_add(*bytes);
            sum > options.max_bytes
        })
    }

    /// `None` if a file of this format stays small enough whatever its samples are.
    fn new(format: Format, trace: &'a Trace, options: &Options) -> Option<Self> {
        let names = trace.name_lengths();
        let of_frame: Box<dyn Fn(usize) -> u64> = match format {
            Format::Speedscope if !(options.evented || options.dotnet_trace) => Box::new(|_| INDEX),
            Format::Speedscope | Format::Perfetto => Box::new(|_| CHANGE),
            Format::Chrome => Box::new(|frame| CHROME_CHANGE + names[frame] as u64),
            Format::Folded => Box::new(|frame| 1 + names[frame] as u64),
            Format::Pprof => Box::new(|_| NUMBER),
            Format::Flamegraph | Format::Firefox => return None,
        };
        let mut stacks: Vec<u64> = Vec::with_capacity(trace.stacks().len());
        for (_, stack) in trace.stacks().iter() {
            let below = stack.parent.map_or(0, |parent| stacks[parent.index()]);
            stacks.push(below.saturating_add(of_frame(stack.frame.index())));
        }
        let samples =
            trace.threads().map(|(_, thread)| thread.samples(options.view).count() as u64).sum::<u64>();
        let dearest = stacks.iter().max().copied().unwrap_or(0).saturating_mul(2).saturating_add(ROW);
        let all = samples.saturating_mul(dearest);
        (all > options.max_bytes).then_some(Self { format, trace, stacks })
    }

    /// Calls `visit` with the time of each sample that costs something, and with what it costs. `seen` is false for every
    /// stack, and is so again afterwards.
    fn of_samples(
        &self,
        thread: &Thread,
        options: &Options,
        seen: &mut [bool],
        mut visit: impl FnMut(u64, u64),
    ) {
        let cost = |stack: Option<StackHandle>| stack.map_or(0, |stack| self.stacks[stack.index()]);
        let is_summed = matches!(self.format, Format::Folded | Format::Pprof);
        let is_sampled = self.format == Format::Speedscope && !(options.evented || options.dotnet_trace);
        let (mut before, mut end_ns) = (None, 0);
        // Then lanes are needed, and what is open on each of them is not known here.
        let mut has_overlap = false;
        for sample in thread.samples(options.view) {
            let stack = sample.stack;
            has_overlap |= sample.time_ns < end_ns && !options.view.is_sampled();
            let bytes = if is_summed {
                match stack {
                    Some(stack) if !std::mem::replace(&mut seen[stack.index()], true) => {
                        cost(Some(stack)) + LINE
                    }
                    _ => 0,
                }
            } else if is_sampled {
                if stack == before { 0 } else { cost(stack).saturating_add(ROW) }
            } else if sample.time_ns == end_ns && !has_overlap {
                let common = cost(self.common(before, stack));
                cost(before).saturating_add(cost(stack)) - 2 * common
            } else {
                // Everything closes and opens; of events that overlap each stands alone.
                cost(before).saturating_add(cost(stack))
            };
            visit(sample.time_ns, bytes);
            (before, end_ns) = (stack, sample.time_ns.saturating_add(sample.weight));
        }
        if is_summed {
            thread
                .samples(options.view)
                .filter_map(|s| s.stack)
                .for_each(|stack| seen[stack.index()] = false);
        }
    }

    /// The callers that two stacks have in common.
    fn common(&self, one: Option<StackHandle>, other: Option<StackHandle>) -> Option<StackHandle> {
        let (mut one, mut other) = (one, other);
        // A caller is always older than its callee.
        while one != other {
            let younger = if one > other { &mut one } else { &mut other };
            *younger = younger.and_then(|handle| self.trace.stacks().get(handle).parent);
        }
        one
    }
}
