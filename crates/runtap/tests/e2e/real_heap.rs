//! `heap` on real runtimes: objects, roots and sizes are those that the program `bigheap` states, in every file, and as
//! Microsoft's own reader reads them.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use runtap_testkit::{Peer, RealRuntime, Skip, run};
use serde_json::Value;

use crate::common::{Target, command, folder, json, runtap};

on_each_runtime!(
    objects_are_those_of_the_program,
    a_million_objects_are_complete,
    microsofts_reader_reads_the_same_objects,
);
on_the_newest_runtime!(
    a_full_buffer_is_replaced_by_a_larger_one,
    other_formats_have_all_objects,
    only_java_has_hprof_and_quick_sums,
);

/// Starts `bigheap` with this number of nodes. The graph is complete, and stays until the program receives input.
fn bigheap(runtime: &RealRuntime, nodes: &str) -> Result<Target, Skip> {
    Ok(Target::start(runtime.program("bigheap", &[nodes, "2000", "--stdin"])?))
}

/// Returns the name of a type as the runtime sends it: generic types with their number of arguments, and nested types without
/// namespace and outer type.
fn sent_name(name: &str) -> String {
    let (element, arrays) = name.split_at(name.find('[').unwrap_or(name.len()));
    let (plain, arguments) = match element.split_once('<') {
        Some((plain, arguments)) => (plain, arguments.strip_suffix('>')),
        None => (element, None),
    };
    let plain = plain.rsplit('+').next().unwrap();
    match arguments {
        Some(arguments) => format!("{plain}`{}[{arguments}]{arrays}", arguments.split(',').count()),
        None => format!("{plain}{arrays}"),
    }
}

/// The number and size of the objects of each type.
type Types = BTreeMap<String, (u64, u64)>;

fn types(document: &Value) -> Types {
    let mut types = Types::new();
    for row in document["types"].as_array().unwrap() {
        let Some(name) = row["type"].as_str() else { continue };
        // The peer's names contain the magnitude of the size.
        let sum = types.entry(name.split(" (Bytes > ").next().unwrap().to_owned()).or_default();
        sum.0 += row["count"].as_u64().unwrap();
        sum.1 += row["bytes"].as_u64().unwrap();
    }
    types
}

/// Checks every row of the table that the program has printed. Returns the number of exact rows.
fn assert_truth(target: &Target, types: &Types) -> usize {
    let mut exact = 0;
    for line in target.program.lines() {
        let columns: Vec<&str> = line.split('\t').collect();
        let [name, count, bytes, relation] = columns[..] else { continue };
        let (Ok(count), Ok(bytes)) = (count.parse::<u64>(), bytes.parse::<u64>()) else { continue };
        let name = sent_name(name.split(' ').next().unwrap());
        let found = types.get(&name).copied().unwrap_or_default();
        if relation == "=" {
            assert_eq!(found, (count, bytes), "{name}");
            exact += 1;
        } else {
            assert!(found.0 >= count && found.1 >= bytes, "{name}: {found:?} of {count}, {bytes}");
        }
    }
    exact
}

fn row<'a>(document: &'a Value, name: &str) -> &'a Value {
    let rows = document["types"].as_array().unwrap();
    rows.iter().find(|row| row["type"] == name).unwrap_or_else(|| panic!("no {name} in {document}"))
}

fn objects_are_those_of_the_program(runtime: &RealRuntime) -> Result<(), Skip> {
    let target = bigheap(runtime, "10000")?;
    // The second dump shows that the runtime sends the names of types again.
    for _ in 0..2 {
        let document = json(["heap", &target.p(), "--report", "--format", "json"]);
        assert_eq!((&document["schema"], &document["complete"]), (&"runtap.heap/1".into(), &true.into()));
        assert_eq!((&document["file"], &document["pid"]), (&Value::Null, &target.pid().into()));
        assert!(assert_truth(&target, &types(&document)) > 25);
        assert_eq!(document["unnamed_objects"], 0);
        // The owner, its array and 100 arrays of 10,000 bytes, which nothing else references.
        let owner = row(&document, "BigHeap.Owner");
        assert_eq!(owner["retained_bytes"], 24 + (24 + 800) + 100 * (24 + 10_000));
        assert_eq!(owner["module"], "bigheap");
        // Both halves reference it, so neither retains it.
        assert_eq!(row(&document, "BigHeap.LeftHalf")["retained_bytes"], 24);
    }
    let path = runtap(["heap", &target.p(), "--report", "--path", "BigHeap.Owner"]);
    let path = path.expect_code(0).text();
    assert!(path.contains("root: static Owner") && path.contains("bigheap!BigHeap.Owner"), "{path}");
    let table = runtap(["gcdump", "-p", &target.p(), "--report"]);
    let table = table.expect_code(0).text();
    assert!(table.contains("bigheap!BigHeap.Node") && table.contains("Roots: "), "{table}");
    target.still_answers();
    Ok(())
}

