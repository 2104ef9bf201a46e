//! Objects summed by type, and roots by kind.

use std::collections::BTreeMap;

use runtap_model::order;

use crate::dense::small;
use crate::{Dominators, Graph, RootKind, TypeId};

/// The objects of a type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TypeRow {
    /// The type.
    pub type_id: TypeId,
    /// The number of objects.
    pub count: u64,
    /// The sum of their sizes in bytes.
    pub bytes: u64,
    /// What each of them [retains](Dominators::retained) in bytes, without counting an object twice. Without all of them, at
    /// least that much would be freed. `None` if the [roots are unknown](Graph::has_known_roots).
    pub retained_bytes: Option<u64>,
}

/// The number by which types are sorted, with the largest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum TypeOrder {
    /// The sum of the sizes of objects.
    #[default]
    Bytes,
    /// What the objects retain.
    Retained,
    /// The number of objects.
    Count,
}

impl TypeOrder {
    /// All orders.
    pub const ALL: [Self; 3] = [Self::Bytes, Self::Retained, Self::Count];

    /// Returns the name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Bytes => "bytes",
            Self::Retained => "retained",
            Self::Count => "count",
        }
    }

    /// Describes the number in a few words.
    pub fn about(self) -> &'static str {
        match self {
            Self::Bytes => "Size of the objects themselves",
            Self::Retained => "Size of what would be freed without them, at least",
            Self::Count => "Number of objects",
        }
    }

    /// Returns the number of a row; 0 if unknown.
    pub fn of(self, row: &TypeRow) -> u64 {
        match self {
            Self::Bytes => row.bytes,
            Self::Retained => row.retained_bytes.unwrap_or(0),
            Self::Count => row.count,
        }
    }
}

/// Returns a row for each type that has objects, in the order of types.
pub fn type_rows(graph: &Graph, dominators: &Dominators) -> Vec<TypeRow> {
    let retained_bytes = graph.has_known_roots().then_some(0);
    let mut rows: Vec<TypeRow> = (0..small(graph.types().len()))
        .map(|type_id| TypeRow { type_id, count: 0, bytes: 0, retained_bytes })
        .collect();
    for object in 0..graph.object_count() {
        if let Some(row) = rows.get_mut(graph.type_of(object) as usize) {
            row.count += 1;
            row.bytes = row.bytes.saturating_add(graph.size_of(object));
        }
    }
    // The number of objects of each type that dominate the current one.
    let mut open = vec![0u32; rows.len()];
    dominators.walk(|object, enters| {
        let type_id = graph.type_of(object) as usize;
        if let (Some(row), Some(open)) = (rows.get_mut(type_id), open.get_mut(type_id)) {
            if !enters {
                *open -= 1;
                return;
            }
            if *open == 0 {
                let retained = dominators.retained(object);
                row.retained_bytes = row.retained_bytes.map(|sum| sum.saturating_add(retained));
            }
            *open += 1;
        }
    });
    rows.retain(|row| row.count > 0);
    rows
}

/// The roots of a kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RootCount {
    /// The kind.
    pub kind: RootKind,
    /// The number of roots.
    pub count: u64,
}

/// Returns the number of roots of each kind, largest first.
pub fn root_counts(graph: &Graph) -> Vec<RootCount> {
    let mut counts: BTreeMap<RootKind, u64> = BTreeMap::new();
    for root in graph.roots() {
        *counts.entry(root.kind).or_default() += 1;
    }
    let mut rows: Vec<RootCount> =
        counts.into_iter().map(|(kind, count)| RootCount { kind, count }).collect();
    order::sort_by_key(&mut rows, |row| std::cmp::Reverse(row.count));
    rows
}
