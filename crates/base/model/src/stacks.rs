//! The stack table: a stack is its caller's stack and one more frame, each pair once.
//!
//! A parent is always older than its children, so a pass in the order of the handles meets callers first, and
//! the reverse pass meets callees first. Both need no recursion.

use crate::frames::FrameHandle;
use crate::strings::next_index;
use foldhash::fast::RandomState;
use hashbrown::HashMap;
use std::num::NonZeroU32;

/// A stack of a [`StackTable`]: the frame that it ends in and all its callers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StackHandle(NonZeroU32); // Not zero, so that an Option of it is 4 bytes too.

impl StackHandle {
    pub(crate) fn from_index(index: u32) -> Self {
        Self(NonZeroU32::MIN.saturating_add(index))
    }

    /// The position in the table: dense, callers before callees.
    pub fn index(self) -> usize {
        self.0.get() as usize - 1
    }
}

/// One entry of the stack table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Stack {
    /// The stack of the caller; `None` at the root.
    pub parent: Option<StackHandle>,
    /// The frame that was called.
    pub frame: FrameHandle,
}

/// Interned stacks.
#[derive(Debug, Clone, Default)]
pub struct StackTable {
    stacks: Vec<Stack>,
    index: HashMap<Stack, StackHandle, RandomState>,
}

impl StackTable {
    pub(crate) fn intern(&mut self, parent: Option<StackHandle>, frame: FrameHandle) -> StackHandle {
        let key = Stack { parent, frame };
        *self.index.entry(key).or_insert_with(|| {
            let new = StackHandle::from_index(next_index(self.stacks.len()));
            self.stacks.push(key);
            new
        })
    }

    /// The entry of `handle`.
    ///
    /// # Panics
    /// If the handle is not of this table.
    pub fn get(&self, handle: StackHandle) -> Stack {
        self.stacks[handle.index()]
    }

    /// The frames of `handle`, the innermost first.
    pub fn frames(&self, handle: StackHandle) -> Frames<'_> {
        Frames { table: self, next: Some(handle) }
    }

    /// All stacks with their handles, callers before callees.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = (StackHandle, Stack)> + ExactSizeIterator + '_ {
        self.stacks.iter().enumerate().map(|(i, s)| (StackHandle::from_index(next_index(i)), *s))
    }

    /// Number of stacks.
    pub fn len(&self) -> usize {
        self.stacks.len()
    }

    /// Whether there is no stack yet.
    pub fn is_empty(&self) -> bool {
        self.stacks.is_empty()
    }
}

/// The frames of one stack, from the innermost to the root.
#[derive(Debug, Clone)]
pub struct Frames<'a> {
    table: &'a StackTable,
    next: Option<StackHandle>,
}

impl Iterator for Frames<'_> {
    type Item = FrameHandle;

    fn next(&mut self) -> Option<FrameHandle> {
        let stack = self.table.get(self.next?);
        self.next = stack.parent;
        Some(stack.frame)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stacks_share_their_callers() {
        let mut table = StackTable::default();
        let [main, work, wait] = [FrameHandle(0), FrameHandle(1), FrameHandle(2)];
        let root = table.intern(None, main);
        let a = table.intern(Some(root), work);
        let b = table.intern(Some(root), wait);
        assert_eq!(table.intern(Some(root), work), a);
        assert_ne!(table.intern(None, work), a);
        assert_eq!(table.len(), 4);
        assert_eq!(table.frames(b).collect::<Vec<_>>(), [wait, main]);
        assert!(table.iter().all(|(h, s)| s.parent.is_none_or(|p| p < h)));
        assert_eq!(size_of::<Option<StackHandle>>(), 4);
    }
}
