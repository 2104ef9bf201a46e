//! Dominators: the objects without which an object would not be alive.
//!
//! The algorithm of Lengauer and Tarjan (ACM TOPLAS 1(1), 1979, "A fast algorithm for finding dominators in a flowgraph")
//! with path compression, whose time is at most proportional to `E log N` for every graph. Object numbers are replaced by
//! the order of a depth-first search, in which 0 is a virtual root that references all roots.

use crate::dense::{at, set, small, starts};
use crate::{Graph, ObjectId};

/// No object, or no place.
const NONE: u32 = u32::MAX;

/// The dominator tree of the reachable objects, and what each object keeps alive alone.
///
/// Takes 20 bytes an object, and while it is built about 30 bytes more and 4 bytes a reference.
#[derive(Debug, Clone)]
pub struct Dominators {
    /// The search number of each object; 0 if no root reaches it.
    numbers: Vec<u32>,
    /// The object of each search number.
    objects: Vec<ObjectId>,
    /// The search number of the immediate dominator of each search number.
    immediate: Vec<u32>,
    /// By search number.
    retained: Vec<u64>,
}

impl Dominators {
    /// Computes the dominators of a graph.
    pub fn new(graph: &Graph) -> Self {
        let Search { numbers, objects, parents } = Search::new(graph);
        let immediate = immediate(graph, &numbers, &objects, &parents);
        let size = |number: usize| objects.get(number).map_or(0, |object| graph.size_of(*object));
        let mut retained: Vec<u64> =
            (0..objects.len()).map(|number| if number == 0 { 0 } else { size(number) }).collect();
        for number in (1..small(objects.len())).rev() {
            let sum = at(&retained, at(&immediate, number)).saturating_add(at(&retained, number));
            set(&mut retained, at(&immediate, number), sum);
        }
        Self { numbers, objects, immediate, retained }
    }

    /// Returns the number of objects that a root reaches.
    pub fn reachable_count(&self) -> u32 {
        small(self.objects.len().saturating_sub(1))
    }

    /// Returns the sum of the sizes of the objects that a root reaches, in bytes.
    pub fn reachable_bytes(&self) -> u64 {
        at(&self.retained, 0)
    }

    /// Whether a root reaches the object.
    pub fn is_reachable(&self, object: ObjectId) -> bool {
        at(&self.numbers, object) != 0
    }

    /// Returns the retained size of an object in bytes: its size and that of all objects that only it keeps alive. 0 if no
    /// root reaches it.
    pub fn retained(&self, object: ObjectId) -> u64 {
        match at(&self.numbers, object) {
            0 => 0,
            number => at(&self.retained, number),
        }
    }

    /// Returns the object that alone keeps this object alive, and is next to it. `None` if several roots or objects do, or
    /// if no root reaches it.
    pub fn immediate(&self, object: ObjectId) -> Option<ObjectId> {
        match at(&self.immediate, at(&self.numbers, object)) {
            0 => None,
            number => self.objects.get(number as usize).copied(),
        }
    }

    /// Visits the dominator tree: `visit(object, true)` before the objects that an object dominates, and
    /// `visit(object, false)` after them.
    pub fn walk(&self, mut visit: impl FnMut(ObjectId, bool)) {
        let count = small(self.objects.len());
        let (mut first, mut next) = (vec![0; self.objects.len()], vec![0; self.objects.len()]);
        for number in (1..count).rev() {
            let dominator = at(&self.immediate, number);
            set(&mut next, number, at(&first, dominator));
            set(&mut first, dominator, number);
        }
        let mut number = at(&first, 0);
        while number != 0 {
            visit(at(&self.objects, number), true);
            if at(&first, number) != 0 {
                number = at(&first, number);
                continue;
            }
            while number != 0 {
                visit(at(&self.objects, number), false);
                if at(&next, number) != 0 {
                    number = at(&next, number);
                    break;
                }
                number = at(&self.immediate, number);
            }
        }
    }
}

/// A depth-first search from all roots.
struct Search {
    numbers: Vec<u32>,
    objects: Vec<ObjectId>,
    /// The search numbers of the parents in the search tree.
    parents: Vec<u32>,
}

impl Search {
    fn new(graph: &Graph) -> Self {
        let mut search =
            Self { numbers: vec![0; graph.type_of.len()], objects: vec![NONE], parents: vec![0] };
        // The search number, and the place of its next reference.
        let mut path: Vec<(u32, u32)> = Vec::new();
        for root in &graph.roots {
            let mut found = search.enter(root.object, 0);
            loop {
                if let Some(number) = found.take() {
                    path.push((number, at(&graph.starts, at(&search.objects, number))));
                }
                let Some((number, place)) = path.last_mut() else { break };
                let end = at(&graph.starts, at(&search.objects, *number).saturating_add(1));
                if *place >= end {
                    path.pop();
                    continue;
                }
                let (target, parent) = (at(&graph.references, *place), *number);
                *place += 1;
                found = search.enter(target, parent);
            }
        }
        search
    }

