//! Who has called whom, for people: nodes of all threads, or of one, with signatures in the place of ids.
//!
//! Owns: [`CallTree`], those of single threads, and what methods took with their callees.

use hashbrown::HashMap;

use super::Model;
use super::calls::SoFar;
use super::report::MethodReport;
use super::tree::{NONE, Node};

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

    /// The same for each thread that has called anything, in the time that one of them takes, and one at a time: its index, the
    /// signatures of all, and its rows. All of them together can be more than the trace itself.
    pub fn each_call_tree(&self, mut take: impl FnMut(usize, &[String], &[TreeRow])) {
        let (signatures, which) = self.signatures();
        let mut shape = Shape::new(self, which);
        let (order, ends) = self.nodes_by_thread();
        let mut start = 0;
        for (thread, end) in ends.into_iter().enumerate() {
            let rows = shape.rows(order.get(start..end).unwrap_or_default().iter().copied());
            start = end;
            if !rows.is_empty() {
                take(thread, &signatures, &rows);
            }
        }
    }

    /// The nodes of one thread after the other, callers before callees, and where those of each thread end.
    fn nodes_by_thread(&self) -> (Vec<u32>, Vec<usize>) {
        let threads = self.threads_of_nodes();
        let mut ends = vec![0; self.core.calls.threads.len()];
        for thread in &threads {
            if let Some(count) = ends.get_mut(*thread as usize) {
                *count += 1;
            }
        }
        let mut sum = 0;
        for end in &mut ends {
            (*end, sum) = (sum, sum + *end);
        }
        // They are where each thread begins, and move to its end.
        let mut order = vec![NONE; sum];
        for (node, thread) in (0..).zip(threads) {
            let Some(end) = ends.get_mut(thread as usize) else { continue };
            if let Some(place) = order.get_mut(*end) {
                *place = node;
            }
            *end += 1;
        }
        (order, ends)
    }

    /// What the outermost calls of each thread took, in nanoseconds; of those without an end, as far as it was seen. In the order
    /// of [`Report::threads`](super::report::Report::threads).
    pub fn thread_totals(&self) -> Vec<u64> {
        let calls = &self.core.calls;
        let nodes = calls.tree.nodes();
        let mut totals = vec![0u64; calls.threads.len()];
        let mut add = |node: &Node, time: u64| {
            let root = nodes.get(node.parent as usize).filter(|root| root.parent == NONE);
            if let Some(total) = root.and_then(|root| totals.get_mut(root.method as usize)) {
                *total = total.saturating_add(self.nanoseconds(time));
            }
        };
        for node in nodes {
            add(node, node.inclusive);
        }
        for (node, so_far) in calls.cut.iter().map(|(node, so_far)| (*node, *so_far)).chain(calls.open()) {
            if let Some(node) = nodes.get(node as usize) {
                add(node, so_far.total);
            }
        }
        totals
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
    /// The row of each node that was looked at; `NONE` for roots.
    place: Vec<u32>,
}

impl<'a> Shape<'a> {
    fn new(model: &'a Model, which: Vec<usize>) -> Self {
        let mut open: HashMap<u32, u64> = HashMap::new();
        let mut so_far = model.core.calls.cut.clone();
        for (node, time) in model.core.calls.open() {
            *open.entry(node).or_default() += 1;
            so_far.entry(node).or_default().add(time);
        }
        Self { model, which, open, so_far, place: vec![NONE; model.core.calls.tree.nodes().len()] }
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
            let parent = self.place.get(node.parent as usize).copied().filter(|place| *place != NONE);
            let parent = parent.map(|place| place as usize);
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
                // There are as many rows as nodes at most.
                *place = u32::try_from(row).unwrap_or(NONE);
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
