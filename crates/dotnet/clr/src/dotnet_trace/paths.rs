//! Stacks by address. Two calls of one method are two places with one name; whether one stack continues another depends on places.

use foldhash::fast::RandomState;
use hashbrown::HashMap;
use runtap_model::FrameHandle;

/// A stack without its thread. 0 is the empty stack.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub(super) struct Path(u32);

/// A frame of a path: its address and text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct PathFrame {
    /// `None` for a frame that is not code.
    pub(super) ip: Option<u64>,
    pub(super) frame: FrameHandle,
}

#[derive(Debug, Default)]
pub(super) struct Paths {
    nodes: Vec<(Path, PathFrame)>,
    index: HashMap<(Path, PathFrame), Path, RandomState>,
}

impl Paths {
    pub(super) fn push(&mut self, onto: Path, place: PathFrame) -> Path {
        *self.index.entry((onto, place)).or_insert_with(|| {
            self.nodes.push((onto, place));
            Path(u32::try_from(self.nodes.len()).unwrap_or(u32::MAX))
        })
    }

    /// Returns the parent of a path, and its last frame.
    pub(super) fn last(&self, path: Path) -> Option<(Path, PathFrame)> {
        let at = usize::try_from(path.0).ok()?.checked_sub(1)?;
        self.nodes.get(at).copied()
    }
}
