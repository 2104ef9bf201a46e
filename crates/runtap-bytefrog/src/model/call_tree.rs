//! Who has called whom, for people: nodes of all threads, or of one, with signatures in the place of ids.
//!
//! Owns: [`CallTree`], [`ThreadTrees`], and what methods took with their callees.

use hashbrown::HashMap;

use super::Model;
use super::calls::SoFar;
use super::report::MethodReport;
use super::tree::NONE;

/// A row of a call tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TreeRow {
    /// 0 for what no traced method has called.
    pub depth: usize,
    /// An index into [`CallTree::signatures`].
    pub signature: usize,
    /// Calls that have begun.
    pub calls: u64,
    /// Time in calls that have ended, in nanoseconds.
    pub inclusive: u64,
    /// The same without callees.
    pub own: u64,
    /// Calls that an exception has ended.
    pub thrown: u64,
    /// Calls whose end was not seen. Their time is not known.
    pub cut: u64,
    /// Calls that have not ended yet.
    pub open: u64,
    /// What calls without an end took until it was clear that there is none: those that are open, until the last event.
    /// It is not in `inclusive`.
    pub so_far: u64,
    /// The same without callees.
    pub own_so_far: u64,
}

impl TreeRow {
    /// Whether the end of any of the calls was seen.
    pub fn is_timed(&self) -> bool {
        self.calls > self.cut.saturating_add(self.open)
    }

    /// What all calls took with callees, at least.
    pub fn total(&self) -> u64 {
        self.inclusive.saturating_add(self.so_far)
    }
}

/// Who has called whom: each row stands behind its caller, the longest first.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CallTree {
    /// Signatures, sorted.
    pub signatures: Vec<String>,
    /// The rows.
    pub rows: Vec<TreeRow>,
}

/// The call trees of all threads, each on its own.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ThreadTrees {
    /// Signatures, sorted.
    pub signatures: Vec<String>,
    /// The rows of each thread, at its place in [`Report::threads`](super::report::Report::threads).
    pub threads: Vec<Vec<TreeRow>>,
}

impl Model {
    /// Who has called whom, in one thread (an index into [`Report::threads`](super::report::Report::threads)) or in all
    /// together.
    pub fn call_tree(&self, thread: Option<usize>) -> CallTree {
        let (signatures, which) = self.signatures();
        let mut shape = Shape::new(self, which);
        let rows = match thread {
            None => shape.rows(0..self.node_count()),
            Some(thread) => {
                let threads = self.threads_of_nodes();
                let wanted = (0..).zip(threads).filter(|(_, of)| *of as usize == thread);
                shape.rows(wanted.map(|(node, _)| node))
            }
        };
        CallTree { signatures, rows }
    }

    /// The same for each thread, in the time that one of them takes.
    pub fn call_trees(&self) -> ThreadTrees {
        let (signatures, which) = self.signatures();
        let mut shape = Shape::new(self, which);
        let mut nodes: Vec<(u32, u32)> = self.threads_of_nodes().into_iter().zip(0..).collect();
        nodes.sort_unstable();
        let mut threads = vec![Vec::new(); self.core.calls.threads.len()];
        for of_one in nodes.chunk_by(|(one, _), (other, _)| one == other) {
            let place = of_one.first().and_then(|(thread, _)| threads.get_mut(*thread as usize));
            if let Some(place) = place {
                *place = shape.rows(of_one.iter().map(|(_, node)| *node));
            }
        }
        ThreadTrees { signatures, threads }
    }

    fn node_count(&self) -> u32 {
        u32::try_from(self.core.calls.tree.nodes().len()).unwrap_or(NONE)
    }

    /// The index of the thread that each node is of.
    fn threads_of_nodes(&self) -> Vec<u32> {
        let nodes = self.core.calls.tree.nodes();
        let mut threads: Vec<u32> = Vec::with_capacity(nodes.len());
        for node in nodes {
            // Callers come before callees.
            let caller = threads.get(node.parent as usize).copied();
            threads.push(caller.unwrap_or(node.method));
        }
        threads
    }
}

/// What rows are made with.
struct Shape<'a> {
    model: &'a Model,
    /// The signature of each method.
    which: Vec<usize>,
    /// Calls that are open, by node.
    open: HashMap<u32, u64>,
    /// What calls without an end took, by node.
    so_far: HashMap<u32, SoFar, foldhash::fast::RandomState>,
    /// The row of each node that was looked at; none for roots.
    place: Vec<Option<usize>>,
}

