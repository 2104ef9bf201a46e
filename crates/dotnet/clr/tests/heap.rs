//! Heaps that recordings describe, compared with what the programs themselves counted.

use std::collections::BTreeMap;

use proptest::prelude::*;
use runtap_clr::HeapEvents;
use runtap_clr::clr::RUNTIME;
use runtap_heap::{Dominators, Graph, Incomplete, RootKind, path_to_root, root_counts, type_rows};
use runtap_nettrace::{EventToWrite, Metadata, Observe, Reader, StreamItem, TraceHeader, Writer};
use runtap_testkit::{Skip, require, shared_data};
use serde_json::Value;

/// Reads the heap in a recording; damaged parts are skipped.
fn read(bytes: &[u8]) -> Option<Graph> {
    let mut events = HeapEvents::new();
    let mut reader = Reader::new();
    reader.feed(bytes);
    reader.finish();
    loop {
        match reader.next() {
            Ok(Some(item)) => events.item(&item),
            Ok(None) => return events.finish(),
            // The reader continues behind a damaged block.
            Err(_) => {}
        }
    }
}

fn counts(graph: &Graph) -> BTreeMap<String, (u64, u64, u64)> {
    type_rows(graph, &Dominators::new(graph))
        .iter()
        .map(|row| {
            let name = graph.types()[row.type_id as usize].name.clone();
            (name, (row.count, row.bytes, row.retained_bytes.unwrap_or(0)))
        })
        .collect()
}

#[test]
fn heaps_equal_what_the_program_counted() {
    for runtime in ["net9", "net10"] {
        require!(known_heap(runtime));
    }
}

fn known_heap(runtime: &str) -> Result<(), Skip> {
    let answers = shared_data(format!("nettrace/{runtime}/heap-bigheap.json"))?;
    let expected = &serde_json::from_slice::<Value>(&answers).unwrap()["heap"];
    let bytes = shared_data(format!("nettrace/{runtime}/heap-bigheap.nettrace.zst"))?;
    let graph = read(&bytes).unwrap();
    assert_eq!(graph.incomplete(), None);
    assert_eq!(u64::from(graph.object_count()), expected["nodes"].as_u64().unwrap());
    assert_eq!(graph.total_bytes(), expected["bytes"].as_u64().unwrap());
    let dependent = expected["dependent_edges"].as_u64().unwrap();
    let references = graph.reference_count() as u64 + graph.dangling_references();
    assert_eq!(references, expected["edges"].as_u64().unwrap() + dependent, "{runtime}");
    let counts = counts(&graph);
    for (name, numbers) in expected["by_type"].as_object().unwrap() {
        let known = (numbers[0].as_u64().unwrap(), numbers[1].as_u64().unwrap());
        let (count, bytes, _) = counts[name];
        assert_eq!((count, bytes), known, "{name} on {runtime}");
    }
    let roots: BTreeMap<RootKind, u64> = root_counts(&graph).iter().map(|it| (it.kind, it.count)).collect();
    // The expected numbers include weak roots, and those without an object.
    let in_events = strong_roots(&bytes);
    let of = |kind: u8| in_events.get(&kind).copied().unwrap_or_default();
    let sum = |kinds: &[RootKind]| -> u64 { kinds.iter().filter_map(|kind| roots.get(kind)).sum() };
    assert_eq!(sum(&[RootKind::Stack]), of(0));
    assert_eq!(sum(&[RootKind::Finalizer]), of(1));
    assert_eq!(sum(&[RootKind::Handle, RootKind::PinnedHandle, RootKind::CountedHandle]), of(2));
    let statics = sum(&[RootKind::StaticField, RootKind::ThreadStaticField]);
    assert_eq!(statics, expected["static_roots"].as_u64().unwrap());

    // The links of the chain are only reachable through its head.
    let (links, bytes, retained) = counts["BigHeap.ChainLink"];
    assert!(retained >= bytes, "{links} links of {bytes} bytes retain {retained}");
    let is_link = |object| graph.type_name(object).is_some_and(|it| it.name == "BigHeap.ChainLink");
    let path = path_to_root(&graph, is_link).unwrap();
    let field = graph.root_name(&path.root);
    assert!(
        path.root.kind != RootKind::StaticField || field.is_some_and(|it| !it.contains('.')),
        "{path:?} {field:?}"
    );
    let module = graph.types().iter().find(|it| it.name == "BigHeap.ChainLink").unwrap().module.clone();
    assert_eq!(module.as_deref(), Some("bigheap"));
    Ok(())
}

