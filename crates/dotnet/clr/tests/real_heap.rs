//! Heap graphs exchanged with Microsoft's reader and writer of `.gcdump` files.

use std::collections::BTreeMap;
use std::path::Path;

use runtap_clr::HeapEvents;
use runtap_heap::gcdump::{GcDumpReader, GcDumpSource, write};
use runtap_heap::{Dominators, Graph, type_rows};
use runtap_nettrace::{Observe, Reader};
use runtap_testkit::{Peer, RealRuntime, Skip, require, run, shared_data};
use serde_json::Value;

/// The number and size of the objects of each type.
type Types = BTreeMap<String, (u64, u64)>;

fn types(graph: &Graph) -> Types {
    let rows = type_rows(graph, &Dominators::new(graph));
    let mut types = Types::new();
    for row in rows {
        // Types of several modules may have one name.
        let sum = types.entry(graph.types()[row.type_id as usize].name.clone()).or_default();
        *sum = (sum.0 + row.count, sum.1 + row.bytes);
    }
    types
}

/// Returns what the peer reads in a file, without nodes that stand for roots.
fn read_by_peer(peer: &Peer, file: &Path) -> (Value, Types) {
    let mut command = peer.command();
    command.arg("heap").arg(file);
    let document = run(command).expect_code(0).json();
    let mut types = Types::new();
    for row in document["types"].as_array().unwrap() {
        let name = row["type"].as_str().unwrap();
        let name = name.split(" (Bytes > ").next().unwrap();
        let sum = types.entry(name.to_owned()).or_default();
        sum.0 += row["count"].as_u64().unwrap();
        sum.1 += row["bytes"].as_u64().unwrap();
    }
    types.retain(|name, (_, bytes)| *bytes > 0 || !name.starts_with('['));
    (document, types)
}

fn read(file: &Path) -> Graph {
    let mut reader = GcDumpReader::new();
    reader.feed(&std::fs::read(file).unwrap());
    reader.finish().unwrap()
}

#[test]
fn real_peers_read_written_files() {
    let peer = require!(Peer::available("mspipe"));
    let folder = tempfile::tempdir().unwrap();
    for runtime in ["net9", "net10"] {
        let bytes = require!(shared_data(format!("nettrace/{runtime}/heap-bigheap.nettrace.zst")));
        let mut events = HeapEvents::new();
        let mut reader = Reader::new();
        reader.feed(&bytes);
        while let Some(item) = reader.next().unwrap() {
            events.item(&item);
        }
        let graph = events.finish().unwrap();
        let file = folder.path().join("heap.gcdump");
        let mut out = std::fs::File::create(&file).unwrap();
        let source =
            GcDumpSource { process: "bigheap", process_id: 7, is_64_bit: true, ..GcDumpSource::default() };
        write(&graph, &source, &mut out).unwrap();
        let (document, by_peer) = read_by_peer(&peer, &file);
        assert_eq!(by_peer, types(&graph), "{runtime}");
        assert_eq!(document["bytes"], graph.total_bytes());
        assert_eq!(types(&read(&file)), types(&graph));
    }
}

fn peers_files() -> Result<(), Skip> {
    let peer = Peer::available("mspipe")?;
    let folder = tempfile::tempdir().unwrap();
    for runtime in RealRuntime::all()? {
        let launch = runtime.program("bigheap", &["2000", "500", "--linger", "100"])?;
        let mut program = launch.env("TMPDIR", folder.path()).spawn();
        program.wait_for("done");
        let file = folder.path().join("peer.gcdump");
        let mut command = peer.command();
        command.args(["gcdump", "--pid", &program.id().to_string(), "-o"]).arg(&file);
        command.env("TMPDIR", folder.path());
        run(command).expect_code(0);
        let graph = read(&file);
        assert_eq!(graph.incomplete(), None);
        let (_, by_peer) = read_by_peer(&peer, &file);
        assert_eq!(types(&graph), by_peer, "on .NET {}", runtime.major());
        let names: Vec<_> = graph.roots().iter().filter_map(|root| graph.root_name(root)).collect();
        assert!(names.iter().any(|name| name.starts_with("BigHeap.")), "{names:?}");
        program.kill();
    }
    Ok(())
}

#[test]
fn real_files_of_peers_are_read() {
    require!(peers_files());
}
