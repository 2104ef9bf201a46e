//! Which async method awaits which one, according to the references between their boxes.
//!
//! A box is the task of an async method, and contains its local variables and the awaiter of what the method awaits. The task that
//! is awaited refers to the box that continues, so two boxes in a chain refer to each other. The order of references tells the
//! direction: the fields of the task and its context come first, then variables that are objects, then the reference to the box
//! itself (in its builder), then the awaiter. State machines that are objects of their own contain the latter three.

use foldhash::fast::RandomState;
use hashbrown::{HashMap, HashSet};
use runtap_heap::{Graph, ObjectId};
use runtap_model::thread_dump::AwaitedKind;

use super::roles::{Role, role_of, simple_name, state_machine};

pub(super) type Map<K, V> = HashMap<K, V, RandomState>;

/// The position of a [`Node`] among the nodes.
pub(super) type NodeId = u32;

/// The number of references of an object that are examined where any number is possible, but few are usual.
const MAX_EXAMINED: usize = 256;
/// The number of references that are examined from a task to what it continues. Each element of a list allows some more.
const MAX_SEARCHED: usize = 64;
const MAX_SEARCHED_PER_ELEMENT: usize = 16;
/// The number of references of a state machine that is an object.
const MAX_FIELDS: usize = 1024;
/// The number of steps from a task to what it continues, such as a list, its array, and the delegate in that.
const MAX_STEPS: u32 = 6;

/// A box of a method that waits, or a task that combines others.
#[derive(Debug, Clone, Copy)]
pub(super) struct Node {
    pub(super) object: ObjectId,
    /// The object that is its state machine, if it is not a part of the box.
    machine: Option<ObjectId>,
    /// The position of the reference from the state machine's builder to the box.
    builder: u32,
    pub(super) is_box: bool,
}

/// The nodes of a heap and what they wait for.
#[derive(Debug)]
pub(super) struct Links<'a> {
    graph: &'a Graph,
    roles: Vec<Role>,
    pub(super) nodes: Vec<Node>,
    by_object: Map<ObjectId, NodeId>,
    /// The node that awaits each node first.
    pub(super) next: Vec<Option<NodeId>>,
    /// Further nodes that await a node: the awaiting and the awaited one.
    pub(super) forks: Vec<(NodeId, NodeId)>,
    /// Whether each node awaits another one.
    pub(super) is_waiting: Vec<bool>,
    /// Whether a thread is blocked until the node completes.
    pub(super) blocks_thread: Vec<bool>,
    /// The tasks of the class `TaskCompletionSource`.
    sources: HashSet<ObjectId, RandomState>,
    /// An awaitable object that a combinator waits for.
    awaited_by_combinator: Map<NodeId, ObjectId>,
}

impl<'a> Links<'a> {
    pub(super) fn new(graph: &'a Graph) -> Self {
        let roles = graph.types().iter().map(role_of).collect();
        let mut links = Self {
            graph,
            roles,
            nodes: Vec::new(),
            by_object: Map::default(),
            next: Vec::new(),
            forks: Vec::new(),
            is_waiting: Vec::new(),
            blocks_thread: Vec::new(),
            sources: HashSet::default(),
            awaited_by_combinator: Map::default(),
        };
        links.find_nodes();
        links.connect();
        links
    }

    fn role(&self, object: ObjectId) -> Role {
        self.roles.get(self.graph.type_of(object) as usize).copied().unwrap_or(Role::Other)
    }

    fn find_nodes(&mut self) {
        for object in 0..self.graph.object_count() {
            let node = match self.role(object) {
                Role::Box => self.waiting_box(object),
                Role::Combinator(_) => Some(Node { object, machine: None, builder: 0, is_box: false }),
                Role::Source => {
                    self.sources.extend(self.graph.references_of(object).iter().take(MAX_EXAMINED));
                    None
                }
                _ => None,
            };
            if let Some(node) = node {
                self.by_object.insert(object, u32::try_from(self.nodes.len()).unwrap_or(NodeId::MAX));
                self.nodes.push(node);
            }
        }
        self.next = vec![None; self.nodes.len()];
        self.is_waiting = vec![false; self.nodes.len()];
        self.blocks_thread = vec![false; self.nodes.len()];
        for object in 0..self.graph.object_count() {
            if matches!(self.role(object), Role::Awaitable(_)) {
                for target in self.graph.references_of(object).iter().take(MAX_EXAMINED) {
                    if let Some(node) = self.by_object.get(target)
                        && !self.node(*node).is_box
                    {
                        self.awaited_by_combinator.entry(*node).or_insert(object);
                    }
                }
            }
        }
    }

