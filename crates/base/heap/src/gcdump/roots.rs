//! From the nodes of a file to a graph: nodes in brackets become roots.

use std::sync::Arc;

use crate::dense::at;
use crate::gcdump::nodes::Nodes;
use crate::{Graph, GraphBuilder, RootKind};

/// Returns the kind of the roots below a node with this name. `None` if the name is no kind.
fn kind_of(name: &str) -> Option<RootKind> {
    let name = name.to_ascii_lowercase();
    let is = |part: &str| name.contains(part);
    Some(if is("thread static var") {
        RootKind::ThreadStaticField
    } else if is("static var") {
        RootKind::StaticField
    } else if is("local var") || is("stack") {
        RootKind::Stack
    } else if is("finalizer") {
        RootKind::Finalizer
    } else if is("pinn") {
        RootKind::PinnedHandle
    } else if is("refcount") {
        RootKind::CountedHandle
    } else if is("com/winrt") || is("ccw") {
        RootKind::ComCallable
    } else if is("rcw") {
        RootKind::ComWrapper
    } else if is("handle") {
        RootKind::Handle
    } else {
        return None;
    })
}

/// Returns the name of the static field from that of its node, such as `[static var Cache.All]`. `None` if the node stands for
/// a kind.
fn field_of(name: &str) -> Option<&str> {
    let (_, field) = name.strip_suffix(']')?.split_once("static var ")?;
    Some(field)
}

/// What the name of a type in brackets states about the roots below its nodes.
#[derive(Debug, Clone, Copy, Default)]
struct Label {
    kind: Option<RootKind>,
    /// The index of the name of a static field.
    name: Option<u32>,
}

impl Label {
    fn new(type_name: &str, builder: &mut GraphBuilder) -> Self {
        if !type_name.starts_with('[') {
            return Self::default();
        }
        let name = field_of(type_name).map(|field| builder.add_root_name(field.to_owned()));
        Self { kind: kind_of(type_name), name }
    }
}

/// Removes the magnitude of the size from the name of a type.
fn without_magnitude(name: &str) -> &str {
    name.strip_suffix(')').and_then(|name| name.rsplit_once(" (Bytes > ")).map_or(name, |(name, _)| name)
}

/// Builds the graph. `builder` states what is missing.
pub(super) fn build(nodes: &Nodes<'_>, root: u32, mut builder: GraphBuilder) -> Graph {
    // A node in brackets has no size: an array of an unnamed type may have the same name.
    let stands_for_roots: Vec<bool> = nodes.types.iter().map(|it| it.name.starts_with('[')).collect();
    let is_object = |number: u32| {
        nodes.node(number).is_some_and(|node| node.bytes > 0 || !at(&stands_for_roots, node.type_index))
    };
    let types: Vec<u32> = nodes
        .types
        .iter()
        .map(|it| builder.add_type(without_magnitude(&it.name), it.module.as_deref().map(Arc::from)))
        .collect();
    let mut addresses = Vec::new();
    for number in (0..nodes.count()).filter(|number| is_object(*number)) {
        let Some(node) = nodes.node(number) else { continue };
        addresses.push(nodes.address(number).unwrap_or_default());
        builder.object(number.into(), at(&types, node.type_index), node.bytes);
        // Roots are not part of an object.
        node.references().for_each(|target| builder.reference(target.into()));
    }
    // Any number of nodes and references share a type: its name is read and stored once.
    let labels: Vec<Label> = nodes.types.iter().map(|it| Label::new(&it.name, &mut builder)).collect();
    let mut seen = vec![false; nodes.count() as usize];
    let mut open = vec![(root, RootKind::Unknown, None)];
    while let Some((number, kind, name)) = open.pop() {
        if is_object(number) {
            builder.named_root(number.into(), kind, name);
            continue;
        }
        let Some(seen) = seen.get_mut(number as usize).filter(|seen| !**seen) else { continue };
        *seen = true;
        let Some(node) = nodes.node(number) else { continue };
        let label = at(&labels, node.type_index);
        let (kind, name) = (label.kind.unwrap_or(kind), label.name.or(name));
        open.extend(node.references().map(|target| (target, kind, name)));
    }
    let mut graph = builder.finish();
    graph.addresses = addresses;
    graph
}
