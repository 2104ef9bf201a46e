//! The stack table: a stack consists of its caller's stack and one more frame. Each pair is stored once.
//!
//! Parents precede their children, so iterating in the order of handles visits callers first, and in reverse order
//! callees first, without recursion.

use crate::frames::FrameHandle;
use crate::strings::next_index;
use foldhash::fast::RandomState;
use hashbrown::HashMap;
use std::num::NonZeroU32;

/// A handle to a stack of a [`StackTable`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StackHandle(NonZeroU32); // Not zero, so that an `Option` of it is 4 bytes too.

impl StackHandle {
    pub(crate) fn from_index(index: u32) -> Self {
        Self(NonZeroU32::MIN.saturating_add(index))
    }

    /// Returns the index in the table. Indexes are dense, callers before callees.
    pub fn index(self) -> usize {
        self.0.get() as usize - 1
    }
}

/// An entry of the stack table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Stack {
    /// Stack of the caller; `None` at the root.
    pub parent: Option<StackHandle>,
    /// The innermost frame.
    pub frame: FrameHandle,
}

/// A table of interned stacks.
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

    /// Returns the entry of `handle`.
    ///
    /// # Panics
    /// If the handle does not belong to this table.
    pub fn get(&self, handle: StackHandle) -> Stack {
        self.stacks[handle.index()]
    }

    /// Returns the frames of a stack, starting with the innermost.
    pub fn frames(&self, handle: StackHandle) -> Frames<'_> {
        Frames { table: self, next: Some(handle) }
    }

    /// Returns all stacks with their handles, callers before callees.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = (StackHandle, Stack)> + ExactSizeIterator + '_ {
        self.stacks.iter().enumerate().map(|(i, s)| (StackHandle::from_index(next_index(i)), *s))
    }

    /// Returns the number of stacks.
    pub fn len(&self) -> usize {
        self.stacks.len()
    }

    /// Returns whether the table is empty.
    pub fn is_empty(&self) -> bool {
        self.stacks.is_empty()
    }
}

/// An iterator over the frames of a stack, from the innermost to the root.
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
