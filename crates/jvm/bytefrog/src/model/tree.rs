//! Call trees of all threads in one table.
//!
//! Owns: [`Tree`]. A node is a method called by way of one path, in one thread. Nodes are never removed; their number is
//! limited, and what would be a node beyond it is [`NONE`]: such calls are counted for their method only.

use hashbrown::HashTable;
use hashbrown::hash_table::Entry;
use std::hash::BuildHasher as _;

/// No node.
pub(crate) const NONE: u32 = u32::MAX;

/// The place of a call that is not counted: see [`Selection`](super::Selection).
pub(crate) const OUTSIDE: u32 = NONE - 1;

/// 48 bytes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Node {
    /// The caller; `NONE` for the root of a thread.
    pub(crate) parent: u32,
    /// The method; for a root, the thread.
    pub(crate) method: u32,
    /// The child that was called last: most calls go there again.
    recent: u32,
    /// The sibling that was called after this one when it was last left for another: loops call in the same order again.
    after: u32,
    /// Calls that have begun.
    pub(crate) calls: u64,
    /// Time in calls that have ended, in units of the clock.
    pub(crate) inclusive: u64,
    /// The same without callees.
    pub(crate) own: u64,
    /// Calls that an exception has ended. Not counted beyond 2^32 - 1, like those below.
    pub(crate) thrown: u32,
    /// Calls whose end was not seen.
    pub(crate) cut: u32,
}

#[derive(Debug)]
pub(crate) struct Tree {
    nodes: Vec<Node>,
    children: HashTable<u32>,
    hasher: foldhash::fast::RandomState,
    limit: usize,
    /// Calls that have no node.
    pub(crate) untold: u64,
}

impl Tree {
    pub(crate) fn new(limit: usize) -> Self {
        Self {
            nodes: Vec::new(),
            children: HashTable::new(),
            hasher: foldhash::fast::RandomState::default(),
            limit: limit.min(OUTSIDE as usize - 1),
            untold: 0,
        }
    }

    pub(crate) fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    #[inline]
    pub(crate) fn get_mut(&mut self, node: u32) -> Option<&mut Node> {
        self.nodes.get_mut(node as usize)
    }

    /// No more calls are expected: what finds their nodes is not needed. If one comes all the same, it gets a node beside the one
    /// that it could have had.
    pub(crate) fn seal(&mut self) {
        self.children = HashTable::new();
    }

    /// The root of a new thread.
    pub(crate) fn root(&mut self, thread: u32) -> u32 {
        self.push(NONE, thread)
    }

    fn push(&mut self, parent: u32, method: u32) -> u32 {
        if self.nodes.len() >= self.limit {
            return NONE;
        }
        // Not to twice as much as the limit.
        if self.nodes.len() == self.nodes.capacity() {
            let more = self.nodes.len().max(32).min(self.limit - self.nodes.len());
            self.nodes.reserve_exact(more);
        }
        let node = u32::try_from(self.nodes.len()).unwrap_or(NONE);
        self.nodes.push(Node {
            parent,
            method,
            recent: NONE,
            after: NONE,
            calls: 0,
            inclusive: 0,
            own: 0,
            thrown: 0,
            cut: 0,
        });
        node
    }

    /// Counts a call of `method` by `parent` and gives its node.
    #[inline]
    pub(crate) fn call(&mut self, parent: u32, method: u32) -> u32 {
        let recent = self.nodes.get(parent as usize).map_or(NONE, |node| node.recent);
        let Some(node) = self.nodes.get_mut(recent as usize) else {
            return self.call_another(parent, method, NONE);
        };
        if node.method == method {
            node.calls += 1;
            return recent;
        }
        let after = node.after;
        if let Some(node) = self.nodes.get_mut(after as usize)
            && node.method == method
        {
            node.calls += 1;
            if let Some(parent) = self.nodes.get_mut(parent as usize) {
                parent.recent = after;
            }
            return after;
        }
        self.call_another(parent, method, recent)
    }

    fn call_another(&mut self, parent: u32, method: u32, recent: u32) -> u32 {
        if parent == NONE {
            self.untold += 1;
            return NONE;
        }
        let key =
            |node: u32| self.nodes.get(node as usize).map_or((NONE, NONE), |node| (node.parent, node.method));
        let hash = self.hasher.hash_one((parent, method));
        let found = self.children.find(hash, |node| key(*node) == (parent, method)).copied();
        let node = match found {
            Some(node) => node,
            None => self.grow(parent, method, hash),
        };
        match self.nodes.get_mut(node as usize) {
            Some(called) => called.calls += 1,
            None => self.untold += 1,
        }
        if node != NONE {
            if let Some(recent) = self.nodes.get_mut(recent as usize) {
                recent.after = node;
            }
            if let Some(parent) = self.nodes.get_mut(parent as usize) {
                parent.recent = node;
            }
        }
        node
    }

    #[cold]
    fn grow(&mut self, parent: u32, method: u32, hash: u64) -> u32 {
        let node = self.push(parent, method);
        if node == NONE {
            return NONE;
        }
        let (nodes, hasher) = (&self.nodes, &self.hasher);
        let key =
            |node: &u32| nodes.get(*node as usize).map_or((NONE, NONE), |node| (node.parent, node.method));
        // There is none: it was looked for.
        match self.children.entry(
            hash,
            |other| key(other) == (parent, method),
            |other| hasher.hash_one(key(other)),
        ) {
            Entry::Occupied(_) => {}
            Entry::Vacant(vacant) => {
                vacant.insert(node);
            }
        }
        node
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_found_again_and_the_limit_holds() {
        let mut tree = Tree::new(5);
        assert_eq!(size_of::<Node>(), 48);
        let root = tree.root(0);
        let a = tree.call(root, 10);
        let b = tree.call(root, 11);
        let inner = tree.call(a, 11);
        assert_ne!(b, inner);
        assert_eq!((tree.call(root, 10), tree.call(root, 11), tree.call(a, 11)), (a, b, inner));
        assert_eq!(tree.nodes()[b as usize].calls, 2);
        let last = tree.call(inner, 11);
        assert_eq!(tree.nodes().len(), 5);
        assert_eq!((tree.call(last, 11), tree.call(NONE, 11), tree.untold), (NONE, NONE, 2));
        assert_eq!(tree.call(inner, 11), last);
    }
}
