//! Any bytes as the heap dump of a JVM, in pieces: no panic, no more objects than bytes allow, and the same graph in one piece.
#![no_main]

use runtap_heap::hprof::{HeapDump, HprofReader};
use runtap_heap::{Dominators, path_to_root, type_rows};

fn read(bytes: &[u8], piece: usize) -> Option<HeapDump> {
    let mut reader = HprofReader::new();
    for piece in bytes.chunks(piece) {
        reader.feed(piece).ok()?;
    }
    Some(reader.finish())
}

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let (whole, pieces) = (read(bytes, usize::MAX), read(bytes, 7));
    assert_eq!(whole.is_some(), pieces.is_some());
    let (Some(whole), Some(pieces)) = (whole, pieces) else { return };
    let graph = &whole.graph;
    assert!(graph.object_count() as usize <= bytes.len() && graph.reference_count() <= bytes.len());
    assert_eq!(graph.object_count(), pieces.graph.object_count());
    assert_eq!(graph.total_bytes(), pieces.graph.total_bytes());
    assert_eq!(graph.incomplete(), pieces.graph.incomplete());
    assert_eq!(whole.texts, pieces.texts);
    let dominators = Dominators::new(graph);
    assert!(dominators.reachable_bytes() <= graph.total_bytes());
    let rows = type_rows(graph, &dominators);
    assert_eq!(rows.iter().map(|row| row.count).sum::<u64>(), u64::from(graph.object_count()));
    for object in 0..graph.object_count() {
        assert_eq!(path_to_root(graph, |it| it == object).is_some(), dominators.is_reachable(object));
    }
});
