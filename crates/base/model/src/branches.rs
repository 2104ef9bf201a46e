//! Branches of a thread's call tree with their total weights, and folding of small branches.
//!
//! A view whose samples are sums rather than points in time cannot be truncated at a time if a file would be too large.
//! Instead [`Trace::fold_branches`] assigns the weights of small branches to their parents.

use crate::bounds::LEFT_OUT;
use crate::frames::Frame;
use crate::samples::Thread;
use crate::stacks::{StackHandle, StackTable};
use crate::trace::Trace;
use crate::view::View;

/// Computes the branches of one thread at a time. The cost for a thread depends only on its own samples, because a
/// recording may have as many threads as stacks.
#[derive(Debug)]
pub struct Branches {
    /// Weight by stack; 0 between two threads.
    weights: Vec<u64>,
    is_seen: Vec<bool>,
}

/// The branches of a thread.
#[derive(Debug, Default)]
pub struct ThreadBranches {
    /// Each stack with the weight of its branch, callees before callers.
    pub branches: Vec<(StackHandle, u64)>,
    /// Total weight of all samples.
    pub total: u64,
    /// Weight of the samples without a stack.
    pub no_stack: u64,
}

impl Branches {
    /// Creates a calculator for the threads of a trace with these stacks.
    pub fn new(stacks: &StackTable) -> Self {
        Self { weights: vec![0; stacks.len()], is_seen: vec![false; stacks.len()] }
    }

    /// Returns the branches of a thread.
    ///
    /// # Panics
    /// If the thread does not belong to the trace that has these stacks.
    pub fn of(&mut self, stacks: &StackTable, thread: &Thread, view: View) -> ThreadBranches {
        let mut found = ThreadBranches::default();
        for sample in thread.samples(view) {
            found.total = found.total.saturating_add(sample.weight);
            let Some(stack) = sample.stack else {
                found.no_stack = found.no_stack.saturating_add(sample.weight);
                continue;
            };
            let weight = &mut self.weights[stack.index()];
            *weight = weight.saturating_add(sample.weight);
            let mut next = Some(stack);
            while let Some(stack) = next.filter(|stack| !self.is_seen[stack.index()]) {
                self.is_seen[stack.index()] = true;
                found.branches.push((stack, 0));
                next = stacks.get(stack).parent;
            }
        }
        // Callees follow their callers, so the reverse order completes each branch before it is added to its parent.
        found.branches.sort_unstable_by(|a, b| b.cmp(a));
        for (stack, branch) in &mut found.branches {
            *branch = std::mem::take(&mut self.weights[stack.index()]);
            self.is_seen[stack.index()] = false;
            if let Some(parent) = stacks.get(*stack).parent {
                let sum = &mut self.weights[parent.index()];
                *sum = sum.saturating_add(*branch);
            }
        }
        found
    }
}

impl Trace {
    /// Assigns the samples of every branch of `view` with a weight below `least` to the parent stack, or to a frame
    /// [`LEFT_OUT`] at the root. The total weight does not change.
    pub fn fold_branches(&mut self, view: View, least: u64) {
        let mark = self.frames.intern(&Frame::label(LEFT_OUT), &mut self.strings);
        let nothing = self.stacks.intern(None, mark);
        let mut branches = Branches::new(&self.stacks);
        let mut places: Vec<StackHandle> = vec![nothing; self.stacks.len()];
        for thread in &mut self.threads {
            let found = branches.of(&self.stacks, thread, view);
            for (stack, branch) in found.branches.iter().rev() {
                let caller = self.stacks.get(*stack).parent.map_or(nothing, |parent| places[parent.index()]);
                places[stack.index()] = if *branch >= least { *stack } else { caller };
            }
            thread.move_samples(view, &places);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{StackWeights, TraceBuilder};

    #[test]
    fn small_branches_are_folded_into_their_parents() {
        let mut builder = TraceBuilder::new();
        let [first, second] = [1, 2].map(|tid| builder.thread(tid));
        for (thread, names, weight) in [
            (first, "ab", 5),
            (first, "abc", 4),
            (first, "abe", 9),
            (first, "x", 3),
            (second, "abc", 10),
            (second, "ab", 1),
        ] {
            let frames: Vec<_> = names.chars().map(|name| builder.frame(None, &name.to_string())).collect();
            let stack = builder.stack_of(frames);
            builder.add_event(thread, 0, weight, stack);
        }
        builder.add_event(first, 0, 2, None);
        let mut trace = builder.finish();
        let mut branches = Branches::new(trace.stacks());
        let found = branches.of(trace.stacks(), trace.thread(first), View::Exceptions);
        assert_eq!((found.total, found.no_stack), (23, 2));
        assert_eq!(found.branches.iter().map(|(_, weight)| *weight).collect::<Vec<_>>(), [3, 9, 4, 18, 18]);
        trace.fold_branches(View::Exceptions, 5);
        let text = |stack: StackHandle| {
            let mut names: Vec<_> = trace.stacks().frames(stack).map(|f| trace.frame(f).name).collect();
            names.reverse();
            names.concat()
        };
        let weights = |thread| {
            let weights = StackWeights::new(&trace, View::Exceptions, Some(thread));
            let own = trace.stacks().iter().map(|(stack, _)| (text(stack), weights.self_weight(stack)));
            own.filter(|(_, weight)| *weight > 0).collect::<Vec<_>>()
        };
        let of =
            |all: &[(&str, u64)]| all.iter().map(|(name, n)| ((*name).to_owned(), *n)).collect::<Vec<_>>();
        assert_eq!(weights(first), of(&[("ab", 9), ("abe", 9), (LEFT_OUT, 3)]));
        assert_eq!(weights(second), of(&[("ab", 1), ("abc", 10)]));
    }
}
