//! Why an object is alive: a shortest path from a root.

use crate::dense::{at, set};
use crate::{Graph, ObjectId, Root};

/// The mark of objects that no path has reached yet.
const UNSEEN: u32 = u32::MAX;

/// A shortest path from a root to an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PathToRoot {
    /// The root.
    pub root: Root,
    /// The objects from the one that the root references to the one at the end.
    pub objects: Vec<ObjectId>,
}

/// Returns a shortest path from a root to an object for which `is_target` returns true. `None` if no root reaches one.
///
/// Takes 4 bytes an object, and 4 bytes for each object that it visits.
pub fn path_to_root(graph: &Graph, is_target: impl Fn(ObjectId) -> bool) -> Option<PathToRoot> {
    // Each object refers to the one before it, the first one of a path to itself.
    let mut before = vec![UNSEEN; graph.object_count() as usize];
    let mut queue = Vec::new();
    for root in graph.roots() {
        if before.get(root.object as usize) == Some(&UNSEEN) {
            set(&mut before, root.object, root.object);
            queue.push(root.object);
        }
    }
    let mut done = 0;
    let end = loop {
        let object = *queue.get(done)?;
        done += 1;
        if is_target(object) {
            break object;
        }
        for target in graph.references_of(object) {
            if before.get(*target as usize) == Some(&UNSEEN) {
                set(&mut before, *target, object);
                queue.push(*target);
            }
        }
    };
    let mut objects = vec![end];
    let mut first = end;
    while at(&before, first) != first {
        first = at(&before, first);
        objects.push(first);
    }
    objects.reverse();
    let root = *graph.roots().iter().find(|root| root.object == first)?;
    Some(PathToRoot { root, objects })
}
