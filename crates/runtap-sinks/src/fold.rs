//! Folds a trace: walks the stacks that have weight, thread by thread, as a tree with sorted branches.
//!
//! The walk gives what both folded text and flame graphs need: every stack once, stacks with a common caller side
//! by side, in an order that depends on names only. It needs memory for the names and for a number per
//! stack, not for the lines.

use crate::{Error, text};
use runtap_model::{FrameHandle, NO_STACK, StackHandle, StackWeights, ThreadHandle, Trace, View};
use std::io;

/// A trace that is ready to be walked.
pub(crate) struct Fold<'a> {
    trace: &'a Trace,
    view: View,
    /// The name of each frame, safe to write.
    names: Vec<String>,
    /// The place of each frame among the sorted names.
    ranks: Vec<u32>,
    threads: Vec<(String, ThreadHandle)>,
    total_ns: u64,
}

impl<'a> Fold<'a> {
    /// Prepares `view` of `trace`.
    pub(crate) fn new(trace: &'a Trace, view: View) -> Result<Self, Error> {
        let total_ns = crate::total_ns(trace, view)?;
        let names: Vec<String> =
            trace.all_frames().map(|(_, f)| text::leaf(text::frame(&f.to_string()))).collect();
        let mut threads: Vec<_> = trace.threads().map(|(h, t)| (text::plain(&t.label()), h)).collect();
        threads.sort();
        Ok(Self { trace, view, ranks: ranks(&names), names, threads, total_ns })
    }

    /// The sum of the weights.
    pub(crate) fn total_ns(&self) -> u64 {
        self.total_ns
    }

    /// Each frame's name as it is in the lines.
    pub(crate) fn names(&self) -> impl Iterator<Item = (FrameHandle, &str)> {
        self.trace.all_frames().zip(&self.names).map(|((handle, _), name)| (handle, name.as_str()))
    }

    /// The labels of the threads as they are in the lines.
    pub(crate) fn labels(&self) -> impl Iterator<Item = &str> {
        self.threads.iter().map(|(label, _)| label.as_str())
    }

    /// Changes the labels of the threads.
    pub(crate) fn with_labels(mut self, change: impl Fn(String) -> String) -> Self {
        for (label, _) in &mut self.threads {
            *label = change(std::mem::take(label));
        }
        self
    }

    /// Calls `line` with each stack (`thread;root;…;leaf`) and its own nanoseconds, which are never 0.
    ///
    /// A branch of less than `least_ns` is not walked: its weight is given to the stack that it grows from.
    pub(crate) fn walk(
        &self,
        least_ns: u64,
        mut line: impl FnMut(&str, u64) -> io::Result<()>,
    ) -> io::Result<()> {
        for (label, thread) in &self.threads {
            let weights = StackWeights::new(self.trace, self.view, Some(*thread));
            let tree = Tree::new(self, &weights, least_ns);
            let roots = tree.children(None);
            let own_ns = weights.total_ns() - weights.no_stack_ns() - sum_ns(roots);
            if own_ns > 0 {
                line(label, own_ns)?;
            }
            let mut path = label.clone();
            // What is still to be walked, with the length of the path that it stands on.
            let mut ahead: Vec<(&Node, usize)> = roots.iter().rev().map(|n| (n, label.len())).collect();
            while let Some((node, len)) = ahead.pop() {
                path.truncate(len);
                path.push(';');
                path.push_str(&self.names[node.frame.index()]);
                let children = tree.children(Some(node.stack));
                let own_ns = node.ns - sum_ns(children);
                if own_ns > 0 {
                    line(&path, own_ns)?;
                }
                ahead.extend(children.iter().rev().map(|n| (n, path.len())));
            }
            if weights.no_stack_ns() > 0 {
                path.truncate(label.len());
                path.push(';');
                path.push_str(NO_STACK);
                line(&path, weights.no_stack_ns())?;
            }
        }
        Ok(())
    }
}

fn sum_ns(nodes: &[Node]) -> u64 {
    nodes.iter().map(|n| n.ns).sum()
}

/// The place of each name among the sorted names; equal names share one.
fn ranks(names: &[String]) -> Vec<u32> {
    let mut sorted: Vec<(&str, usize)> = names.iter().map(String::as_str).zip(0..).collect();
    sorted.sort_unstable();
    let mut ranks = vec![0; names.len()];
    let (mut rank, mut last) = (0, None);
    for (name, index) in sorted {
        if last.is_some_and(|last| last != name) {
            rank += 1;
        }
        last = Some(name);
        ranks[index] = rank;
    }
    ranks
}

/// The stacks of one thread that are wide enough, each with the weight of its whole branch.
struct Tree {
    /// Sorted by parent, then by name, so that the children of a stack are one slice.
    nodes: Vec<Node>,
}

struct Node {
    parent: Option<StackHandle>,
    stack: StackHandle,
    frame: FrameHandle,
    /// Nanoseconds of the branch: of this stack and of all that grow from it.
    ns: u64,
}

impl Tree {
    fn new(fold: &Fold<'_>, weights: &StackWeights, least_ns: u64) -> Self {
        let stacks = fold.trace.stacks();
        let mut branch_ns: Vec<u64> = stacks.iter().map(|(h, _)| weights.self_ns(h)).collect();
        // Callees come after their callers, so the reverse pass meets each branch when it is complete.
        for (handle, stack) in stacks.iter().rev() {
            if let Some(parent) = stack.parent {
                branch_ns[parent.index()] += branch_ns[handle.index()];
            }
        }
        let mut nodes: Vec<Node> = stacks
            .iter()
            .map(|(stack, s)| Node { parent: s.parent, stack, frame: s.frame, ns: branch_ns[stack.index()] })
            .filter(|node| node.ns >= least_ns.max(1))
            .collect();
        nodes.sort_unstable_by_key(|n| (n.parent, fold.ranks[n.frame.index()], n.stack));
        Self { nodes }
    }

    fn children(&self, parent: Option<StackHandle>) -> &[Node] {
        let start = self.nodes.partition_point(|n| n.parent < parent);
        let len = self.nodes[start..].partition_point(|n| n.parent == parent);
        &self.nodes[start..start + len]
    }
}
