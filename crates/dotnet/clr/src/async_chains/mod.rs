//! Async methods that wait, as chains, from the objects in the heap of a program.
//!
//! A method that waits has no stack: its state is in an object (its *box*), which the awaited task continues. The chains are complete
//! whenever the methods began to wait. Boxes of completed methods contain no state and are left out.

mod links;
mod roles;

use runtap_heap::{Graph, TypeId};
use runtap_model::order;
use runtap_model::thread_dump::{AsyncChain, AsyncChains, AsyncFrame, Awaited, AwaitedKind};

use self::links::{Links, Map, NodeId};
use crate::heap::ArgumentModules;

/// The maximum number of distinct chains.
const MAX_CHAINS: usize = 100_000;
/// The maximum number of frames of all distinct chains.
const MAX_FRAMES: usize = 2_000_000;

/// The position of a [`Link`] among the interned ones.
type LinkId = u32;

/// What continues when a frame's method has completed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Outer {
    /// The method that awaits it.
    Frame(LinkId),
    /// A thread that is blocked.
    Thread,
    /// Nothing, or something unknown.
    Nothing,
}

/// A frame with what it continues. Equal chains have equal links.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Link {
    frame: TypeId,
    outer: Outer,
}

/// What the innermost method of a chain awaits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Leaf {
    kind: AwaitedKind,
    of_type: Option<TypeId>,
}

/// Returns the chains of async methods that wait. `modules` has the modules of state machines.
pub fn async_chains(graph: &Graph, modules: &ArgumentModules) -> AsyncChains {
    let links = Links::new(graph);
    let mut chains = Chains {
        graph,
        modules,
        links: &links,
        table: Vec::new(),
        by_link: Map::default(),
        depths: Vec::new(),
        frames: Map::default(),
    };
    let (of_nodes, cycles) = chains.intern();
    let mut leaves: Vec<(NodeId, Leaf)> = Vec::new();
    for (id, node) in (0..).zip(&links.nodes) {
        let is_waiting = at(&links.is_waiting, id);
        let is_awaited = links.next.get(id as usize).is_some_and(Option::is_some);
        if !is_waiting && (node.is_box || is_awaited) {
            let leaf = match links.awaited(id) {
                Some((kind, object)) => Leaf { kind, of_type: Some(graph.type_of(object)) },
                None => Leaf { kind: AwaitedKind::Unknown, of_type: None },
            };
            leaves.push((id, leaf));
        }
    }
    for (by, awaited) in &links.forks {
        let of_type = chains.frame_type(*awaited);
        leaves.push((*by, Leaf { kind: AwaitedKind::Method, of_type: Some(of_type) }));
    }
    leaves.extend(cycles.iter().map(|id| (*id, Leaf { kind: AwaitedKind::Cycle, of_type: None })));
    let methods = links.nodes.iter().filter(|node| node.is_box).count();
    AsyncChains { methods: methods as u64, ..chains.count(&of_nodes, &leaves) }
}

fn at<T: Copy + Default>(list: &[T], index: u32) -> T {
    list.get(index as usize).copied().unwrap_or_default()
}

/// The chains of a heap, each of which is stored once.
struct Chains<'a> {
    graph: &'a Graph,
    modules: &'a ArgumentModules,
    links: &'a Links<'a>,
    table: Vec<Link>,
    by_link: Map<Link, LinkId>,
    /// The number of frames of each chain.
    depths: Vec<usize>,
    frames: Map<TypeId, AsyncFrame>,
}

