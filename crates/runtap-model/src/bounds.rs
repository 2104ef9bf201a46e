//! Less of a trace, where all of it would be too much for a file: stacks that are not as deep, and an earlier end.
//!
//! A recording holds a stack once and names it in a dozen bytes, as often as it likes; many formats write it out each
//! time. What is left out here is told to the caller, and nothing else changes: no weight is lost by
//! [`Trace::limit_depth`], and [`Trace::end_at`] cuts between samples.

use crate::frames::{Frame, FrameHandle};
use crate::stacks::StackHandle;
use crate::strings::next_index;
use crate::trace::Trace;

/// What stands for the frames in the middle of a stack that are left out.
pub const LEFT_OUT: &str = "[frames left out]";

/// The stacks that were too deep.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct DeepStacks {
    /// How many of those that samples have.
    pub stacks: usize,
    /// The depth of the deepest.
    pub deepest: usize,
}

impl Trace {
    /// The depth of the deepest stack.
    pub fn deepest(&self) -> usize {
        self.depths().into_iter().max().unwrap_or(0) as usize
    }

    /// The depth of every stack, by the index of its handle.
    pub fn depths(&self) -> Vec<u32> {
        let mut depths: Vec<u32> = Vec::with_capacity(self.stacks.len());
        for (_, stack) in self.stacks.iter() {
            depths.push(stack.parent.map_or(1, |parent| depths[parent.index()].saturating_add(1)));
        }
        depths
    }

    /// Lets no sample have more than `most` frames, and at least 3: of a deeper stack both ends stay, and one frame
    /// [`LEFT_OUT`] stands between them.
    pub fn limit_depth(&mut self, most: usize) -> DeepStacks {
        let most = most.max(3);
        let depths = self.depths();
        let depth = |stack: StackHandle| depths[stack.index()] as usize;
        let mut deep = DeepStacks::default();
        if !depths.iter().any(|depth| *depth as usize > most) {
            return deep;
        }
        let mut shorter: Vec<Option<StackHandle>> = vec![None; depths.len()];
        let mut threads = std::mem::take(&mut self.threads);
        for stack in threads.iter_mut().flat_map(crate::Thread::stacks_mut) {
            if depth(*stack) > most {
                let known = &mut shorter[stack.index()];
                if known.is_none() {
                    deep.stacks += 1;
                    deep.deepest = deep.deepest.max(depth(*stack));
                }
                *stack = *known.get_or_insert_with(|| self.shorten(*stack, depth(*stack), most));
            }
        }
        self.threads = threads;
        deep
    }

    /// The stack with both ends of another one that has `depth` frames.
    fn shorten(&mut self, stack: StackHandle, depth: usize, most: usize) -> StackHandle {
        let at_leaf = (most - 1) / 2;
        let at_root = most - 1 - at_leaf;
        let mut leaf: Vec<FrameHandle> = Vec::with_capacity(at_leaf);
        let mut here = Some(stack);
        for passed in 0..depth - at_root {
            let Some(entry) = here.map(|handle| self.stacks.get(handle)) else { break };
            if passed < at_leaf {
                leaf.push(entry.frame);
            }
            here = entry.parent;
        }
        let mark = self.frames.intern(&Frame::label(LEFT_OUT), &mut self.strings);
        let marked = self.stacks.intern(here, mark);
        leaf.into_iter().rev().fold(marked, |parent, frame| self.stacks.intern(Some(parent), frame))
    }

    /// Leaves out all samples from `time_ns` on.
    pub fn end_at(&mut self, time_ns: u64) {
        for thread in &mut self.threads {
            thread.end_at(time_ns);
        }
    }

    /// The bytes of the name of every frame as it is displayed, by the index of its handle.
    pub fn name_lengths(&self) -> Vec<usize> {
        let length = |index| {
            let frame = self.frame(FrameHandle(next_index(index)));
            frame.name.len() + frame.module.map_or(1, str::len) + 1
        };
        (0..self.frames.len()).map(length).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{SampleKind, TraceBuilder, View};

    fn trace(stacks: &[&str]) -> Trace {
        let mut builder = TraceBuilder::new();
        let thread = builder.thread(1);
        for (n, names) in (0..).zip(stacks) {
            let frames: Vec<_> = names.chars().map(|name| builder.frame(None, &name.to_string())).collect();
            let stack = builder.stack_of(frames);
            builder.add_sample(thread, n * 10, SampleKind::MANAGED, stack);
        }
        builder.finish()
    }

    /// Weight and frames from the root of each sample.
    fn shown(trace: &Trace) -> Vec<(u64, String)> {
        let (_, thread) = trace.threads().next().unwrap();
        let text = |stack| {
            let mut names: Vec<_> =
                trace.stacks().frames(stack).map(|f| trace.frame(f).name.to_owned()).collect();
            names.reverse();
            names.join(" ")
        };
        thread.samples(View::Cpu).map(|s| (s.weight, s.stack.map_or_else(String::new, text))).collect()
    }

    #[test]
    fn both_ends_of_a_deep_stack_stay() {
        let mut trace = trace(&["abcdefgh", "abc", "", "abcdefghi", "abcdefgh"]);
        let before = trace.clone();
        assert_eq!(trace.limit_depth(9), DeepStacks::default());
        assert_eq!(shown(&trace), shown(&before));
        assert_eq!(trace.limit_depth(6), DeepStacks { stacks: 2, deepest: 9 });
        let expected = [
            "a b c [frames left out] g h",
            "a b c",
            "",
            "a b c [frames left out] h i",
            "a b c [frames left out] g h",
        ];
        assert_eq!(shown(&trace), expected.map(|text| (10, text.to_owned())));
        assert_eq!(trace.limit_depth(0).stacks, 2, "3 at least");
        assert_eq!(shown(&trace)[0].1, "a [frames left out] h");
        assert!(
            trace.stacks().iter().all(|(handle, stack)| stack.parent.is_none_or(|parent| parent < handle))
        );
    }

    #[test]
    fn an_earlier_end_cuts_between_samples() {
        let mut trace = trace(&["a", "a", "b", "c"]);
        let (_, thread) = trace.threads().next().unwrap();
        assert_eq!(thread.weight(View::Cpu), 40);
        trace.end_at(20);
        assert_eq!(shown(&trace), [(20, "a".to_owned())]);
        let (_, thread) = trace.threads().next().unwrap();
        assert_eq!((thread.weight(View::Cpu), thread.ticks(View::Cpu)), (20, 2));
        trace.end_at(0);
        assert_eq!(shown(&trace), []);
    }
}