/// Returns the number of root edges to objects by kind, without weak ones.
fn strong_roots(bytes: &[u8]) -> BTreeMap<u8, u64> {
    let mut reader = Reader::new();
    reader.feed(bytes);
    let mut counts = BTreeMap::new();
    while let Some(item) = reader.next().unwrap() {
        let StreamItem::Event(event) = item else { continue };
        if event.metadata.is_some_and(|it| it.event_id == 16 && it.provider == RUNTIME) {
            for root in event.payload[10..].chunks_exact(21) {
                if root[..8] != [0; 8] && root[9] & 2 == 0 {
                    *counts.entry(root[8]).or_default() += 1;
                }
            }
        }
    }
    counts
}

#[test]
fn older_runtimes_describe_heaps_too() {
    let graph = read(&require!(shared_data("nettrace/net8-heap-v4.nettrace.zst"))).unwrap();
    assert_eq!((graph.object_count(), graph.total_bytes()), (3_552, 342_149));
    assert_eq!(graph.incomplete(), None);
    assert_eq!(counts(&graph)["System.String"].1, 100_498);
    let graph = read(&require!(shared_data("nettrace/rt31_gcheap2.nettrace"))).unwrap();
    assert_eq!((graph.object_count(), graph.total_bytes()), (1_591, 167_369));
    assert_eq!(counts(&graph)["System.String"].1, 46_986);
}

/// Writes events of the runtime's provider, each with an id and a payload.
fn recording(events: &[(u32, Vec<u8>)]) -> Vec<u8> {
    let mut writer = Writer::new(&TraceHeader::new(1_700_000_000_000_000_000, 0, 1_000_000_000));
    let mut ids = BTreeMap::new();
    for (timestamp, (id, payload)) in (0..).zip(events) {
        let metadata_id =
            *ids.entry(*id).or_insert_with(|| writer.define_event(&Metadata::new(RUNTIME, *id, "")).unwrap());
        let event =
            EventToWrite { metadata_id, capture_thread_id: 1, timestamp, payload, ..Default::default() };
        writer.event(&event).unwrap();
    }
    writer.finish()
}

/// Returns the payload of a numbered block with this number of entries.
fn block(index: u32, count: u32, entries: impl FnOnce(&mut runtap_wire::Writer)) -> Vec<u8> {
    let mut w = runtap_wire::Writer::new();
    w.u32(index).u32(count).u16(0);
    entries(&mut w);
    w.into_bytes()
}

fn collection(id: u32, number: u32) -> (u32, Vec<u8>) {
    let mut w = runtap_wire::Writer::new();
    w.u32(number).u32(2).u32(1).u32(0);
    (id, w.into_bytes())
}

/// The events of a heap: a static field, whose object is a dependent handle's key for another object.
fn events() -> Vec<(u32, Vec<u8>)> {
    let types = {
        let mut w = runtap_wire::Writer::new();
        w.u32(1).u16(0).u64(0x77).u64(0).u32(0).u32(0).u8(0).utf16z("App.Node").u32(1).u64(9);
        w.into_bytes()
    };
    let field = {
        let mut w = runtap_wire::Writer::new();
        w.u32(1).u64(0).u16(0).u64(1).u64(0x100).u64(0x77).u32(1).utf16z("Current");
        w.into_bytes()
    };
    let node = |address, size, edges| {
        move |w: &mut runtap_wire::Writer| {
            w.u64(address).u64(size).u64(0x77).u64(edges);
        }
    };
    vec![
        collection(1, 7),
        (18, block(0, 1, node(0x100, 24, 1))),
        (
            18,
            block(1, 2, |w| {
                node(0x200, 5 << 32, 0)(w);
                node(0x300, 24, 2)(w);
            }),
        ),
        (
            19,
            block(0, 1, |w| {
                w.u64(0x300).u32(0);
            }),
        ),
        (
            19,
            block(1, 2, |w| {
                w.u64(0x300).u32(0).u64(0x100).u32(0);
            }),
        ),
        (
            16,
            block(0, 2, |w| {
                w.u64(0x300).u8(2).u32(1).u64(5).u64(0x200).u8(2).u32(2).u64(6);
            }),
        ),
        (
            17,
            block(0, 1, |w| {
                w.u64(0x100).u64(0x200).u64(7);
            }),
        ),
        (38, field),
        collection(2, 7),
        (15, types),
        // A second heap is ignored.
        collection(1, 8),
        (18, block(0, 1, node(0x900, 24, 0))),
        collection(2, 8),
    ]
}

