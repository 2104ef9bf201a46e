//! Folds a trace: walks the stacks that have weight, thread by thread, as a tree with sorted branches.
//!
//! The walk gives what both folded text and flame graphs need: every stack once, stacks with a common caller side
//! by side, in an order that depends on names only. It needs memory for the names and for a number per
//! stack, not for the lines. A [`Tree`] may have several weights for each stack, as two traces that are compared do.

use crate::{Error, Options, text};
use runtap_model::{Branches, FrameHandle, NO_STACK, StackHandle, StackWeights, ThreadHandle, Trace, View};
use std::io;

/// The names of a trace's frames, safe to write.
pub(crate) struct Names {
    names: Vec<String>,
    /// The place of each frame among the sorted names.
    ranks: Vec<u32>,
}

impl Names {
    pub(crate) fn new(trace: &Trace) -> Self {
        let names: Vec<String> =
            trace.all_frames().map(|(_, f)| text::leaf(text::frame(&f.to_string()))).collect();
        Self { ranks: ranks(&names), names }
    }
}

/// A trace that is ready to be walked.
pub(crate) struct Fold<'a> {
    trace: &'a Trace,
    view: View,
    names: Names,
    /// None where they are merged.
    threads: Vec<(String, ThreadHandle)>,
    is_merged: bool,
    total_weight: u64,
}

impl<'a> Fold<'a> {
    /// Prepares the view of `trace` that is asked for.
    pub(crate) fn new(trace: &'a Trace, options: &Options) -> Result<Self, Error> {
        let (view, is_merged) = (options.view, options.merge_threads);
        let total_weight = crate::total_weight(trace, view)?;
        let mut threads = Vec::new();
        if !is_merged {
            threads.extend(trace.threads().map(|(h, t)| (text::plain(&t.label()), h)));
            threads.sort();
        }
        Ok(Self { trace, view, names: Names::new(trace), threads, is_merged, total_weight })
    }

    /// The sum of the weights.
    pub(crate) fn total_weight(&self) -> u64 {
        self.total_weight
    }

    /// Each frame's name as it is in the lines.
    pub(crate) fn names(&self) -> impl Iterator<Item = (FrameHandle, &str)> {
        self.trace.all_frames().zip(&self.names.names).map(|((handle, _), name)| (handle, name.as_str()))
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

    /// Calls `line` with each stack (`thread;root;…;leaf`, or `root;…;leaf` of all threads) and its own weight, which is
    /// never 0.
    ///
    /// A branch of less than `least` is not walked: its weight is given to the stack that it grows from.
    pub(crate) fn walk(
        &self,
        least: u64,
        mut line: impl FnMut(&str, u64) -> io::Result<()>,
    ) -> io::Result<()> {
        if self.is_merged {
            let weights = StackWeights::new(self.trace, self.view, None);
            let tree = Tree::new(self.trace, &self.names, [&weights], least);
            return tree.walk("", |path, [own]| line(path, own));
        }
        let mut branches = Branches::new(self.trace.stacks());
        for (label, thread) in &self.threads {
            let tree = self.tree_of(&mut branches, *thread, least);
            tree.walk(label, |path, [own]| line(path, own))?;
        }
        Ok(())
    }

    fn tree_of(&self, branches: &mut Branches, thread: ThreadHandle, least: u64) -> Tree<'_, 1> {
        let stacks = self.trace.stacks();
        let found = branches.of(stacks, self.trace.thread(thread), self.view);
        let node = |(handle, branch): &(StackHandle, u64)| {
            let stack = stacks.get(*handle);
            Node { parent: stack.parent, stack: *handle, frame: stack.frame, branch: [*branch] }
        };
        let wide = found.branches.iter().filter(|(_, branch)| *branch >= least.max(1));
        Tree::of_nodes(&self.names, wide.map(node).collect(), [found.total], [found.no_stack])
    }
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

/// The stacks that are wide enough, each with the weights of its whole branch.
pub(crate) struct Tree<'a, const N: usize> {
    names: &'a Names,
    /// Sorted by parent, then by name, so that the children of a stack are one slice.
    nodes: Vec<Node<N>>,
    /// The weights of everything, and of what has no stack.
    total: [u64; N],
    no_stack: [u64; N],
}

