//! Stacks by their addresses. Two calls of one method are two places, though they have one name: whether a stack goes on
//! from another one is a question of places.

use foldhash::fast::RandomState;
use hashbrown::HashMap;
use runtap_model::FrameHandle;

/// A stack without its thread; 0 is the empty one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub(super) struct Path(u32);

/// A frame of a path: where, and what it is called.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Place {
    /// `None` for a frame that is no code.
    pub(super) ip: Option<u64>,
    pub(super) frame: FrameHandle,
}

#[derive(Debug, Default)]
pub(super) struct Paths {
    nodes: Vec<(Path, Place)>,
    index: HashMap<(Path, Place), Path, RandomState>,
}

impl Paths {
    pub(super) fn push(&mut self, onto: Path, place: Place) -> Path {
        *self.index.entry((onto, place)).or_insert_with(|| {
            self.nodes.push((onto, place));
            Path(u32::try_from(self.nodes.len()).unwrap_or(u32::MAX))
        })
    }

    /// What a path stands on, and its last frame.
    pub(super) fn last(&self, path: Path) -> Option<(Path, Place)> {
        let at = usize::try_from(path.0).ok()?.checked_sub(1)?;
        self.nodes.get(at).copied()
    }
}
