//! Dominators: the objects without which an object would not be alive.
//!
//! The algorithm of Lengauer and Tarjan (ACM TOPLAS 1(1), 1979, "A fast algorithm for finding dominators in a flowgraph")
//! with path compression, whose time is at most proportional to `E log N` for every graph. Object numbers are replaced by
//! the order of a depth-first search, in which 0 is a virtual root that references all roots.

use crate::dense::{at, set, small};
use crate::{Graph, ObjectId};

/// No object.
const NONE: u32 = u32::MAX;

/// The dominator tree of the reachable objects, and what each object keeps alive alone.
///
/// Takes 20 bytes an object, and while it is built at most 52 bytes more and 4 bytes a reference.
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
        let search = Search::new(graph);
        let immediate = immediate(&search);
        let Search { reached, objects, .. } = search;
        let numbers = reached.into_iter().map(|it| it.number).collect();
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

    /// Returns the number of an object in the order of the search, in which it is behind its dominator. 0 if no root reaches
    /// the object.
    pub(crate) fn number(&self, object: ObjectId) -> u32 {
        at(&self.numbers, object)
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

/// What the search knows of an object. Both numbers are in one place because all references lead here.
#[derive(Debug, Clone, Copy, Default)]
struct Reached {
    /// The search number; 0 if no root reaches the object.
    number: u32,
    /// The number of references to the object; later the place of the next one in [`Search::sources`].
    place: u32,
}

/// A depth-first search from all roots.
struct Search {
    reached: Vec<Reached>,
    objects: Vec<ObjectId>,
    /// The search numbers of the parents in the search tree.
    parents: Vec<u32>,
    /// Where the references to each search number start in `sources`, and the end of the last one's.
    starts: Vec<u32>,
    /// The search numbers of the objects that reference each search number.
    sources: Vec<u32>,
}

impl Search {
    fn new(graph: &Graph) -> Self {
        let reached = vec![Reached::default(); graph.type_of.len()];
        let (starts, sources) = (Vec::new(), Vec::new());
        let mut search = Self { reached, objects: vec![NONE], parents: vec![0], starts, sources };
        // The search number, the place of its next reference, and their end.
        let mut path: Vec<(u32, u32, u32)> = Vec::new();
        for root in &graph.roots {
            let mut found = search.enter(root.object, 0).map(|number| (number, root.object));
            loop {
                if let Some((number, object)) = found.take() {
                    path.push((
                        number,
                        at(&graph.starts, object),
                        at(&graph.starts, object.saturating_add(1)),
                    ));
                }
                let Some((number, place, end)) = path.last_mut() else { break };
                if *place >= *end {
                    path.pop();
                    continue;
                }
                let (target, parent) = (at(&graph.references, *place), *number);
                *place += 1;
                found = search.enter(target, parent).map(|number| (number, target));
            }
        }
        search.find_sources(graph);
        search
    }

    /// Counts a reference to an object. Numbers the object and returns its number if it has none.
    #[inline]
    fn enter(&mut self, object: ObjectId, parent: u32) -> Option<u32> {
        let reached = self.reached.get_mut(object as usize)?;
        reached.place = reached.place.saturating_add(1);
        if reached.number != 0 {
            return None;
        }
        reached.number = small(self.objects.len());
        self.objects.push(object);
        self.parents.push(parent);
        Some(reached.number)
    }

    fn find_sources(&mut self, graph: &Graph) {
        let mut start = 0u32;
        self.starts = Vec::with_capacity(self.objects.len() + 1);
        for object in &self.objects {
            self.starts.push(start);
            if let Some(reached) = self.reached.get_mut(*object as usize) {
                let count = reached.place;
                reached.place = start;
                start = start.saturating_add(count);
            }
        }
        self.starts.push(start);
        let mut sources = vec![0; start as usize];
        let mut add = |source: u32, target: ObjectId| {
            if let Some(reached) = self.reached.get_mut(target as usize) {
                set(&mut sources, reached.place, source);
                reached.place = reached.place.saturating_add(1);
            }
        };
        graph.roots.iter().for_each(|root| add(0, root.object));
        for (number, object) in (0..).zip(&self.objects).skip(1) {
            graph.references_of(*object).iter().for_each(|target| add(number, *target));
        }
        self.sources = sources;
    }

    #[inline]
    fn sources_of(&self, number: u32) -> &[u32] {
        let range = at(&self.starts, number) as usize..at(&self.starts, number.saturating_add(1)) as usize;
        self.sources.get(range).unwrap_or_default()
    }
}

/// What the algorithm knows of a number in the forest.
#[derive(Debug, Clone, Copy, Default)]
struct Vertex {
    /// The next number on the compressed path to the root of the tree in the forest.
    ancestor: u32,
    /// The number on that path whose semidominator is the smallest, and its semidominator.
    label: u32,
    least: u32,
    semi: u32,
}

/// The forest of the algorithm, with paths that become shorter with every question. The numbers from `first` on are in it;
/// the roots of its trees are not.
struct Forest {
    vertices: Vec<Vertex>,
    first: u32,
    path: Vec<u32>,
}

impl Forest {
    fn add(&mut self, number: u32, parent: u32, semi: u32) {
        self.first = number;
        set(&mut self.vertices, number, Vertex { ancestor: parent, label: number, least: semi, semi });
    }

    /// Returns the number with the smallest semidominator on the path to the root of the tree in the forest, and its
    /// semidominator.
    #[inline]
    fn eval(&mut self, number: u32) -> (u32, u32) {
        let vertex = at(&self.vertices, number);
        if vertex.ancestor < self.first {
            return (vertex.label, vertex.least);
        }
        self.compress(number, vertex)
    }

    fn compress(&mut self, mut number: u32, mut vertex: Vertex) -> (u32, u32) {
        while vertex.ancestor >= self.first {
            self.path.push(number);
            number = vertex.ancestor;
            vertex = at(&self.vertices, number);
        }
        let mut above = vertex;
        while let Some(number) = self.path.pop() {
            let Some(vertex) = self.vertices.get_mut(number as usize) else { continue };
            if above.least < vertex.least {
                (vertex.label, vertex.least) = (above.label, above.least);
            }
            vertex.ancestor = above.ancestor;
            above = *vertex;
        }
        (above.label, above.least)
    }
}

/// Returns the immediate dominators by search number.
fn immediate(search: &Search) -> Vec<u32> {
    let count = small(search.objects.len());
    let vertices = vec![Vertex::default(); search.objects.len()];
    let mut forest = Forest { vertices, first: count, path: Vec::new() };
    let mut dominators = vec![0; search.objects.len()];
    // The numbers whose semidominator is a number but not their parent, as linked lists that end with 0.
    let (mut first, mut next) = (vec![0; search.objects.len()], vec![0; search.objects.len()]);
    for number in (1..count).rev() {
        let parent = at(&search.parents, number);
        let mut semi = parent;
        for source in search.sources_of(number) {
            // A smaller number is not in the forest yet, and is its own semidominator.
            let least = if *source <= number { *source } else { forest.eval(*source).1 };
            semi = semi.min(least);
        }
        forest.add(number, parent, semi);
        if semi == parent {
            set(&mut dominators, number, parent);
        } else {
            set(&mut next, number, at(&first, semi));
            set(&mut first, semi, number);
        }
        let mut waiting = at(&first, parent);
        set(&mut first, parent, 0);
        while waiting != 0 {
            let (label, least) = forest.eval(waiting);
            set(&mut dominators, waiting, if least < parent { label } else { parent });
            waiting = at(&next, waiting);
        }
    }
    for number in 1..count {
        let dominator = at(&dominators, number);
        if dominator != at(&forest.vertices, number).semi {
            let dominator = at(&dominators, dominator);
            set(&mut dominators, number, dominator);
        }
    }
    dominators
}