    /// Numbers an object. `None` if it has a number.
    #[inline]
    fn enter(&mut self, object: ObjectId, parent: u32) -> Option<u32> {
        let number = small(self.objects.len());
        let place = self.numbers.get_mut(object as usize).filter(|place| **place == 0)?;
        *place = number;
        self.objects.push(object);
        self.parents.push(parent);
        Some(number)
    }
}

/// The objects that reference each object, by search numbers.
struct Predecessors {
    starts: Vec<u32>,
    all: Vec<u32>,
}

impl Predecessors {
    fn new(graph: &Graph, numbers: &[u32], objects: &[ObjectId]) -> Self {
        let mut counts = vec![0u32; objects.len()];
        let targets =
            |number: u32| graph.references_of(at(objects, number)).iter().map(|it| at(numbers, *it));
        let roots = || graph.roots.iter().map(|root| at(numbers, root.object));
        let reached = 1..small(objects.len());
        for target in roots().chain(reached.clone().flat_map(targets)) {
            let count = at(&counts, target).saturating_add(1);
            set(&mut counts, target, count);
        }
        let starts = starts(counts);
        let mut cursors = starts.clone();
        let mut all = vec![0; starts.last().copied().unwrap_or(0) as usize];
        let mut add = |number: u32, target: u32| {
            let place = at(&cursors, target);
            set(&mut all, place, number);
            set(&mut cursors, target, place.saturating_add(1));
        };
        roots().for_each(|target| add(0, target));
        reached.for_each(|number| targets(number).for_each(|target| add(number, target)));
        Self { starts, all }
    }

    #[inline]
    fn of(&self, number: u32) -> &[u32] {
        let (start, end) = (at(&self.starts, number), at(&self.starts, number.saturating_add(1)));
        self.all.get(start as usize..end as usize).unwrap_or_default()
    }
}

/// The forest of the algorithm, with paths that become shorter with every question.
struct Forest {
    ancestors: Vec<u32>,
    /// The number on the compressed path whose semidominator is the smallest.
    labels: Vec<u32>,
    semi: Vec<u32>,
    path: Vec<u32>,
}

impl Forest {
    /// Returns the number with the smallest semidominator on the path to the root of the tree in the forest.
    #[inline]
    fn eval(&mut self, number: u32) -> u32 {
        if at(&self.ancestors, number) != NONE {
            self.compress(number);
        }
        at(&self.labels, number)
    }

    fn compress(&mut self, number: u32) {
        let mut number = number;
        loop {
            let ancestor = at(&self.ancestors, number);
            if at(&self.ancestors, ancestor) == NONE {
                break;
            }
            self.path.push(number);
            number = ancestor;
        }
        while let Some(number) = self.path.pop() {
            let ancestor = at(&self.ancestors, number);
            let label = at(&self.labels, ancestor);
            if at(&self.semi, label) < at(&self.semi, at(&self.labels, number)) {
                set(&mut self.labels, number, label);
            }
            let next = at(&self.ancestors, ancestor);
            set(&mut self.ancestors, number, next);
        }
    }
}

/// Returns the immediate dominators by search number.
fn immediate(graph: &Graph, numbers: &[u32], objects: &[ObjectId], parents: &[u32]) -> Vec<u32> {
    let count = small(objects.len());
    let predecessors = Predecessors::new(graph, numbers, objects);
    let mut forest = Forest {
        ancestors: vec![NONE; objects.len()],
        labels: (0..count).collect(),
        semi: (0..count).collect(),
        path: Vec::new(),
    };
    let mut dominators = vec![0; objects.len()];
    // The numbers whose semidominator is a number, as linked lists.
    let (mut first, mut next) = (vec![NONE; objects.len()], vec![NONE; objects.len()]);
    for number in (1..count).rev() {
        let parent = at(parents, number);
        let mut semi = parent;
        for predecessor in predecessors.of(number) {
            let least = if *predecessor <= number {
                *predecessor
            } else {
                let label = forest.eval(*predecessor);
                at(&forest.semi, label)
            };
            semi = semi.min(least);
        }
        set(&mut forest.semi, number, semi);
        set(&mut next, number, at(&first, semi));
        set(&mut first, semi, number);
        set(&mut forest.ancestors, number, parent);
        let mut waiting = at(&first, parent);
        set(&mut first, parent, NONE);
        while waiting != NONE {
            let label = forest.eval(waiting);
            let is_smaller = at(&forest.semi, label) < at(&forest.semi, waiting);
            set(&mut dominators, waiting, if is_smaller { label } else { parent });
            waiting = at(&next, waiting);
        }
    }
    for number in 1..count {
        let dominator = at(&dominators, number);
        if dominator != at(&forest.semi, number) {
            let dominator = at(&dominators, dominator);
            set(&mut dominators, number, dominator);
        }
    }
    dominators
}
