//! Laws of the graph algorithms, against simple implementations, on graphs of any shape.

use proptest::prelude::*;
use runtap_heap::{
    Dominators, Graph, GraphBuilder, Incomplete, RootKind, TypeOrder, compare, path_to_root, root_counts,
    type_rows,
};

/// Creates objects `0..count` of two types, at unordered addresses, with sizes of 8 bytes and more.
fn graph(count: u32, references: &[(u32, u32)], roots: &[u32]) -> Graph {
    let address = |object: u32| u64::from(object ^ 5) * 0x310 + 0x1000;
    let mut builder = GraphBuilder::default();
    for name in ["A", "B"] {
        builder.add_type(name, None);
    }
    for object in 0..count {
        builder.object(address(object), object % 2, 8 + u64::from(object));
        for (_, to) in references.iter().filter(|(from, _)| *from == object) {
            builder.reference(address(*to));
        }
    }
    for root in roots {
        builder.root(address(*root), RootKind::Handle, None);
    }
    builder.finish()
}

/// Returns which objects the roots reach without passing `without`.
fn reached(graph: &Graph, without: Option<u32>) -> Vec<bool> {
    let mut seen = vec![false; graph.object_count() as usize];
    let mut open: Vec<u32> = graph.roots().iter().map(|root| root.object).collect();
    while let Some(object) = open.pop() {
        if Some(object) != without && !std::mem::replace(&mut seen[object as usize], true) {
            open.extend(graph.references_of(object));
        }
    }
    seen
}

fn any_graph() -> impl Strategy<Value = Graph> {
    (1u32..24).prop_flat_map(|count| {
        let references = proptest::collection::vec((0..count, 0..count), 0..60);
        (Just(count), references, proptest::collection::vec(0..count, 0..4))
            .prop_map(|(count, references, roots)| graph(count, &references, &roots))
    })
}

proptest! {
    #[test]
    fn an_object_retains_what_is_not_reached_without_it(graph in any_graph()) {
        let dominators = Dominators::new(&graph);
        let all = reached(&graph, None);
        let bytes = |seen: &[bool]| -> u64 {
            (0..graph.object_count()).filter(|it| seen[*it as usize]).map(|it| graph.size_of(it)).sum()
        };
        prop_assert_eq!(dominators.reachable_bytes(), bytes(&all));
        prop_assert_eq!(dominators.reachable_count() as usize, all.iter().filter(|it| **it).count());
        for object in 0..graph.object_count() {
            let lost = bytes(&all) - bytes(&reached(&graph, Some(object)));
            prop_assert_eq!(dominators.is_reachable(object), all[object as usize]);
            prop_assert_eq!(dominators.retained(object), lost, "object {}", object);
            if let Some(dominator) = dominators.immediate(object) {
                prop_assert!(dominators.retained(dominator) > lost);
                prop_assert!(!reached(&graph, Some(dominator))[object as usize]);
            }
        }
    }

    #[test]
    fn a_type_retains_what_its_objects_dominate(graph in any_graph()) {
        let dominators = Dominators::new(&graph);
        for row in type_rows(&graph, &dominators) {
            let objects: Vec<u32> =
                (0..graph.object_count()).filter(|it| graph.type_of(*it) == row.type_id).collect();
            prop_assert_eq!(row.count, objects.len() as u64);
            prop_assert_eq!(row.bytes, objects.iter().map(|it| graph.size_of(*it)).sum::<u64>());
            // The objects that some object of the type dominates.
            let kept: u64 = (0..graph.object_count())
                .filter(|it| dominators.is_reachable(*it))
                .filter(|it| {
                    let up = |it: &u32| dominators.immediate(*it);
                    std::iter::successors(Some(*it), up).any(|it| graph.type_of(it) == row.type_id)
                })
                .map(|it| graph.size_of(it))
                .sum();
            prop_assert_eq!(row.retained_bytes, Some(kept));
        }
    }

    #[test]
    fn a_path_is_connected_and_shortest(graph in any_graph(), target in 0u32..24) {
        let is_reached = reached(&graph, None).get(target as usize) == Some(&true);
        let path = path_to_root(&graph, |object| object == target);
        prop_assert_eq!(path.is_some(), is_reached);
        let Some(path) = path else { return Ok(()) };
        prop_assert_eq!(path.objects[0], path.root.object);
        prop_assert_eq!(*path.objects.last().unwrap(), target);
        prop_assert!(path.objects.windows(2).all(|two| graph.references_of(two[0]).contains(&two[1])));
        // Distances by relaxation.
        let mut distances = vec![usize::MAX; graph.object_count() as usize];
        graph.roots().iter().for_each(|root| distances[root.object as usize] = 1);
        for _ in 0..graph.object_count() {
            for from in 0..graph.object_count() {
                for to in graph.references_of(from) {
                    let distance = distances[from as usize].saturating_add(1);
                    distances[*to as usize] = distances[*to as usize].min(distance);
                }
            }
        }
        prop_assert_eq!(path.objects.len(), distances[target as usize]);
    }
}

