//! The call trees of all threads in one table.
//!
//! A node is a method that is called on one path in one thread. Nodes are never removed. Their number is limited; a
//! call beyond the limit has the node [`NONE`], and is counted for its method only.

use hashbrown::HashTable;
use hashbrown::hash_table::Entry;
use std::hash::BuildHasher as _;

/// The index of no node.
pub(crate) const NONE: u32 = u32::MAX;

/// The node of a call that is not counted: see [`Selection`](super::Selection).
pub(crate) const OUTSIDE: u32 = NONE - 1;

/// A node of 48 bytes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Node {
    /// The caller; `NONE` for the root of a thread.
    pub(crate) parent: u32,
    /// The method; for a root, the thread.
    pub(crate) method: u32,
    /// The child that was called last: most calls repeat it.
    recent: u32,
    /// The sibling that was last called after this one: loops repeat the order of calls.
    after: u32,
    /// The number of calls that have begun.
    pub(crate) calls: u64,
    /// The time in calls that have ended, including callees, in units of the clock.
    pub(crate) inclusive: u64,
    /// The time in calls that have ended, without callees, in units of the clock.
    pub(crate) own: u64,
    /// The number of calls that ended with an exception; saturates.
    pub(crate) thrown: u32,
    /// The number of calls whose end was not seen; saturates.
    pub(crate) cut: u32,
}

#[derive(Debug)]
pub(crate) struct Tree {
    nodes: Vec<Node>,
    children: HashTable<u32>,
    hasher: foldhash::fast::RandomState,
    limit: usize,
    /// The number of calls without a node.
    pub(crate) without_node: u64,
}

impl Tree {
    pub(crate) fn new(limit: usize) -> Self {
        Self {
            nodes: Vec::new(),
            children: HashTable::new(),
            hasher: foldhash::fast::RandomState::default(),
            limit: limit.min(OUTSIDE as usize - 1),
            without_node: 0,
        }
    }

    pub(crate) fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    #[inline]
    pub(crate) fn get_mut(&mut self, node: u32) -> Option<&mut Node> {
        self.nodes.get_mut(node as usize)
    }

    /// Frees the memory that is needed to find nodes, because no more calls are expected. A further call gets a new
    /// node, even if it has one.
    pub(crate) fn seal(&mut self) {
        self.children = HashTable::new();
    }

    /// Adds the root of a new thread.
    pub(crate) fn root(&mut self, thread: u32) -> u32 {
        self.push(NONE, thread)
    }

    fn push(&mut self, parent: u32, method: u32) -> u32 {
        if self.nodes.len() >= self.limit {
            return NONE;
        }
        // Grow exactly to the limit, not to twice of it.
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

    /// Counts a call of `method` by `parent`, and returns its node.
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
            self.without_node += 1;
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
            None => self.without_node += 1,
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
        // The entry is vacant, because the caller searched for it.
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
    fn paths_are_found_again_and_nodes_are_limited() {
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
        assert_eq!((tree.call(last, 11), tree.call(NONE, 11), tree.without_node), (NONE, NONE, 2));
        assert_eq!(tree.call(inner, 11), last);
    }
}
