//! Reduces a trace that would be too large for a file: limits the depth of stacks, and the time range.
//!
//! A recording stores each stack once and references it in a dozen bytes, but many formats repeat it for each sample.
//! [`Trace::limit_depth`] preserves all weights; [`Trace::end_at`] truncates between samples.

use crate::frames::{Frame, FrameHandle};
use crate::stacks::StackHandle;
use crate::strings::next_index;
use crate::trace::Trace;

/// The frame that replaces omitted frames in the middle of a stack.
pub const LEFT_OUT: &str = "[frames left out]";

/// Maximum number of stack table entries for the innermost frames of deep stacks, unless the table is larger: 30 MB.
/// Entries refer to their callers, so a stack of 60,000 frames may share all but its last entry with others, but the
/// innermost frames kept after the omitted ones are separate copies.
const MAX_END_FRAMES: usize = 1 << 20;

/// Statistics of stacks that were too deep.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct DeepStacks {
    /// Number of truncated stacks that samples have.
    pub stacks: usize,
    /// Depth of the deepest stack.
    pub deepest: usize,
    /// Number of frames kept at the root of each stack.
    pub at_root: usize,
    /// Number of frames kept at the innermost end of each stack: at least one less than at the root, or 0 if there are
    /// too many stacks.
    pub at_leaf: usize,
}

impl Trace {
    /// Returns the depth of the deepest stack.
    pub fn deepest(&self) -> usize {
        self.depths().into_iter().max().unwrap_or(0) as usize
    }

    /// Returns the depth of each stack, by the index of its handle.
    pub fn depths(&self) -> Vec<u32> {
        let mut depths: Vec<u32> = Vec::with_capacity(self.stacks.len());
        for (_, stack) in self.stacks.iter() {
            depths.push(stack.parent.map_or(1, |parent| depths[parent.index()].saturating_add(1)));
        }
        depths
    }

    /// Truncates stacks of samples to at most `most` frames, and at least 3. A deeper stack keeps both ends with the
    /// frame [`LEFT_OUT`] between them. If a million table entries are insufficient for the innermost ends of all deep
    /// stacks, only the outermost frames are kept, followed by [`LEFT_OUT`]. Time and memory are proportional to the
    /// size of the trace.
    pub fn limit_depth(&mut self, most: usize) -> DeepStacks {
        let most = most.max(3);
        let depths = self.depths();
        let mut deep = DeepStacks::default();
        let mut is_deep = vec![false; depths.len()];
        for stack in self.threads.iter_mut().flat_map(crate::Thread::stacks_mut) {
            let depth = depths[stack.index()] as usize;
            if depth > most && !std::mem::replace(&mut is_deep[stack.index()], true) {
                deep.stacks += 1;
                deep.deepest = deep.deepest.max(depth);
            }
        }
        if deep.stacks == 0 {
            return deep;
        }
        let both = (most - 1) / 2;
        let fits = deep.stacks.saturating_mul(both) <= MAX_END_FRAMES.max(depths.len());
        deep.at_leaf = if fits { both } else { 0 };
        deep.at_root = most - 1 - deep.at_leaf;
        let shorter = self.shortened(&depths, &is_deep, deep);
        for stack in self.threads.iter_mut().flat_map(crate::Thread::stacks_mut) {
            if let Some(shorter) = shorter[stack.index()] {
                *stack = shorter;
            }
        }
        deep
    }

