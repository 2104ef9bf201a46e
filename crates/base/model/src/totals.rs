//! Sums of weights: per stack for aggregated formats, per frame for reports.

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

/// A sum of weights and ticks.
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
    /// Adds up the weights of `view` in one thread, or in all threads if `thread` is `None`.
    pub fn new(trace: &Trace, view: View, thread: Option<ThreadHandle>) -> Self {
        let mut weights =
            Self { by_stack: vec![Sum::default(); trace.stacks().len()], no_stack: Sum::default() };
        let all = trace.threads().map(|(_, of_trace)| of_trace);
        let only = thread.map(|handle| trace.thread(handle));
        // With a single thread, skip the others.
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

    /// Returns the weights for a table of `len` stacks, in which each stack has the handle in `places`.
    pub(crate) fn moved(&self, places: &[StackHandle], len: usize) -> Self {
        let mut by_stack = vec![Sum::default(); len];
        for (sum, place) in self.by_stack.iter().zip(places) {
            by_stack[place.index()].add(*sum);
        }
        Self { by_stack, no_stack: self.no_stack }
    }

    /// Returns the weight of the samples whose innermost stack is `stack`.
    pub fn self_weight(&self, stack: StackHandle) -> u64 {
        self.by_stack[stack.index()].weight
    }

    /// Returns the number of samples whose innermost stack is `stack`.
    pub fn self_ticks(&self, stack: StackHandle) -> u64 {
        self.by_stack[stack.index()].ticks
    }

    /// Returns the weight of the samples without a stack.
    pub fn no_stack_weight(&self) -> u64 {
        self.no_stack.weight
    }

    /// Returns the number of ticks.
    pub fn ticks(&self) -> u64 {
        self.by_stack.iter().fold(self.no_stack.ticks, |sum, stack| sum.saturating_add(stack.ticks))
    }

    /// Returns the sum of all weights.
    pub fn total_weight(&self) -> u64 {
        self.by_stack.iter().fold(self.no_stack.weight, |sum, stack| sum.saturating_add(stack.weight))
    }
}

/// The self weight and the inclusive weight of each frame, in the unit of the view.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FrameTotals {
    own: Vec<Sum>,
    inclusive: Vec<Sum>,
    sum: u64,
    no_stack_weight: u64,
    ticks: u64,
}

impl FrameTotals {
    /// Computes the totals of `view` in one thread, or in all threads if `thread` is `None`.
    ///
    /// A frame that occurs several times on a stack (recursion) counts once in its inclusive weight.
    pub fn new(trace: &Trace, view: View, thread: Option<ThreadHandle>) -> Self {
        Self::of(trace, &StackWeights::new(trace, view, thread))
    }

    /// Computes the totals from the weights of the stacks of `trace`.
    pub(crate) fn of(trace: &Trace, weights: &StackWeights) -> Self {
        let frames = trace.frames().len();
        let mut totals = Self {
            own: vec![Sum::default(); frames],
            inclusive: vec![Sum::default(); frames],
            sum: weights.total_weight(),
            no_stack_weight: weights.no_stack_weight(),
            ticks: weights.ticks(),
        };
        // The stack that each frame was last counted for.
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

    /// Returns the self weight of a frame: time spent in it, or memory that it allocated.
    pub fn self_weight(&self, frame: FrameHandle) -> u64 {
        self.own[frame.index()].weight
    }

    /// Returns the inclusive weight of a frame: its own weight and that of its callees.
    pub fn total_weight(&self, frame: FrameHandle) -> u64 {
        self.inclusive[frame.index()].weight
    }

    /// Returns the number of ticks in which the frame was the innermost.
    pub fn self_ticks(&self, frame: FrameHandle) -> u64 {
        self.own[frame.index()].ticks
    }

    /// Returns the number of ticks in which the frame was on the stack.
    pub fn total_ticks(&self, frame: FrameHandle) -> u64 {
        self.inclusive[frame.index()].ticks
    }

    /// Returns the sum of all weights, including samples without a stack.
    pub fn sum(&self) -> u64 {
        self.sum
    }

    /// Returns the weight of the samples without a stack.
    pub fn no_stack_weight(&self) -> u64 {
        self.no_stack_weight
    }

    /// Returns the number of ticks.
    pub fn ticks(&self) -> u64 {
        self.ticks
    }
}