    fn node(&self, node: NodeId) -> Node {
        let none = Node { object: ObjectId::MAX, machine: None, builder: 0, is_box: false };
        self.nodes.get(node as usize).copied().unwrap_or(none)
    }

    /// Returns the node of a box. `None` if its method has completed: the box then contains no state machine.
    fn waiting_box(&self, object: ObjectId) -> Option<Node> {
        let references = self.graph.references_of(object);
        let builder_in = |references: &[ObjectId]| {
            let builder = references.iter().position(|it| *it == object)?;
            u32::try_from(builder).ok()
        };
        if let Some(builder) = builder_in(references) {
            return Some(Node { object, machine: None, builder, is_box: true });
        }
        let own = &self.graph.type_name(object)?.name;
        let own = simple_name(state_machine(own)?);
        let mut machines = references.iter().copied().filter(|it| {
            let name = self.graph.type_name(*it);
            name.is_some_and(|name| name.name == own)
        });
        // The first one is the field; others are variables of the method's type.
        let machine = machines.next()?;
        let fields = self.graph.references_of(machine);
        let builder = builder_in(fields.get(..MAX_FIELDS).unwrap_or(fields))?;
        Some(Node { object, machine: Some(machine), builder, is_box: true })
    }

    /// Returns the references of a box before and after that of its builder to the box itself.
    fn parts(&self, node: Node) -> (&'a [ObjectId], &'a [ObjectId]) {
        let (own, state) = match node.machine {
            Some(machine) => (self.graph.references_of(node.object), self.graph.references_of(machine)),
            None => (&[][..], self.graph.references_of(node.object)),
        };
        let (variables, awaiters) = state.split_at(state.len().min(node.builder as usize));
        (if node.machine.is_some() { own } else { variables }, awaiters.get(1..).unwrap_or_default())
    }

