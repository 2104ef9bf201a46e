//! Heap graphs in `.gcdump` files: a file of another tool, files made by hand, and damage.

use proptest::prelude::*;
use runtap_heap::gcdump::{GcDumpReader, GcDumpSource, is_gcdump, write};
use runtap_heap::{Dominators, Graph, Incomplete, RootKind, type_rows};
use runtap_testkit::{require, shared_data};

fn read(bytes: &[u8]) -> Result<Graph, runtap_heap::DecodeError> {
    let mut reader = GcDumpReader::new();
    bytes.chunks(1000).for_each(|piece| reader.feed(piece));
    reader.finish()
}

fn text(out: &mut Vec<u8>, text: &str) {
    let units: Vec<u16> = text.encode_utf16().collect();
    out.extend(i32::try_from(units.len()).unwrap().to_le_bytes());
    for unit in units {
        let byte = |value: u16| u8::try_from(value).unwrap();
        match unit {
            0..0x80 => out.push(byte(unit)),
            0x80..0x800 => out.extend([0xc0 | byte(unit >> 6), 0x80 | byte(unit & 0x3f)]),
            _ => {
                out.extend([
                    0xe0 | byte(unit >> 12),
                    0x80 | byte(unit >> 6 & 0x3f),
                    0x80 | byte(unit & 0x3f),
                ]);
            }
        }
    }
}

fn object(out: &mut Vec<u8>, name: &str, version: i32, oldest: i32) {
    out.extend([5, 5, 1]);
    out.extend(version.to_le_bytes());
    out.extend(oldest.to_le_bytes());
    text(out, name);
    out.push(6);
}

/// Writes a graph with a node of each type, as the numbers of its node.
fn file(types: &[(&str, i32)], nodes: &[&[u8]], addresses: &[u64]) -> Vec<u8> {
    let mut out = b"\x14\0\0\0!FastSerialization.1".to_vec();
    object(&mut out, "GCHeapDump", 10, 8);
    object(&mut out, "Graphs.MemoryGraph", 1, 0);
    out.extend(0i64.to_le_bytes());
    out.extend(0i32.to_le_bytes());
    out.extend(i32::try_from(types.len()).unwrap().to_le_bytes());
    for (name, size) in types {
        text(&mut out, name);
        out.extend(size.to_le_bytes());
        text(&mut out, "/app/app.dll");
    }
    out.extend(i32::try_from(nodes.len()).unwrap().to_le_bytes());
    let mut offset = 0i32;
    for node in nodes {
        out.extend(offset.to_le_bytes());
        offset += i32::try_from(node.len()).unwrap();
    }
    out.extend(offset.to_le_bytes());
    out.extend(nodes.concat());
    out.extend(i32::try_from(addresses.len()).unwrap().to_le_bytes());
    out.extend(addresses.iter().flat_map(|address| address.to_le_bytes()));
    out
}

/// A root with two fields; the first refers to a node that refers to the second one, which refers to itself.
fn example() -> Vec<u8> {
    let types = [
        ("[.NET Roots]", 0),
        ("[static vars]", 0),
        ("[static var App.Käse\u{1f9c0}]", 0),
        ("Node", 24),
        ("System.Byte[] (Bytes > 10K)", 16),
    ];
    let nodes: [&[u8]; 6] = [
        &[0, 1, 1],
        &[2, 2, 1, 2],
        &[4, 1, 1],
        &[6, 1, 1],
        // The size is 16,384.
        &[9, 0x81, 0x80, 0, 1, 0],
        &[6, 0],
    ];
    file(&types, &nodes, &[0, 0, 0, 0x1000, 0x2000, 0x3000])
}

#[test]
fn brackets_become_roots() {
    let bytes = example();
    assert!(is_gcdump(&bytes) && !is_gcdump(&bytes[..20]) && !is_gcdump(b"Nettrace"));
    let graph = read(&bytes).unwrap();
    assert_eq!(graph.incomplete(), None);
    assert_eq!(graph.object_count(), 3);
    let names: Vec<_> = (0..3).map(|object| &*graph.type_name(object).unwrap().name).collect();
    assert_eq!(names, ["Node", "System.Byte[]", "Node"]);
    assert_eq!((graph.size_of(1), graph.address_of(1)), (16_384, 0x2000));
    assert_eq!((graph.references_of(0), graph.references_of(1)), (&[1][..], &[1][..]));
    let roots: Vec<_> =
        graph.roots().iter().map(|root| (root.kind, graph.root_name(root), root.object)).collect();
    assert_eq!(
        roots,
        [(RootKind::StaticField, None, 0), (RootKind::StaticField, Some("App.Käse\u{1f9c0}"), 0)]
    );
    assert_eq!(Dominators::new(&graph).retained(0), 24 + 16_384);
    assert!(!Dominators::new(&graph).is_reachable(2));
}