#[test]
fn a_heap_is_built_from_its_events() {
    let graph = read(&recording(&events())).unwrap();
    assert_eq!(graph.incomplete(), None);
    assert_eq!((graph.object_count(), graph.total_bytes()), (3, (5 << 32) + 48));
    assert_eq!((graph.references_of(0), graph.references_of(2)), (&[2, 1][..], &[2, 0][..]));
    assert!(graph.is_dependent(0, 1));
    assert_eq!(graph.weak_references(), 1);
    let kinds: Vec<_> = graph.roots().iter().map(|root| (root.kind, graph.root_name(root))).collect();
    let expected = [(RootKind::PinnedHandle, None), (RootKind::ThreadStaticField, Some("Current"))];
    assert_eq!(kinds, expected);
    assert!(counts(&graph).contains_key("App.Node"));
}

#[test]
fn lost_blocks_and_a_missing_end_are_stated() {
    let without = |n: usize| {
        let mut events = events();
        events.remove(n);
        read(&recording(&events)).unwrap().incomplete().cloned()
    };
    let lost = |subject| Some(Incomplete::LostEvents { subject, blocks: 1 });
    assert_eq!(without(1), lost("objects"));
    assert_eq!(without(3), lost("references"));
    assert_eq!(without(0), Some(Incomplete::NoEnd));
    assert_eq!(read(&recording(&events()[..8])).unwrap().incomplete(), Some(&Incomplete::NoEnd));
    assert!(matches!(without(4), Some(Incomplete::MissingReferences { missing: 2 })));
    assert!(read(&recording(&events()[..1])).is_none());
}

#[test]
fn references_behind_a_gap_belong_to_no_object() {
    // Without the second block of objects, only the reference of the first object can be attributed.
    let mut gap = events();
    gap[2].1 = block(2, 0, |_| {});
    let graph = read(&recording(&gap)).unwrap();
    assert_eq!((graph.object_count(), graph.dangling_references()), (1, 3));
    // Without the first block of references, none can.
    let mut gap = events();
    gap.remove(3);
    let graph = read(&recording(&gap)).unwrap();
    assert_eq!((graph.object_count(), graph.reference_count()), (3, 1));
    assert!(graph.is_dependent(0, 1));
    for (repeated, place) in [(2, 3), (3, 5), (5, 6)] {
        let mut twice = events();
        twice.insert(place, twice[repeated].clone());
        let (graph, expected) = (read(&recording(&twice)).unwrap(), read(&recording(&events())).unwrap());
        assert_eq!(graph.object_count(), expected.object_count());
        assert_eq!((graph.roots(), graph.references_of(2)), (expected.roots(), expected.references_of(2)));
    }
}

proptest! {
    #[test]
    fn damaged_payloads_do_not_panic(
        event in 1usize..10,
        changes in proptest::collection::vec((0usize..80, any::<u8>()), 1..4),
        length in 0usize..90,
    ) {
        let mut events = events();
        let payload = &mut events[event].1;
        for (place, value) in changes {
            let place = place % payload.len();
            payload[place] = value;
        }
        payload.truncate(length);
        if let Some(graph) = read(&recording(&events)) {
            prop_assert!(graph.object_count() <= 3);
            let _ = Dominators::new(&graph);
        }
    }
}