    fn awaiters(&self, node: Node) -> impl Iterator<Item = ObjectId> + 'a {
        let awaiters = if node.is_box { self.parts(node).1 } else { &[] };
        awaiters.iter().copied().take(MAX_EXAMINED)
    }

    fn connect(&mut self) {
        let mut seen_lists = HashSet::default();
        for (id, node) in (0..).zip(self.nodes.clone()) {
            let mut found = Vec::new();
            if node.is_box {
                let (before, _) = self.parts(node);
                // The continuation is the first field behind the context. Behind it are variables.
                let context = before.iter().position(|it| self.role(*it) == Role::Context);
                let first = before.get(context.map_or(0, |at| at + 1)).copied();
                for target in before {
                    self.continued(*target, Some(*target) == first, &mut seen_lists, &mut found);
                }
                // An asynchronous iterator is awaited itself, in place of its box.
                for target in node.machine.iter().flat_map(|machine| self.graph.references_of(*machine)) {
                    self.continued(*target, false, &mut seen_lists, &mut found);
                }
            } else {
                for target in self.graph.references_of(node.object) {
                    self.continued(*target, true, &mut seen_lists, &mut found);
                }
            }
            for (object, is_continuation) in found {
                if self.role(object) == Role::Blocker {
                    self.set_blocking(id, is_continuation);
                } else if let Some(by) = self.by_object.get(&object).copied()
                    && by != id
                    && self.awaits(by, node, is_continuation)
                {
                    self.link(by, id);
                }
            }
        }
    }

    fn set_blocking(&mut self, node: NodeId, is_continuation: bool) {
        if let Some(blocks) = self.blocks_thread.get_mut(node as usize) {
            *blocks |= is_continuation;
        }
    }

    fn link(&mut self, by: NodeId, awaited: NodeId) {
        let Some(next) = self.next.get_mut(awaited as usize) else { return };
        match next {
            None => *next = Some(by),
            Some(first) if *first == by => return,
            Some(_) => self.forks.push((by, awaited)),
        }
        if let Some(is_waiting) = self.is_waiting.get_mut(by as usize) {
            *is_waiting = true;
        }
    }

    /// Whether `by`, to which `awaited` refers, awaits it.
    fn awaits(&self, by: NodeId, awaited: Node, is_continuation: bool) -> bool {
        let by = self.node(by);
        if by.is_box {
            return self.awaiters(by).any(|it| it == awaited.object || Some(it) == awaited.machine);
        }
        // A combinator that the task awaits or keeps in a variable is not its continuation.
        if awaited.is_box {
            return is_continuation && !self.awaiters(awaited).any(|it| it == by.object);
        }
        self.is_reached_by_continuation(awaited.object, by.object)
    }

    /// Whether a combinator refers to another one as its continuation, and not as one of its tasks.
    fn is_reached_by_continuation(&self, awaited: ObjectId, by: ObjectId) -> bool {
        let keeps_tasks = |object| {
            matches!(
                self.role(object),
                Role::Combinator("Task.WhenAny" | "Task.WaitAsync" | "Task.ContinueWith")
            )
        };
        let refers_back = self.graph.references_of(by).iter().take(MAX_EXAMINED).any(|it| *it == awaited);
        match (keeps_tasks(by), keeps_tasks(awaited)) {
            _ if !refers_back => true,
            (by, awaited) if by != awaited => by,
            _ => {
                let mut tasks = self.graph.references_of(awaited).iter().take(MAX_EXAMINED);
                tasks.find(|it| self.by_object.contains_key(*it)) == Some(&by)
            }
        }
    }

    /// Collects the nodes and blocked threads that continue when a task with this reference completes. Each list belongs to one
    /// task.
    fn continued(
        &self,
        target: ObjectId,
        is_continuation: bool,
        seen_lists: &mut HashSet<ObjectId, RandomState>,
        found: &mut Vec<(ObjectId, bool)>,
    ) {
        let mut open = vec![(target, 0)];
        let mut budget = MAX_SEARCHED;
        while let Some((object, steps)) = open.pop() {
            let references = self.graph.references_of(object);
            let examined = match self.role(object) {
                Role::Box | Role::Combinator(_) | Role::Blocker => {
                    found.push((object, is_continuation));
                    continue;
                }
                Role::Continuation if steps < MAX_STEPS => {
                    let examined = references.len().min(budget);
                    budget -= examined;
                    examined
                }
                Role::List if steps < MAX_STEPS && seen_lists.insert(object) => {
                    budget += references.len().saturating_mul(MAX_SEARCHED_PER_ELEMENT);
                    references.len()
                }
                _ => continue,
            };
            open.extend(references.iter().take(examined).map(|object| (*object, steps + 1)));
        }
    }

    /// Returns what a method or a combinator awaits that no method has created. `None` if unknown.
    pub(super) fn awaited(&self, id: NodeId) -> Option<(AwaitedKind, ObjectId)> {
        let node = self.node(id);
        let kind = |object| match self.role(object) {
            Role::Awaitable(AwaitedKind::Task) if self.sources.contains(&object) => {
                AwaitedKind::CompletionSource
            }
            Role::Awaitable(kind) => kind,
            _ => AwaitedKind::Object,
        };
        if !node.is_box {
            return self.awaited_by_combinator.get(&id).map(|object| (kind(*object), *object));
        }
        let candidates = || self.awaiters(node).filter(|object| !self.by_object.contains_key(object));
        let found = |steps| {
            let mut budget = 2 * MAX_EXAMINED;
            candidates().find(|object| self.may_continue(*object, node.object, steps, &mut budget))
        };
        let mut found = found(1).or_else(|| found(3))?;
        if self.role(found) == Role::SourceAsTask {
            let mut sources = self.graph.references_of(found).iter().take(MAX_EXAMINED).copied();
            found = sources.find(|it| matches!(self.role(*it), Role::Awaitable(_))).unwrap_or(found);
        }
        Some((kind(found), found))
    }

    /// Whether an object leads to a box within some steps. The continuations of a task may be many, so the box is not searched in
    /// their list.
    fn may_continue(&self, from: ObjectId, to: ObjectId, steps: u32, budget: &mut usize) -> bool {
        let mut open = vec![(from, 0)];
        let most = budget.saturating_sub(MAX_EXAMINED);
        let is_task = matches!(self.role(from), Role::Awaitable(_));
        while let Some((object, depth)) = open.pop() {
            for target in self.graph.references_of(object) {
                if *budget <= most {
                    return false;
                }
                *budget -= 1;
                let role = self.role(*target);
                if *target == to || (is_task && depth == 0 && role == Role::List) {
                    return true;
                }
                if depth + 1 < steps && matches!(role, Role::Continuation | Role::List | Role::Other) {
                    open.push((*target, depth + 1));
                }
            }
        }
        false
    }
}