impl<'a> Shape<'a> {
    fn new(model: &'a Model, which: Vec<usize>) -> Self {
        let mut open: HashMap<u32, u64> = HashMap::new();
        let mut so_far = model.core.calls.cut.clone();
        for (node, time) in model.core.calls.open() {
            *open.entry(node).or_default() += 1;
            so_far.entry(node).or_default().add(time);
        }
        Self { model, which, open, so_far, place: vec![None; model.core.calls.tree.nodes().len()] }
    }

    /// The rows of these nodes: whole threads, callers before callees.
    fn rows(&mut self, nodes: impl Iterator<Item = u32>) -> Vec<TreeRow> {
        let mut rows: Vec<TreeRow> = Vec::new();
        let mut children: Vec<Vec<usize>> = Vec::new();
        let mut tops = Vec::new();
        let mut known: HashMap<(usize, usize), usize> = HashMap::new();
        for index in nodes {
            let Some(node) = self.model.core.calls.tree.nodes().get(index as usize) else { break };
            if node.parent == NONE {
                continue;
            }
            let parent = self.place.get(node.parent as usize).copied().flatten();
            let signature = self.which.get(node.method as usize).copied().unwrap_or(0);
            let key = (parent.map_or(0, |parent| parent + 1), signature);
            let row = *known.entry(key).or_insert_with(|| {
                let depth = parent.and_then(|parent| rows.get(parent)).map_or(0, |row| row.depth + 1);
                rows.push(TreeRow {
                    depth,
                    signature,
                    calls: 0,
                    inclusive: 0,
                    own: 0,
                    thrown: 0,
                    cut: 0,
                    open: 0,
                    so_far: 0,
                    own_so_far: 0,
                });
                children.push(Vec::new());
                let row = rows.len() - 1;
                match parent.and_then(|parent| children.get_mut(parent)) {
                    Some(siblings) => siblings.push(row),
                    None => tops.push(row),
                }
                row
            });
            if let Some(place) = self.place.get_mut(index as usize) {
                *place = Some(row);
            }
            if let Some(row) = rows.get_mut(row) {
                row.calls += node.calls;
                row.inclusive = row.inclusive.saturating_add(self.model.nanoseconds(node.inclusive));
                row.own = row.own.saturating_add(self.model.nanoseconds(node.own));
                row.thrown += u64::from(node.thrown);
                row.cut += u64::from(node.cut);
                row.open += self.open.get(&index).copied().unwrap_or(0);
                if let Some(SoFar { total, own }) = self.so_far.get(&index) {
                    row.so_far = row.so_far.saturating_add(self.model.nanoseconds(*total));
                    row.own_so_far = row.own_so_far.saturating_add(self.model.nanoseconds(*own));
                }
            }
        }
        // The longest last: it is taken first.
        let order = |list: &mut Vec<usize>| {
            list.sort_by_key(|row| {
                rows.get(*row).map(|row| (row.total(), row.calls, std::cmp::Reverse(row.signature)))
            });
        };
        let mut ahead = tops;
        order(&mut ahead);
        let mut sorted = Vec::with_capacity(rows.len());
        while let Some(at) = ahead.pop() {
            sorted.extend(rows.get(at).cloned());
            let mut below = children.get_mut(at).map(std::mem::take).unwrap_or_default();
            order(&mut below);
            ahead.append(&mut below);
        }
        sorted
    }
}

/// Adds up what methods took: rows below another row of the same method are in that one already.
pub(super) fn inclusive(tree: &CallTree, methods: &mut [MethodReport]) {
    let mut stack: Vec<usize> = Vec::new();
    let mut active = vec![0u32; methods.len()];
    for row in &tree.rows {
        for left in stack.drain(row.depth.min(stack.len())..) {
            if let Some(active) = active.get_mut(left) {
                *active -= 1;
            }
        }
        stack.push(row.signature);
        let Some(active) = active.get_mut(row.signature) else { continue };
        *active += 1;
        let is_outermost = *active == 1;
        let Some(method) = methods.get_mut(row.signature) else { continue };
        method.own_so_far = method.own_so_far.saturating_add(row.own_so_far);
        if is_outermost {
            method.inclusive = method.inclusive.saturating_add(row.inclusive);
            method.so_far = method.so_far.saturating_add(row.so_far);
        }
    }
}
