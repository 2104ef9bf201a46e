//! Any bytes as the heap graph of a .NET program: no panic, and no more objects and references than bytes allow.
#![no_main]

use runtap_heap::gcdump::GcDumpReader;
use runtap_heap::{Dominators, type_rows};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let mut reader = GcDumpReader::new();
    reader.feed(bytes);
    let Ok(graph) = reader.finish() else { return };
    // A node without references takes at least the 4 bytes of its offset.
    assert!(graph.object_count() as usize <= bytes.len() / 4);
    assert!(graph.reference_count() <= 5 * bytes.len());
    let dominators = Dominators::new(&graph);
    assert!(dominators.reachable_bytes() <= graph.total_bytes());
    let rows = type_rows(&graph, &dominators);
    assert_eq!(rows.iter().map(|row| row.count).sum::<u64>(), u64::from(graph.object_count()));
});