struct Node<const N: usize> {
    parent: Option<StackHandle>,
    stack: StackHandle,
    frame: FrameHandle,
    /// Weights of the branch: of this stack and of all that grow from it.
    branch: [u64; N],
}

impl<'a, const N: usize> Tree<'a, N> {
    /// The branches of which one of the weights is `least` or more.
    pub(crate) fn new(trace: &Trace, names: &'a Names, weights: [&StackWeights; N], least: u64) -> Self {
        let stacks = trace.stacks();
        let mut branches: Vec<[u64; N]> =
            stacks.iter().map(|(h, _)| weights.map(|w| w.self_weight(h))).collect();
        // Callees come after their callers, so the reverse pass meets each branch when it is complete.
        for (handle, stack) in stacks.iter().rev() {
            if let Some(parent) = stack.parent {
                let own = branches[handle.index()];
                add(&mut branches[parent.index()], own);
            }
        }
        let nodes = stacks
            .iter()
            .map(|(stack, s)| Node {
                parent: s.parent,
                stack,
                frame: s.frame,
                branch: branches[stack.index()],
            })
            .filter(|node| node.branch.iter().any(|weight| *weight >= least.max(1)))
            .collect();
        Self::of_nodes(
            names,
            nodes,
            weights.map(StackWeights::total_weight),
            weights.map(StackWeights::no_stack_weight),
        )
    }

    fn of_nodes(names: &'a Names, mut nodes: Vec<Node<N>>, total: [u64; N], no_stack: [u64; N]) -> Self {
        nodes.sort_unstable_by_key(|n| (n.parent, names.ranks[n.frame.index()], n.stack));
        Self { names, nodes, total, no_stack }
    }

    /// Calls `line` with each stack and the weights that are its own. An empty label is left out.
    pub(crate) fn walk(
        &self,
        label: &str,
        mut line: impl FnMut(&str, [u64; N]) -> io::Result<()>,
    ) -> io::Result<()> {
        let some = |weights: &[u64; N]| weights.iter().any(|weight| *weight > 0);
        let roots = self.children(None);
        let own = without(without(self.total, self.no_stack), sum(roots));
        if some(&own) {
            line(if label.is_empty() { TOO_NARROW } else { label }, own)?;
        }
        let mut path = label.to_owned();
        // What is still to be walked, with the length of the path that it stands on.
        let mut ahead: Vec<(&Node<N>, usize)> = roots.iter().rev().map(|n| (n, label.len())).collect();
        while let Some((node, len)) = ahead.pop() {
            path.truncate(len);
            push(&mut path, &self.names.names[node.frame.index()]);
            let children = self.children(Some(node.stack));
            let own = without(node.branch, sum(children));
            if some(&own) {
                line(&path, own)?;
            }
            ahead.extend(children.iter().rev().map(|n| (n, path.len())));
        }
        if some(&self.no_stack) {
            path.truncate(label.len());
            push(&mut path, NO_STACK);
            line(&path, self.no_stack)?;
        }
        Ok(())
    }

    fn children(&self, parent: Option<StackHandle>) -> &[Node<N>] {
        let start = self.nodes.partition_point(|n| n.parent < parent);
        let len = self.nodes[start..].partition_point(|n| n.parent == parent);
        &self.nodes[start..start + len]
    }
}

/// What is left of narrow branches that grow from nothing.
const TOO_NARROW: &str = "[other]";

fn push(path: &mut String, name: &str) {
    if !path.is_empty() {
        path.push(';');
    }
    path.push_str(name);
}

fn add<const N: usize>(to: &mut [u64; N], weights: [u64; N]) {
    for (sum, weight) in to.iter_mut().zip(weights) {
        *sum += weight;
    }
}

fn without<const N: usize>(from: [u64; N], weights: [u64; N]) -> [u64; N] {
    let mut rest = from;
    for (rest, weight) in rest.iter_mut().zip(weights) {
        *rest -= weight;
    }
    rest
}

fn sum<const N: usize>(nodes: &[Node<N>]) -> [u64; N] {
    let mut sum = [0; N];
    for node in nodes {
        add(&mut sum, node.branch);
    }
    sum
}
