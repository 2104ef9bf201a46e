//! Visits the stacks of a trace that have weight, thread by thread, as a tree with sorted branches.
//!
//! Folded stacks and flame graphs need each stack once, stacks with a common caller next to each other, and an order
//! that depends only on names. Memory is needed for the names and a number per stack, but not for the lines. A [`Tree`]
//! can have several weights per stack, for comparing traces.

use crate::{Error, Options, text};
use runtap_model::{
    Branches, FrameHandle, NO_STACK, StackHandle, StackWeights, ThreadHandle, Trace, View, order,
};
use std::io;

/// The names of a trace's frames, made safe for the output.
pub(crate) struct Names {
    names: Vec<String>,
    /// Position of each frame among the sorted names.
    ranks: Vec<u32>,
}

impl Names {
    pub(crate) fn new(trace: &Trace) -> Self {
        let names: Vec<String> =
            trace.all_frames().map(|(_, f)| text::leaf(text::frame(&f.to_string()))).collect();
        Self { ranks: ranks(&names), names }
    }
}

/// A trace prepared for visiting its stacks.
pub(crate) struct Fold<'a> {
    trace: &'a Trace,
    view: View,
    names: Names,
    /// Empty if threads are merged.
    threads: Vec<(String, ThreadHandle)>,
    is_merged: bool,
    total_weight: u64,
}

impl<'a> Fold<'a> {
    /// Prepares the requested view of `trace`.
    pub(crate) fn new(trace: &'a Trace, options: &Options) -> Result<Self, Error> {
        let (view, is_merged) = (options.view, options.merge_threads);
        let total_weight = crate::total_weight(trace, view)?;
        let mut threads = Vec::new();
        if !is_merged {
            threads.extend(trace.threads().map(|(h, t)| (text::plain(&t.label()), h)));
            order::sort(&mut threads);
        }
        Ok(Self { trace, view, names: Names::new(trace), threads, is_merged, total_weight })
    }

    /// Returns the total weight.
    pub(crate) fn total_weight(&self) -> u64 {
        self.total_weight
    }

    /// Returns the names of the frames as used in lines.
    pub(crate) fn names(&self) -> impl Iterator<Item = (FrameHandle, &str)> {
        self.trace.all_frames().zip(&self.names.names).map(|((handle, _), name)| (handle, name.as_str()))
    }

    /// Returns the labels of the threads as used in lines.
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

    /// Calls `line` with each stack (`thread;root;…;leaf`, or `root;…;leaf` if threads are merged) and its self weight,
    /// which is not 0.
    ///
    /// A branch with a weight below `least` is not visited; its weight is added to its parent.
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

/// Returns the position of each name among the sorted names. Equal names share one.
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

/// The stacks whose branches are large enough, with the total weights of the branches.
pub(crate) struct Tree<'a, const N: usize> {
    names: &'a Names,
    /// Sorted by parent, then by name, so that the children of a stack are contiguous.
    nodes: Vec<Node<N>>,
    /// Weights of all samples, and of those without a stack.
    total: [u64; N],
    no_stack: [u64; N],
}

struct Node<const N: usize> {
    parent: Option<StackHandle>,
    stack: StackHandle,
    frame: FrameHandle,
    /// Total weights of the branch.
    branch: [u64; N],
}

impl<'a, const N: usize> Tree<'a, N> {
    /// Creates a tree of the branches that have a weight of at least `least`.
    pub(crate) fn new(trace: &Trace, names: &'a Names, weights: [&StackWeights; N], least: u64) -> Self {
        let stacks = trace.stacks();
        let mut branches: Vec<[u64; N]> =
            stacks.iter().map(|(h, _)| weights.map(|w| w.self_weight(h))).collect();
        // Callees follow their callers, so the reverse order completes each branch before it is added to its parent.
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

    /// Calls `line` with each stack and its self weights. An empty label is omitted.
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
        // The nodes to visit, each with the length of its parent's path.
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

/// The name of small branches at the root.
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
