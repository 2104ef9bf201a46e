//! Adds weights up: per stack for aggregated files, per frame for reports.

use crate::frames::FrameHandle;
use crate::samples::ThreadHandle;
use crate::stacks::StackHandle;
use crate::trace::Trace;
use crate::view::View;

/// How long each stack was seen as the innermost one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StackWeights {
    by_stack: Vec<u64>,
    no_stack_ns: u64,
    ticks: u64,
}

impl StackWeights {
    /// The weights of `view` in one thread, or in all of them together.
    pub fn new(trace: &Trace, view: View, thread: Option<ThreadHandle>) -> Self {
        let mut weights = Self { by_stack: vec![0; trace.stacks().len()], no_stack_ns: 0, ticks: 0 };
        for (handle, of_trace) in trace.threads() {
            if thread.is_some_and(|wanted| wanted != handle) {
                continue;
            }
            for sample in of_trace.samples(view) {
                let sum = match sample.stack {
                    Some(stack) => &mut weights.by_stack[stack.index()],
                    None => &mut weights.no_stack_ns,
                };
                *sum = sum.saturating_add(sample.weight_ns);
                weights.ticks += u64::from(sample.ticks);
            }
        }
        weights
    }

    /// The weight of the samples that ended in `stack` itself, in nanoseconds.
    pub fn self_ns(&self, stack: StackHandle) -> u64 {
        self.by_stack[stack.index()]
    }

    /// The weight of the samples without a stack, in nanoseconds.
    pub fn no_stack_ns(&self) -> u64 {
        self.no_stack_ns
    }

    /// The number of ticks.
    pub fn ticks(&self) -> u64 {
        self.ticks
    }

    /// The sum of all weights, in nanoseconds.
    pub fn total_ns(&self) -> u64 {
        self.by_stack.iter().fold(self.no_stack_ns, |sum, ns| sum.saturating_add(*ns))
    }
}

/// How long each frame was running itself, and how long it was anywhere on the stack.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FrameTotals {
    self_ns: Vec<u64>,
    total_ns: Vec<u64>,
    sum_ns: u64,
    no_stack_ns: u64,
    ticks: u64,
}

impl FrameTotals {
    /// The totals of `view` in one thread, or in all of them together.
    ///
    /// A frame that is several times on a stack (recursion) counts once in its inclusive time.
    pub fn new(trace: &Trace, view: View, thread: Option<ThreadHandle>) -> Self {
        let weights = StackWeights::new(trace, view, thread);
        let frames = trace.frames().len();
        let mut totals = Self {
            self_ns: vec![0; frames],
            total_ns: vec![0; frames],
            sum_ns: weights.total_ns(),
            no_stack_ns: weights.no_stack_ns(),
            ticks: weights.ticks(),
        };
        // The stack that a frame was last counted for.
        let mut counted: Vec<Option<StackHandle>> = vec![None; frames];
        for (handle, stack) in trace.stacks().iter() {
            let ns = weights.self_ns(handle);
            if ns == 0 {
                continue;
            }
            add(&mut totals.self_ns, stack.frame, ns);
            for frame in trace.stacks().frames(handle) {
                if counted[frame.index()].replace(handle) != Some(handle) {
                    add(&mut totals.total_ns, frame, ns);
                }
            }
        }
        totals
    }

    /// Time in the frame itself, in nanoseconds.
    pub fn self_ns(&self, frame: FrameHandle) -> u64 {
        self.self_ns[frame.index()]
    }

    /// Time in the frame or in what it called, in nanoseconds.
    pub fn total_ns(&self, frame: FrameHandle) -> u64 {
        self.total_ns[frame.index()]
    }

    /// The sum of all weights, those without a stack too, in nanoseconds.
    pub fn sum_ns(&self) -> u64 {
        self.sum_ns
    }

    /// The weight of the samples without a stack, in nanoseconds.
    pub fn no_stack_ns(&self) -> u64 {
        self.no_stack_ns
    }

    /// The number of ticks.
    pub fn ticks(&self) -> u64 {
        self.ticks
    }
}

fn add(sums: &mut [u64], frame: FrameHandle, ns: u64) {
    let sum = &mut sums[frame.index()];
    *sum = sum.saturating_add(ns);
}
