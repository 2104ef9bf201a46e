//! Adds weights up: per stack for aggregated files, per frame for reports.

use crate::frames::FrameHandle;
use crate::samples::ThreadHandle;
use crate::stacks::StackHandle;
use crate::trace::Trace;
use crate::view::View;

/// The weight of each stack as the innermost one, in the unit of the view.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StackWeights {
    by_stack: Vec<Sum>,
    no_stack: Sum,
}

/// Weights and ticks that were added up.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Sum {
    weight: u64,
    ticks: u64,
}

impl Sum {
    fn add(&mut self, other: Self) {
        self.weight = self.weight.saturating_add(other.weight);
        self.ticks = self.ticks.saturating_add(other.ticks);
    }
}

impl StackWeights {
    /// The weights of `view` in one thread, or in all of them together.
    pub fn new(trace: &Trace, view: View, thread: Option<ThreadHandle>) -> Self {
        let mut weights =
            Self { by_stack: vec![Sum::default(); trace.stacks().len()], no_stack: Sum::default() };
        let all = trace.threads().map(|(_, of_trace)| of_trace);
        let only = thread.map(|handle| trace.thread(handle));
        // With one of them, the others cost nothing.
        for of_trace in only.into_iter().chain(all.take(if only.is_some() { 0 } else { usize::MAX })) {
            for sample in of_trace.samples(view) {
                let sum = match sample.stack {
                    Some(stack) => &mut weights.by_stack[stack.index()],
                    None => &mut weights.no_stack,
                };
                sum.add(Sum { weight: sample.weight, ticks: u64::from(sample.ticks) });
            }
        }
        weights
    }

    /// The same weights in a table of `len` stacks, in which each stack is where `places` has it.
    pub(crate) fn moved(&self, places: &[StackHandle], len: usize) -> Self {
        let mut by_stack = vec![Sum::default(); len];
        for (sum, place) in self.by_stack.iter().zip(places) {
            by_stack[place.index()].add(*sum);
        }
        Self { by_stack, no_stack: self.no_stack }
    }

    /// The weight of the samples that ended in `stack` itself.
    pub fn self_weight(&self, stack: StackHandle) -> u64 {
        self.by_stack[stack.index()].weight
    }

    /// The number of the samples that ended in `stack` itself.
    pub fn self_ticks(&self, stack: StackHandle) -> u64 {
        self.by_stack[stack.index()].ticks
    }

    /// The weight of the samples without a stack.
    pub fn no_stack_weight(&self) -> u64 {
        self.no_stack.weight
    }

    /// The number of ticks.
    pub fn ticks(&self) -> u64 {
        self.by_stack.iter().fold(self.no_stack.ticks, |sum, stack| sum.saturating_add(stack.ticks))
    }

    /// The sum of all weights.
    pub fn total_weight(&self) -> u64 {
        self.by_stack.iter().fold(self.no_stack.weight, |sum, stack| sum.saturating_add(stack.weight))
    }
}

/// The weight of each frame itself, and that of all stacks that it is on; in the unit of the view.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FrameTotals {
    own: Vec<Sum>,
    inclusive: Vec<Sum>,
    sum: u64,
    no_stack_weight: u64,
    ticks: u64,
}

impl FrameTotals {
    /// The totals of `view` in one thread, or in all of them together.
    ///
    /// A frame that is several times on a stack (recursion) counts once in its inclusive weight.
    pub fn new(trace: &Trace, view: View, thread: Option<ThreadHandle>) -> Self {
        Self::of(trace, &StackWeights::new(trace, view, thread))
    }

    /// The totals of the stacks of `trace` with the given weights.
    pub(crate) fn of(trace: &Trace, weights: &StackWeights) -> Self {
        let frames = trace.frames().len();
        let mut totals = Self {
            own: vec![Sum::default(); frames],
            inclusive: vec![Sum::default(); frames],
            sum: weights.total_weight(),
            no_stack_weight: weights.no_stack_weight(),
            ticks: weights.ticks(),
        };
        // The stack that a frame was last counted for.
        let mut counted: Vec<Option<StackHandle>> = vec![None; frames];
        for (handle, stack) in trace.stacks().iter() {
            let sum = weights.by_stack[handle.index()];
            if sum == Sum::default() {
                continue;
            }
            totals.own[stack.frame.index()].add(sum);
            for frame in trace.stacks().frames(handle) {
                if counted[frame.index()].replace(handle) != Some(handle) {
                    totals.inclusive[frame.index()].add(sum);
                }
            }
        }
        totals
    }

    /// The weight of the frame itself: time in it, or what it allocated.
    pub fn self_weight(&self, frame: FrameHandle) -> u64 {
        self.own[frame.index()].weight
    }

    /// The weight of the frame and of what it called.
    pub fn total_weight(&self, frame: FrameHandle) -> u64 {
        self.inclusive[frame.index()].weight
    }

    /// How many ticks found the frame running itself.
    pub fn self_ticks(&self, frame: FrameHandle) -> u64 {
        self.own[frame.index()].ticks
    }

    /// How many ticks found the frame anywhere on the stack.
    pub fn total_ticks(&self, frame: FrameHandle) -> u64 {
        self.inclusive[frame.index()].ticks
    }

    /// The sum of all weights, those without a stack too.
    pub fn sum(&self) -> u64 {
        self.sum
    }

    /// The weight of the samples without a stack.
    pub fn no_stack_weight(&self) -> u64 {
        self.no_stack_weight
    }

    /// The number of ticks.
    pub fn ticks(&self) -> u64 {
        self.ticks
    }
}
