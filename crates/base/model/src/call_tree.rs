//! The calls of one method, or those to it, as a tree with weights.

use std::collections::HashMap;

use crate::frames::FrameHandle;
use crate::order;
use crate::samples::ThreadHandle;
use crate::totals::StackWeights;
use crate::trace::Trace;
use crate::view::View;

/// The direction of a call tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TreeDirection {
    /// What a method calls.
    Callees,
    /// What calls a method.
    Callers,
}

/// A node of a call tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TreeNode {
    /// The method.
    pub frame: FrameHandle,
    /// The distance to the root, which has depth 0.
    pub depth: usize,
    /// The weight of the samples that end in the node: in a tree of callees, the time spent in the method itself.
    pub own: u64,
    /// The weight of the node and everything below it.
    pub total: u64,
}

/// The maximum number of nodes of a tree. Samples beyond it count for their callers.
const MAX_NODES: usize = 100_000;

/// A node while the tree is built, with the indices of its children.
struct Building {
    node: TreeNode,
    children: Vec<usize>,
}

/// Returns the tree of the frames for which `is_root` is true, which are one node, in one thread or all threads: each node before
/// its children, which are sorted by weight. Empty without samples of such frames. Of recursive calls, callees are those of the
/// outermost call, callers those of the innermost.
pub fn call_tree(
    trace: &Trace,
    view: View,
    thread: Option<ThreadHandle>,
    direction: TreeDirection,
    is_root: impl Fn(FrameHandle) -> bool,
) -> Vec<TreeNode> {
    let weights = StackWeights::new(trace, view, thread);
    let mut nodes: Vec<Building> = Vec::new();
    let mut index: HashMap<(usize, FrameHandle), usize> = HashMap::new();
    for (stack, _) in trace.stacks().iter() {
        let weight = weights.self_weight(stack);
        if weight == 0 {
            continue;
        }
        let frames: Vec<FrameHandle> = trace.stacks().frames(stack).collect();
        let path: Vec<FrameHandle> = match direction {
            TreeDirection::Callees => match frames.iter().rposition(|frame| is_root(*frame)) {
                Some(outermost) => frames[..=outermost].iter().rev().copied().collect(),
                None => continue,
            },
            TreeDirection::Callers => match frames.iter().position(|frame| is_root(*frame)) {
                Some(innermost) => frames[innermost..].to_vec(),
                None => continue,
            },
        };
        let mut parent = None;
        for (depth, frame) in path.into_iter().enumerate() {
            // All roots are one node.
            let known = match parent {
                None => (!nodes.is_empty()).then_some(0),
                Some(parent) => index.get(&(parent, frame)).copied(),
            };
            let place = match known {
                Some(place) => place,
                None if nodes.len() >= MAX_NODES => break,
                None => {
                    let node = TreeNode { frame, depth, own: 0, total: 0 };
                    nodes.push(Building { node, children: Vec::new() });
                    let place = nodes.len() - 1;
                    if let Some(parent) = parent {
                        index.insert((parent, frame), place);
                        nodes[parent].children.push(place);
                    }
                    place
                }
            };
            nodes[place].node.total = nodes[place].node.total.saturating_add(weight);
            parent = Some(place);
        }
        if let Some(last) = parent {
            nodes[last].node.own = nodes[last].node.own.saturating_add(weight);
        }
    }
    in_order(&nodes)
}

/// Returns each node before its children, the heaviest child first.
fn in_order(nodes: &[Building]) -> Vec<TreeNode> {
    let mut ordered = Vec::with_capacity(nodes.len());
    let mut next: Vec<usize> = if nodes.is_empty() { Vec::new() } else { vec![0] };
    while let Some(place) = next.pop() {
        let Building { node, children } = &nodes[place];
        ordered.push(*node);
        let mut children = children.clone();
        order::sort_by_key(&mut children, |child| (nodes[*child].node.total, std::cmp::Reverse(*child)));
        next.extend(children);
    }
    ordered
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{SampleKind, TraceBuilder};

    /// Returns a trace with stacks written from the root, such as `abc`, and their weights.
    fn trace(stacks: &[(&str, u64)]) -> Trace {
        let mut builder = TraceBuilder::new();
        let thread = builder.thread(1);
        for (names, weight) in stacks {
            let frames: Vec<_> = names.chars().map(|name| builder.frame(None, &name.to_string())).collect();
            let stack = builder.stack_of(frames);
            builder.add_weighted(thread, 0, *weight, SampleKind::MANAGED, stack);
        }
        builder.finish()
    }

    fn shown(trace: &Trace, direction: TreeDirection, root: &str) -> Vec<String> {
        let nodes = call_tree(trace, View::Cpu, None, direction, |frame| trace.frame(frame).name == root);
        let line = |node: &TreeNode| {
            format!(
                "{:depth$}{} {}/{}",
                "",
                trace.frame(node.frame).name,
                node.own,
                node.total,
                depth = node.depth
            )
        };
        nodes.iter().map(line).collect()
    }

    #[test]
    fn callees_and_callers_have_their_weights() {
        let trace = trace(&[("abc", 4), ("abf", 9), ("ab", 1), ("xb", 2), ("ae", 5)]);
        let callees = shown(&trace, TreeDirection::Callees, "b");
        assert_eq!(callees, ["b 3/16", " f 9/9", " c 4/4"]);
        assert_eq!(shown(&trace, TreeDirection::Callers, "b"), ["b 0/16", " a 14/14", " x 2/2"]);
        assert_eq!(
            shown(&trace, TreeDirection::Callees, "a"),
            ["a 0/19", " b 1/14", "  f 9/9", "  c 4/4", " e 5/5"]
        );
        assert!(shown(&trace, TreeDirection::Callees, "z").is_empty());
    }

    #[test]
    fn recursive_calls_count_once() {
        let trace = trace(&[("abab", 3), ("ab", 1)]);
        assert_eq!(shown(&trace, TreeDirection::Callees, "b"), ["b 1/4", " a 0/3", "  b 3/3"]);
        assert_eq!(shown(&trace, TreeDirection::Callers, "b"), ["b 0/4", " a 1/4", "  b 0/3", "   a 3/3"]);
    }
}