#[test]
fn long_chains_take_no_stack() {
    const LENGTH: u32 = 1_000_000;
    let mut builder = GraphBuilder::default();
    let link = builder.add_type("Link", None);
    for object in 0..LENGTH {
        builder.object(u64::from(object) * 24 + 8, link, 24);
        builder.reference(u64::from(object + 1) * 24 + 8);
        // A reference back makes the chain a single cycle.
        builder.reference(8);
    }
    builder.root(8, RootKind::Stack, None);
    let graph = builder.finish();
    assert_eq!(graph.dangling_references(), 1);
    let dominators = Dominators::new(&graph);
    assert_eq!(dominators.retained(0), 24 * u64::from(LENGTH));
    assert_eq!(dominators.retained(LENGTH - 1), 24);
    assert_eq!(dominators.immediate(LENGTH - 1), Some(LENGTH - 2));
    let rows = type_rows(&graph, &dominators);
    assert_eq!((rows.len(), rows[0].retained_bytes), (1, Some(24 * u64::from(LENGTH))));
    let path = path_to_root(&graph, |object| object == LENGTH - 1).unwrap();
    assert_eq!(path.objects.len(), LENGTH as usize);
    assert!(graph.memory_bytes() < 40 * LENGTH as usize, "{}", graph.memory_bytes());
}

#[test]
fn dependent_handles_keep_values_alive_and_large_objects_have_their_size() {
    let mut builder = GraphBuilder::default();
    let value = builder.add_type("Value", Some("app".into()));
    for (address, bytes) in [(0x100, 24), (0x200, 5 << 30), (0x300, u64::from(u32::MAX))] {
        builder.object(address, value, bytes);
    }
    builder.dependent(0x100, 0x200);
    builder.dependent(0x100, 0x999);
    builder.root(0x100, RootKind::StaticField, Some("App.Key".to_owned()));
    let graph = builder.finish();
    assert!(graph.is_dependent(0, 1) && !graph.is_dependent(1, 0));
    assert_eq!((graph.references_of(0), graph.dependent_count()), (&[1][..], 1));
    assert_eq!(graph.dangling_references(), 1);
    let dominators = Dominators::new(&graph);
    assert_eq!(dominators.retained(0), 24 + (5 << 30));
    assert_eq!((dominators.is_reachable(2), graph.size_of(2)), (false, u32::MAX.into()));
    let path = path_to_root(&graph, |object| object == 1).unwrap();
    assert_eq!((path.objects, graph.root_name(&path.root)), (vec![0, 1], Some("App.Key")));
    assert_eq!(root_counts(&graph)[0].kind.name(), "static");
    assert_eq!(graph.object_at(0x300), Some(2));
}

#[test]
fn references_that_are_missing_at_the_end_are_stated() {
    let mut builder = GraphBuilder::default();
    let node = builder.add_type("Node", None);
    builder.object_with(0x10, node, 8, 2);
    builder.object_with(0x20, node, 8, u32::MAX - 9);
    builder.target(0x20);
    builder.target(0x10);
    let graph = builder.finish();
    assert_eq!(graph.references_of(0), [1, 0]);
    assert_eq!(graph.references_of(1), [0; 0]);
    assert_eq!(
        graph.incomplete().unwrap().to_string(),
        format!("{} references of objects are missing", u32::MAX - 9)
    );
}

#[test]
fn objects_at_one_address_are_counted() {
    let mut builder = GraphBuilder::default();
    let node = builder.add_type("Node", None);
    for address in [0x10, 0x20, 0x10, 0x10] {
        builder.object(address, node, 8);
        builder.reference(0x10);
    }
    let graph = builder.finish();
    assert_eq!((graph.repeated_addresses(), graph.references_of(3)), (2, &[0][..]));
}

#[test]
fn without_roots_an_incomplete_heap_retains_an_unknown_amount() {
    let whole = graph(4, &[], &[0]);
    let mut builder = GraphBuilder::default();
    let a = builder.add_type("A", None);
    builder.object(0x10, a, 8);
    builder.incomplete(Incomplete::NoEnd);
    let part = builder.finish();
    assert!(whole.has_known_roots() && !part.has_known_roots());
    let [rows, of_part] = [&whole, &part].map(|it| type_rows(it, &Dominators::new(it)));
    assert_eq!(of_part[0].retained_bytes, None);
    let changes = compare((&whole, &rows), (&part, &of_part));
    assert!(changes.iter().all(|it| it.retained_bytes[1].is_none()), "{changes:?}");
}

#[test]
fn growth_is_compared_by_name() {
    let before = graph(4, &[], &[0]);
    let after = graph(9, &[(0, 1)], &[0]);
    let [rows_before, rows_after] = [&before, &after].map(|it| type_rows(it, &Dominators::new(it)));
    let changes = compare((&before, &rows_before), (&after, &rows_after));
    let shown: Vec<_> = changes.iter().map(|it| (&*it.name.name, it.count, it.growth())).collect();
    assert_eq!(shown, [("A", [2, 5], 42), ("B", [2, 4], 28)]);
    assert_eq!(changes[0].retained_bytes, [Some(8), Some(17)]);
    assert!(compare((&before, &rows_before), (&before, &rows_before)).is_empty());
    assert_eq!(TypeOrder::Count.of(&rows_after[0]), 5);
}
