//! Estimates the size of files, and determines where a trace must be truncated to stay within a limit.
//!
//! | format | cost of a sample |
//! |---|---|
//! | speedscope | every frame of a stack that differs from the previous one |
//! | speedscope (evented), chrome, perfetto | every frame that opens or closes |
//! | folded | the names of all frames of a stack that is new for the thread |
//! | pprof | a number for every frame of a stack that is new for the thread |
//! | firefox | a row: stacks are written once, with each frame referring to its caller |
//! | flamegraph | at most one box, and small ones are not drawn |
//!
//! With the first four rows, a file can be thousands of times larger than the recording: because of a deep stack that
//! alternates with others, long names, or a call tree in which each stack is one call deeper than another. Samples that
//! are sums have no times at which to truncate, so the small branches of their trees are [omitted](least).

use crate::{Format, Options};
use runtap_model::{Branches, StackHandle, Thread, Trace};

/// Size in bytes of a frame that opens or closes, as text or message, without the name.
const CHANGE: u64 = 48;
/// Size of such a change in Chrome's format.
const CHROME_CHANGE: u64 = 96;
/// Size of an index into a list of frames.
const INDEX: u64 = 7;
/// Size of a line of folded stacks without the names.
const LINE: u64 = 32;
/// Size of a frame's number in pprof, before compression.
const NUMBER: u64 = 3;
/// Size of a row in other formats.
const ROW: u64 = 64;

/// Number of time slices that are distinguished.
const SLICES: usize = 4096;

/// Returns the time in nanoseconds at which `trace` must be truncated so that the file has at most about
/// `options.max_bytes`. `None` if it need not be truncated.
pub(crate) fn end(format: Format, trace: &Trace, options: &Options) -> Option<u64> {
    let sizes = Sizes::new(format, trace, options)?;
    let (first, last) = span(trace, options).filter(|(first, last)| first < last)?;
    let mut width = (last - first) / SLICES as u64 + 1;
    loop {
        match sizes.slices_within(first, width, options) {
            // The limit is within the first slice: use finer slices.
            Some(0) if width > 1 => width = width.div_ceil(SLICES as u64),
            within => return Some(first + width * within? as u64),
        }
    }
}

/// Returns the times of the first and last samples.
fn span(trace: &Trace, options: &Options) -> Option<(u64, u64)> {
    let first = trace.threads().filter_map(|(_, t)| Some(t.samples(options.view).next()?.time_ns)).min()?;
    let last = trace.threads().filter_map(|(_, t)| Some(t.samples(options.view).last()?.time_ns)).max()?;
    Some((first, last))
}

/// Returns the minimum weight of branches so that the file has at most about `options.max_bytes`, if all samples have
/// the same time. `None` if all branches fit, or if the trace can be truncated at a [time](end).
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

/// The sizes of frames and stacks.
struct Sizes<'a> {
    format: Format,
    trace: &'a Trace,
    /// Size of each stack from its root, by the index of its handle.
    stacks: Vec<u64>,
}

impl<'a> Sizes<'a> {
    /// Returns the number of slices from `first` on that fit within the limit. `None` if all fit.
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

    /// Calls `visit` with the time and size of each sample. All elements of `seen` must be false and are false
    /// afterwards.
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
        // Overlapping events are written in lanes, whose open frames are not tracked here.
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
                // All frames are closed and opened; overlapping events share none.
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

    /// Returns the common callers of two stacks.
    fn common(&self, one: Option<StackHandle>, other: Option<StackHandle>) -> Option<StackHandle> {
        let (mut one, mut other) = (one, other);
        // Callers are older than their callees.
        while one != other {
            let younger = if one > other { &mut one } else { &mut other };
            *younger = younger.and_then(|handle| self.trace.stacks().get(handle).parent);
        }
        one
    }
}