impl Chains<'_> {
    fn frame_type(&self, node: NodeId) -> TypeId {
        self.links.nodes.get(node as usize).map_or(TypeId::MAX, |node| self.graph.type_of(node.object))
    }

    /// Returns the link of each node, and the nodes at which cycles were opened.
    fn intern(&mut self) -> (Vec<Option<LinkId>>, Vec<NodeId>) {
        let mut of_nodes: Vec<Option<LinkId>> = vec![None; self.links.nodes.len()];
        let mut is_open = vec![false; self.links.nodes.len()];
        let (mut path, mut cycles) = (Vec::new(), Vec::new());
        for start in 0..u32::try_from(self.links.nodes.len()).unwrap_or(NodeId::MAX) {
            let mut next = Some(start);
            let mut outer = Outer::Nothing;
            while let Some(node) = next {
                if let Some(link) = at(&of_nodes, node) {
                    outer = Outer::Frame(link);
                    break;
                }
                if at(&is_open, node) {
                    cycles.push(node);
                    break;
                }
                if let Some(is_open) = is_open.get_mut(node as usize) {
                    *is_open = true;
                }
                path.push(node);
                next = at(&self.links.next, node);
            }
            while let Some(node) = path.pop() {
                if outer == Outer::Nothing && at(&self.links.blocks_thread, node) {
                    outer = Outer::Thread;
                }
                let link = self.link(Link { frame: self.frame_type(node), outer });
                if let Some(of_node) = of_nodes.get_mut(node as usize) {
                    *of_node = Some(link);
                }
                outer = Outer::Frame(link);
            }
        }
        (of_nodes, cycles)
    }

    fn link(&mut self, link: Link) -> LinkId {
        let new = u32::try_from(self.table.len()).unwrap_or(LinkId::MAX);
        let id = *self.by_link.entry(link).or_insert(new);
        if id == new {
            self.table.push(link);
            let outer = match link.outer {
                Outer::Frame(outer) => at(&self.depths, outer),
                Outer::Thread | Outer::Nothing => 0,
            };
            self.depths.push(outer + 1);
        }
        id
    }

    /// Counts equal chains.
    fn count(&mut self, of_nodes: &[Option<LinkId>], leaves: &[(NodeId, Leaf)]) -> AsyncChains {
        let mut places: Map<(LinkId, Leaf), usize> = Map::default();
        let mut counted: Vec<(LinkId, Leaf, u64)> = Vec::new();
        for (node, leaf) in leaves {
            let Some(link) = at(of_nodes, *node) else { continue };
            let place = *places.entry((link, *leaf)).or_insert(counted.len());
            match counted.get_mut(place) {
                Some((_, _, count)) => *count += 1,
                None => counted.push((link, *leaf, 1)),
            }
        }
        order::sort_by_key(&mut counted, |(_, _, count)| std::cmp::Reverse(*count));
        let mut chains = AsyncChains::default();
        let mut frame_count = 0;
        for (link, leaf, count) in counted {
            let depth = at(&self.depths, link);
            if chains.chains.len() >= MAX_CHAINS || frame_count + depth > MAX_FRAMES {
                chains.omitted += count;
                continue;
            }
            frame_count += depth;
            chains.chains.push(self.chain(link, leaf, count));
        }
        chains
    }

    /// Returns the chain that starts with a link.
    fn chain(&mut self, link: LinkId, leaf: Leaf, count: u64) -> AsyncChain {
        let mut frames = Vec::with_capacity(at(&self.depths, link));
        let mut outer = Outer::Frame(link);
        while let Outer::Frame(link) = outer {
            let Some(link) = self.table.get(link as usize).copied() else { break };
            frames.push(self.frame(link.frame));
            outer = link.outer;
        }
        let name = leaf.of_type.and_then(|of_type| match leaf.kind {
            AwaitedKind::Method => Some(self.frame(of_type).name.to_string()),
            _ => self.type_name(of_type).map(str::to_owned),
        });
        let awaited = Awaited { kind: leaf.kind, name };
        AsyncChain { count, awaited, frames, blocks_thread: outer == Outer::Thread }
    }

    fn type_name(&self, of_type: TypeId) -> Option<&str> {
        let name = self.graph.types().get(of_type as usize)?.name.as_str();
        Some(name).filter(|name| !name.is_empty())
    }

    fn frame(&mut self, of_type: TypeId) -> AsyncFrame {
        let frame = self.frames.entry(of_type).or_insert_with(|| {
            let Some(named) = self.graph.types().get(of_type as usize) else { return AsyncFrame::default() };
            if let roles::Role::Combinator(label) = roles::role_of(named) {
                return AsyncFrame { name: label.into(), module: None, is_method: false };
            }
            let machine = roles::state_machine(&named.name);
            let name = machine.map_or_else(|| named.name.clone(), roles::method_name);
            AsyncFrame { name: name.into(), module: self.modules.get(&of_type).cloned(), is_method: true }
        });
        frame.clone()
    }
}