    /// Returns the replacement of each deep stack, by the index of its handle; `None` for other stacks.
    fn shortened(&mut self, depths: &[u32], is_deep: &[bool], deep: DeepStacks) -> Vec<Option<StackHandle>> {
        // The outermost frames of each stack followed by the mark. Callers precede their callees.
        let mark = self.frames.intern(&Frame::label(LEFT_OUT), &mut self.strings);
        let mut marked: Vec<Option<StackHandle>> = vec![None; depths.len()];
        for index in 0..depths.len() {
            let handle = StackHandle::from_index(next_index(index));
            let depth = depths[index] as usize;
            marked[index] = match self.stacks.get(handle).parent {
                _ if depth < deep.at_root => None,
                _ if depth == deep.at_root => Some(handle),
                parent => parent.and_then(|parent| marked[parent.index()]),
            };
        }
        let mut leaf: Vec<FrameHandle> = Vec::with_capacity(deep.at_leaf);
        for index in 0..depths.len() {
            if !is_deep[index] {
                marked[index] = None;
                continue;
            }
            leaf.clear();
            let stack = StackHandle::from_index(next_index(index));
            leaf.extend(self.stacks.frames(stack).take(deep.at_leaf));
            let root = self.stacks.intern(marked[index], mark);
            let ends = |parent, frame: &FrameHandle| self.stacks.intern(Some(parent), *frame);
            marked[index] = Some(leaf.iter().rev().fold(root, ends));
        }
        marked
    }

    /// Removes all samples from `time_ns` on.
    pub fn end_at(&mut self, time_ns: u64) {
        for thread in &mut self.threads {
            thread.end_at(time_ns);
        }
    }

    /// Returns the length of each frame's displayed name in bytes, by the index of its handle.
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

    /// Returns the weight and the frames from the root of each sample.
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
    fn both_ends_of_a_deep_stack_are_kept() {
        let mut trace = trace(&["abcdefgh", "abc", "", "abcdefghi", "abcdefgh"]);
        let before = trace.clone();
        assert_eq!(trace.limit_depth(9), DeepStacks::default());
        assert_eq!(shown(&trace), shown(&before));
        assert_eq!(trace.limit_depth(6), DeepStacks { stacks: 2, deepest: 9, at_root: 3, at_leaf: 2 });
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

    /// A call tree of two alternating methods, with a sample of its own for each call.
    fn call_tree(depth: u64) -> Trace {
        let mut builder = TraceBuilder::new();
        let thread = builder.thread(1);
        let frames = ["a", "b", "c"].map(|name| builder.frame(None, name));
        let mut stack = None;
        for call in 0..depth {
            // No two ends of stacks are equal for long.
            let frame = frames[(call.count_ones() % 3) as usize];
            stack = Some(builder.stack(stack, frame));
            builder.add_event(thread, 0, 1, stack);
        }
        builder.finish()
    }

    #[test]
    fn many_deep_stacks_keep_their_first_frames_and_the_table_stays_small() {
        let depth: u32 = 20_000;
        let mut trace = call_tree(depth.into());
        let entries = trace.stacks().len();
        let deep = trace.limit_depth(1024);
        let (stacks, deepest) = (depth as usize - 1024, depth as usize);
        assert_eq!(deep, DeepStacks { stacks, deepest, at_root: 1023, at_leaf: 0 });
        assert_eq!(trace.stacks().len(), entries + 1, "one mark for all of them");
        let (handle, thread) = trace.threads().next().unwrap();
        let depths = trace.depths();
        let weights = crate::StackWeights::new(&trace, View::Exceptions, Some(handle));
        let shown: Vec<_> = thread.samples(View::Exceptions).filter_map(|sample| sample.stack).collect();
        assert_eq!(shown.iter().map(|stack| depths[stack.index()]).max(), Some(1024));
        let last = shown[shown.len() - 1];
        assert_eq!(trace.frame(trace.stacks().get(last).frame).name, LEFT_OUT);
        assert_eq!(weights.self_weight(last), stacks as u64, "no weight is lost");
        assert_eq!(weights.total_weight(), depth.into());
        // A small number of deep stacks keeps both ends.
        let deep = call_tree(1500).limit_depth(1024);
        assert_eq!((deep.stacks, deep.at_root, deep.at_leaf), (476, 512, 511));
    }

    #[test]
    fn an_earlier_end_truncates_between_samples() {
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