#[test]
fn roots_of_a_field_share_its_name() {
    let field = format!("[static var App.{}]", "x".repeat(3000));
    let mut node = vec![0, 0x87, 0x50];
    node.extend([1; 976]);
    let bytes = file(&[(&*field, 0), ("Node", 24)], &[&node[..], &[2, 0]], &[0, 0x1000]);
    let graph = read(&bytes).unwrap();
    assert_eq!(graph.roots().len(), 976);
    assert!(graph.roots().iter().all(|root| *root == graph.roots()[0]), "the index of the name is equal");
    let mut written = Vec::new();
    write(&graph, &GcDumpSource::default(), &mut written).unwrap();
    assert!(written.len() < 1 << 16, "{}", written.len());
}

#[test]
fn a_file_of_perfview_is_read() {
    let graph = read(&require!(shared_data("nettrace/test1.gcdump.zst"))).unwrap();
    assert_eq!(graph.incomplete(), None);
    // The file has 6,482 nodes; the one at the top stands for the roots.
    assert_eq!((graph.object_count(), graph.total_bytes()), (6_481, 1_009_270));
    assert_eq!(graph.reference_count() + graph.roots().len(), 15_020);
    let dominators = Dominators::new(&graph);
    assert_eq!(dominators.reachable_count(), graph.object_count());
    assert!(type_rows(&graph, &dominators).len() > 1_000);
}

#[test]
fn a_truncated_file_gives_the_part_that_it_has() {
    let bytes = example();
    let mut last = 0;
    for end in 0..bytes.len() {
        match read(&bytes[..end]) {
            Ok(graph) => {
                assert!(matches!(graph.incomplete(), Some(Incomplete::Truncated { .. })), "{end}");
                assert!(graph.object_count() >= last, "{end}");
                last = graph.object_count();
            }
            Err(error) => assert!(error.is_incomplete() && last == 0, "{end}: {error}"),
        }
    }
    assert_eq!(last, 3);
}

#[test]
fn nodes_that_overlap_and_newer_files_are_rejected() {
    // A node with 464 references, and 39 without any.
    let node = [&[0, 0x83, 0x50][..], &[0; 464]].concat();
    let nodes: Vec<&[u8]> = std::iter::once(&*node).chain([&[0, 0][..]; 39]).collect();
    let mut bytes = file(&[("Node", 8)], &nodes, &[]);
    let graph = read(&bytes).unwrap();
    assert_eq!((graph.incomplete(), graph.object_count(), graph.reference_count()), (None, 40, 464));
    // All of them have the references of the first one.
    let offsets = bytes.windows(4).position(|four| four == 40i32.to_le_bytes()).unwrap() + 4;
    bytes[offsets..offsets + 4 * 40].fill(0);
    let graph = read(&bytes).unwrap();
    assert!(graph.incomplete().unwrap().to_string().contains("overlap"));
    assert_eq!(graph.object_count(), 0);
    let mut newer = b"\x14\0\0\0!FastSerialization.1".to_vec();
    object(&mut newer, "GCHeapDump", 10, 8);
    object(&mut newer, "Graphs.MemoryGraph", 2, 1);
    let error = read(&newer).unwrap_err().to_string();
    assert!(error.contains("version of the graph") && error.ends_with("is too new"), "{error}");
    let error = read(b"\x14\0\0\0!FastSerialization.1\x05\x05\x01").unwrap_err();
    assert!(error.is_incomplete(), "{error}");
    assert!(read(&[b'x'; 40]).unwrap_err().to_string().contains("is not that of a heap graph"));
}

#[test]
fn a_written_file_is_read_back() {
    for graph in
        [read(&example()).unwrap(), read(&require!(shared_data("nettrace/test1.gcdump.zst"))).unwrap()]
    {
        let mut bytes = Vec::new();
        write(&graph, &GcDumpSource { process: "app", process_id: 7, ..Default::default() }, &mut bytes)
            .unwrap();
        let copy = read(&bytes).unwrap();
        assert_eq!(copy.incomplete(), None);
        assert_eq!((copy.object_count(), copy.total_bytes()), (graph.object_count(), graph.total_bytes()));
        for object in 0..graph.object_count() {
            assert_eq!(copy.type_name(object), graph.type_name(object));
            assert_eq!(copy.references_of(object), graph.references_of(object));
            assert_eq!(copy.address_of(object), graph.address_of(object));
        }
        let roots = |graph: &Graph| {
            let roots = graph.roots().iter();
            let mut roots: Vec<_> =
                roots.map(|it| (it.kind, it.object, graph.root_name(it).map(String::from))).collect();
            roots.sort();
            roots
        };
        assert_eq!(roots(&copy), roots(&graph));
    }
}

proptest! {
    #[test]
    fn damage_does_not_panic(changes in proptest::collection::vec((60usize..1000, any::<u8>()), 1..6)) {
        let mut bytes = example();
        for (place, value) in changes {
            let place = place % bytes.len();
            bytes[place] = value;
        }
        if let Ok(graph) = read(&bytes) {
            prop_assert!(Dominators::new(&graph).reachable_bytes() <= graph.total_bytes());
        }
    }
}