fn a_million_objects_are_complete(runtime: &RealRuntime) -> Result<(), Skip> {
    let target = bigheap(runtime, "1000000")?;
    let document = json(["heap", &target.p(), "--report", "--format", "json"]);
    assert_eq!((&document["complete"], &document["lost"]), (&true.into(), &0.into()));
    assert!(assert_truth(&target, &types(&document)) > 25);
    assert!(document["objects"].as_u64().unwrap() > 1_200_000);
    Ok(())
}

/// Returns the objects that the peer reads in a file, without nodes that stand for roots.
fn read_by_peer(peer: &Peer, file: &Path) -> Types {
    let mut command = peer.command();
    command.arg("heap").arg(file);
    let mut types = types(&run(command).expect_code(0).json());
    types.retain(|name, (_, bytes)| *bytes > 0 || !name.starts_with('['));
    types
}

fn microsofts_reader_reads_the_same_objects(runtime: &RealRuntime) -> Result<(), Skip> {
    let peer = Peer::available("mspipe")?;
    let target = bigheap(runtime, "10000")?;
    let folder = folder();
    let mut heap = command(["heap", &target.p(), "--format", "json"]);
    heap.current_dir(folder.path());
    let summary = run(heap).expect_code(0).json();
    assert_eq!((&summary["schema"], &summary["format"]), (&"runtap.heap.file/1".into(), &"gcdump".into()));
    let name = summary["path"].as_str().unwrap();
    let start = format!("bigheap_{}_", target.pid());
    assert!(name.starts_with(&start) && name.strip_suffix(".gcdump").is_some(), "{name}");
    let file = folder.path().join(name);
    assert_eq!(fs::metadata(&file).unwrap().len(), summary["bytes"].as_u64().unwrap());
    let ours = json(["report", file.to_str().unwrap(), "heap", "--format", "json"]);
    assert_eq!((&ours["objects"], &ours["bytes"]), (&summary["objects"], &summary["heap_bytes"]));
    let ours = types(&ours);
    assert!(assert_truth(&target, &ours) > 25);
    assert_eq!(read_by_peer(&peer, &file), ours);
    Ok(())
}

fn a_full_buffer_is_replaced_by_a_larger_one(runtime: &RealRuntime) -> Result<(), Skip> {
    let target = bigheap(runtime, "1000000")?;
    let found = runtap(["heap", &target.p(), "--buffersize", "1", "--report", "--format", "json"]);
    let found = found.expect_code(0).says("repeating with a buffer of 4096 MB");
    assert!(assert_truth(&target, &types(&found.json())) > 25);
    Ok(())
}

fn other_formats_have_all_objects(runtime: &RealRuntime) -> Result<(), Skip> {
    let target = bigheap(runtime, "1000")?;
    let folder = folder();
    let written = |name: &str| {
        let file = folder.path().join(name);
        let arguments = ["heap", &target.p(), "--format", "json", "-o", file.to_str().unwrap()];
        (json(arguments)["objects"].as_u64().unwrap(), fs::read_to_string(&file).unwrap())
    };
    let (objects, snapshot) = written("a.heapsnapshot");
    let snapshot: Value = serde_json::from_str(&snapshot).unwrap();
    let nodes = snapshot["snapshot"]["node_count"].as_u64().unwrap();
    assert!(nodes > objects && nodes < objects + 20, "{nodes} nodes of {objects} objects");
    let strings = snapshot["strings"].as_array().unwrap();
    assert!(strings.iter().any(|text| text == "BigHeap.Owner") && strings.iter().any(|text| text == "Owner"));
    let (objects, graph) = written("a.json");
    let graph: Value = serde_json::from_str(&graph).unwrap();
    assert_eq!(graph["objects"].as_array().unwrap().len() as u64, objects);
    let (_, dot) = written("a.dot");
    assert!(dot.starts_with("digraph heap {") && dot.contains("BigHeap.Owner"), "{dot}");
    // With a report, the file is only noted.
    let file = folder.path().join("b.gcdump");
    let both = runtap(["heap", &target.p(), "--report", "-o", file.to_str().unwrap()]);
    assert!(both.expect_code(0).says("Wrote ").text().contains("bigheap!BigHeap.Node"));
    assert!(fs::read(&file).unwrap().starts_with(b"\x14\0\0\0!FastSerialization.1"));
    let stdout = runtap(["heap", &target.p(), "--to", "dot", "-o", "-"]);
    assert!(stdout.expect_code(0).stdout.starts_with(b"digraph heap {"));
    Ok(())
}

fn only_java_has_hprof_and_quick_sums(runtime: &RealRuntime) -> Result<(), Skip> {
    let target = bigheap(runtime, "1000")?;
    let folder = folder();
    let file = folder.path().join("a.hprof");
    let refused = runtap(["heap", &target.p(), "-o", file.to_str().unwrap()]);
    refused.expect_code(2).says("only Java programs have heap dumps in the format hprof");
    assert!(!file.exists());
    runtap(["heap", &target.p(), "--quick"]).expect_code(2).says("--quick applies only to Java programs");
    runtap(["heap", &target.p(), "--report", "-o", "-"]).expect_code(2).says("both be written to stdout");
    Ok(())
}
