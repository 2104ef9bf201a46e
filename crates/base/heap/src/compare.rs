//! What changed between two heaps, by type.

use std::collections::{BTreeMap, BTreeSet};

use runtap_model::order;

use crate::{Graph, TypeName, TypeRow};

/// The objects of a type in two heaps.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TypeChange {
    /// The type.
    pub name: TypeName,
    /// The number of objects, before and after.
    pub count: [u64; 2],
    /// The sums of their sizes in bytes, before and after.
    pub bytes: [u64; 2],
    /// What they retain in bytes, before and after. `None` if the roots of a heap are unknown.
    pub retained_bytes: [Option<u64>; 2],
}

impl TypeChange {
    /// Returns by how many bytes the objects grew; negative if they shrank.
    pub fn growth(&self) -> i128 {
        let [before, after] = self.bytes.map(i128::from);
        after - before
    }
}

/// Returns the types whose number of objects or whose size differs, the greatest growth first. Types are the same if their
/// names and modules are; where the module of a type with this name is unknown, if their names are.
pub fn compare(before: (&Graph, &[TypeRow]), after: (&Graph, &[TypeRow])) -> Vec<TypeChange> {
    let all = [before.0, after.0].into_iter().flat_map(Graph::types);
    let nameless: BTreeSet<&str> = all.filter(|it| it.module.is_none()).map(|it| it.name.as_str()).collect();
    let nothing_retained = [before.0, after.0].map(|graph| graph.has_known_roots().then_some(0));
    let mut changes: BTreeMap<(&str, Option<&str>), TypeChange> = BTreeMap::new();
    for (side, (graph, rows)) in [before, after].into_iter().enumerate() {
        for row in rows {
            let Some(name) = graph.types().get(row.type_id as usize) else { continue };
            let module = name.module.as_deref().filter(|_| !nameless.contains(name.name.as_str()));
            let change = changes.entry((&name.name, module)).or_insert_with(|| TypeChange {
                name: name.clone(),
                count: [0; 2],
                bytes: [0; 2],
                retained_bytes: nothing_retained,
            });
            for (both, value) in [(&mut change.count, row.count), (&mut change.bytes, row.bytes)] {
                if let Some(sum) = both.get_mut(side) {
                    *sum = sum.saturating_add(value);
                }
            }
            if let Some(sum) = change.retained_bytes.get_mut(side) {
                *sum = sum.zip(row.retained_bytes).map(|(sum, retained)| sum.saturating_add(retained));
            }
        }
    }
    let mut changes: Vec<TypeChange> = changes
        .into_values()
        .filter(|it| it.count.first() != it.count.last() || it.bytes.first() != it.bytes.last())
        .collect();
    order::sort_by_key(&mut changes, |change| std::cmp::Reverse(change.growth()));
    changes
}
