//! Call trees of all threads or of one, with signatures in place of method IDs.
//!
//! Contains [`CallTree`], the trees of single threads, and the inclusive times of methods.

use hashbrown::HashMap;
use runtap_model::order;

use super::Model;
use super::calls::Elapsed;
use super::report::MethodReport;
use super::tree::{NONE, Node};

/// A row of a call tree: the calls of a method by one caller.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TreeRow {
    /// The depth in the tree; 0 for calls without a traced caller.
    pub depth: usize,
    /// An index into [`CallTree::signatures`].
    pub signature: usize,
    /// The number of calls that have begun.
    pub calls: u64,
    /// The time in calls that have ended, including callees, in nanoseconds.
    pub inclusive: u64,
    /// The time in calls that have ended, without callees, in nanoseconds.
    pub own: u64,
    /// The number of calls that ended with an exception.
    pub thrown: u64,
    /// The number of calls whose end was not seen. Their duration is unknown.
    pub cut: u64,
    /// The number of calls that have not ended yet.
    pub open: u64,
    /// The time in calls without an end, including callees, in nanoseconds: up to the last event for open calls,
    /// and until their end was missed for others. It is not part of `inclusive`.
    pub so_far: u64,
    /// The time in calls without an end, without callees, in nanoseconds.
    pub own_so_far: u64,
}

impl TreeRow {
    /// Returns whether the end of any of the calls was seen.
    pub fn is_timed(&self) -> bool {
        self.calls > self.cut.saturating_add(self.open)
    }

    /// Returns the minimum time of all calls including callees, in nanoseconds.
    pub fn total(&self) -> u64 {
        self.inclusive.saturating_add(self.so_far)
    }
}

/// A call tree. Each row follows its caller; siblings are sorted by time, longest first.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CallTree {
    /// The signatures, sorted.
    pub signatures: Vec<String>,
    /// The rows, in depth-first order.
    pub rows: Vec<TreeRow>,
}

impl Model {
    /// Returns the call tree of one thread (an index into [`Report::threads`](super::report::Report::threads)) or
    /// of all threads together.
    pub fn call_tree(&self, thread: Option<usize>) -> CallTree {
        let (signatures, which) = self.signatures();
        let mut shape = TreeBuilder::new(self, which);
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

    /// Passes the call tree of each thread that has made calls to `take`, one at a time: the index of the thread,
    /// all signatures, and the rows. This takes the time of a single [`call_tree`](Self::call_tree); all trees
    /// together can be larger than the trace itself.
    pub fn each_call_tree(&self, mut take: impl FnMut(usize, &[String], &[TreeRow])) {
        let (signatures, which) = self.signatures();
        let mut shape = TreeBuilder::new(self, which);
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

    /// Returns the nodes sorted by thread, callers before callees, and the end of each thread's nodes.
    fn nodes_by_thread(&self) -> (Vec<u32>, Vec<usize>) {
        let threads = self.threads_of_nodes();
        let mut ends = vec![0; self.state.calls.threads.len()];
        for thread in &threads {
            if let Some(count) = ends.get_mut(*thread as usize) {
                *count += 1;
            }
        }
        let mut sum = 0;
        for end in &mut ends {
            (*end, sum) = (sum, sum + *end);
        }
        // `ends` has the start of each thread now, which advances to its end.
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

    /// Returns the total time of the outermost calls of each thread, in nanoseconds, in the order of
    /// [`Report::threads`](super::report::Report::threads). Calls without an end count as far as they were seen.
    pub fn thread_totals(&self) -> Vec<u64> {
        let calls = &self.state.calls;
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
        u32::try_from(self.state.calls.tree.nodes().len()).unwrap_or(NONE)
    }

    /// Returns the index of each node's thread.
    fn threads_of_nodes(&self) -> Vec<u32> {
        let nodes = self.state.calls.tree.nodes();
        let mut threads: Vec<u32> = Vec::with_capacity(nodes.len());
        for node in nodes {
            // Callers come before callees.
            let caller = threads.get(node.parent as usize).copied();
            threads.push(caller.unwrap_or(node.method));
        }
        threads
    }
}

/// A builder of rows.
struct TreeBuilder<'a> {
    model: &'a Model,
    /// The signature of each method, an index into the sorted signatures.
    which: Vec<usize>,
    /// The number of open calls, by node.
    open: HashMap<u32, u64>,
    /// The time in calls without an end, by node.
    so_far: HashMap<u32, Elapsed, foldhash::fast::RandomState>,
    /// The row of each node; `NONE` for roots and nodes that were not visited.
    row_of_node: Vec<u32>,
}

impl<'a> TreeBuilder<'a> {
    fn new(model: &'a Model, which: Vec<usize>) -> Self {
        let mut open: HashMap<u32, u64> = HashMap::new();
        let mut so_far = model.state.calls.cut.clone();
        for (node, time) in model.state.calls.open() {
            *open.entry(node).or_default() += 1;
            so_far.entry(node).or_default().add(time);
        }
        Self { model, which, open, so_far, row_of_node: vec![NONE; model.state.calls.tree.nodes().len()] }
    }

    /// Returns the rows of these nodes: complete threads, callers before callees.
    fn rows(&mut self, nodes: impl Iterator<Item = u32>) -> Vec<TreeRow> {
        let mut rows: Vec<TreeRow> = Vec::new();
        let mut children: Vec<Vec<usize>> = Vec::new();
        let mut tops = Vec::new();
        let mut known: HashMap<(usize, usize), usize> = HashMap::new();
        for index in nodes {
            let Some(node) = self.model.state.calls.tree.nodes().get(index as usize) else { break };
            if node.parent == NONE {
                continue;
            }
            let parent = self.row_of_node.get(node.parent as usize).copied().filter(|row| *row != NONE);
            let parent = parent.map(|row| row as usize);
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
            if let Some(of_node) = self.row_of_node.get_mut(index as usize) {
                // There are at most as many rows as nodes.
                *of_node = u32::try_from(row).unwrap_or(NONE);
            }
            if let Some(row) = rows.get_mut(row) {
                row.calls += node.calls;
                row.inclusive = row.inclusive.saturating_add(self.model.nanoseconds(node.inclusive));
                row.own = row.own.saturating_add(self.model.nanoseconds(node.own));
                row.thrown += u64::from(node.thrown);
                row.cut += u64::from(node.cut);
                row.open += self.open.get(&index).copied().unwrap_or(0);
                if let Some(Elapsed { total, own }) = self.so_far.get(&index) {
                    row.so_far = row.so_far.saturating_add(self.model.nanoseconds(*total));
                    row.own_so_far = row.own_so_far.saturating_add(self.model.nanoseconds(*own));
                }
            }
        }
        // The longest is last, because the stack is popped from its end.
        let order = |list: &mut Vec<usize>| {
            order::sort_by_key(list, |row| {
                rows.get(*row).map(|row| (row.total(), row.calls, std::cmp::Reverse(row.signature)))
            });
        };
        let mut pending = tops;
        order(&mut pending);
        let mut sorted = Vec::with_capacity(rows.len());
        while let Some(at) = pending.pop() {
            sorted.extend(rows.get(at).cloned());
            let mut below = children.get_mut(at).map(std::mem::take).unwrap_or_default();
            order(&mut below);
            pending.append(&mut below);
        }
        sorted
    }
}

/// Adds up the inclusive times of methods, without rows below another row of the same method, which already
/// includes them.
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
