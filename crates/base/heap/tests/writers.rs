//! Graphs in the formats of other tools: the layout that their readers require, and texts that could break it.

use runtap_heap::writers::{dot, heapsnapshot, json};
use runtap_heap::{Dominators, Graph, GraphBuilder, Incomplete, RootKind};
use serde_json::Value;

/// A holder with two parts, one of which refers to itself; a string; a key with a dependent value; garbage.
fn example() -> Graph {
    let mut builder = GraphBuilder::default();
    let holder = builder.add_type("App.Holder\"\\\n\u{1b}\u{2028}\u{202e}", Some("app".into()));
    let part = builder.add_type("App.Part[]", None);
    let text = builder.add_type("System.String", None);
    let unknown = builder.type_of(9);
    builder.object(0x1000, holder, 32);
    builder.reference(0x2000);
    builder.reference(0x3000);
    builder.object(0x2000, part, 5 << 30);
    builder.reference(0x2000);
    builder.object(0x3000, part, 24);
    builder.object(0x4000, text, 28);
    builder.object(0x5000, unknown, 40);
    builder.object(0x6000, part, 16);
    builder.dependent(0x1000, 0x5000);
    builder.root(0x1000, RootKind::StaticField, Some("All\"".to_owned()));
    builder.root(0x4000, RootKind::Stack, None);
    builder.root(0x1000, RootKind::Stack, None);
    builder.finish()
}

fn written(write: impl Fn(&mut dyn std::io::Write) -> std::io::Result<()>) -> String {
    let mut out = Vec::new();
    write(&mut out).unwrap();
    String::from_utf8(out).unwrap()
}

fn parsed(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

fn numbers(list: &Value) -> Vec<u64> {
    list.as_array().unwrap().iter().map(|it| it.as_u64().unwrap()).collect()
}

/// The nodes and edges of a snapshot as its readers see them.
struct Snapshot {
    /// Type, name, id and size of each node.
    nodes: Vec<(String, String, u64, u64)>,
    /// For each node the type, the name or number, and the target of its edges.
    edges: Vec<Vec<(String, String, usize)>>,
}

/// Reads a snapshot by its own description, as the developer tools do, and checks what they rely on.
fn read_snapshot(text: &str) -> Snapshot {
    let document = parsed(text);
    let meta = &document["snapshot"]["meta"];
    let names = |list: &Value| -> Vec<String> {
        list.as_array().unwrap().iter().map(|it| it.as_str().unwrap().to_owned()).collect()
    };
    let (node_fields, edge_fields) = (names(&meta["node_fields"]), names(&meta["edge_fields"]));
    let (node_types, edge_types) = (names(&meta["node_types"][0]), names(&meta["edge_types"][0]));
    assert_eq!(meta["node_types"].as_array().unwrap().len(), node_fields.len());
    assert_eq!(meta["edge_types"].as_array().unwrap().len(), edge_fields.len());
    let strings = names(&document["strings"]);
    let (nodes, edges) = (numbers(&document["nodes"]), numbers(&document["edges"]));
    let (width, edge_width) = (node_fields.len(), edge_fields.len());
    let count = |name: &str| usize::try_from(document["snapshot"][name].as_u64().unwrap()).unwrap();
    assert_eq!(nodes.len(), count("node_count") * width);
    assert_eq!(edges.len(), count("edge_count") * edge_width);
    for member in ["trace_function_infos", "trace_tree", "samples", "locations"] {
        assert_eq!(document[member], Value::Array(Vec::new()), "{member}");
    }
    let index = |value: u64| usize::try_from(value).unwrap();
    let place = |name: &str| node_fields.iter().position(|it| it == name).unwrap();
    let mut snapshot = Snapshot { nodes: Vec::new(), edges: Vec::new() };
    let mut rest = edges.chunks_exact(edge_width);
    for node in nodes.chunks_exact(width) {
        let edge_count = index(node[place("edge_count")]);
        let of_node = rest.by_ref().take(edge_count).map(|edge| {
            let kind = edge_types[index(edge[0])].clone();
            let is_named = matches!(kind.as_str(), "property" | "internal" | "context" | "shortcut");
            let name = if is_named { strings[index(edge[1])].clone() } else { edge[1].to_string() };
            assert_eq!(edge[2] % width as u64, 0, "an edge leads to the first number of a node");
            assert!(index(edge[2]) < nodes.len());
            (kind, name, index(edge[2]) / width)
        });
        let of_node: Vec<_> = of_node.collect();
        assert_eq!(of_node.len(), edge_count);
        snapshot.edges.push(of_node);
        let kind = node_types[index(node[place("type")])].clone();
        let (id, size) = (node[place("id")], node[place("self_size")]);
        snapshot.nodes.push((kind, strings[index(node[place("name")])].clone(), id, size));
    }
    assert!(rest.next().is_none(), "each edge belongs to a node");
    let mut ids: Vec<u64> = snapshot.nodes.iter().map(|it| it.2).collect();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), snapshot.nodes.len());
    snapshot
}

#[test]
fn a_snapshot_has_the_objects_references_and_roots() {
    let graph = example();
    let snapshot = read_snapshot(&written(|out| heapsnapshot::write(&graph, out)));
    let node = |n: usize| (snapshot.nodes[n].0.as_str(), snapshot.nodes[n].1.as_str(), snapshot.nodes[n].3);
    let edges = |n: usize| -> Vec<(&str, &str, usize)> {
        snapshot.edges[n].iter().map(|(kind, name, to)| (kind.as_str(), name.as_str(), *to)).collect()
    };
    assert_eq!(node(0), ("synthetic", "", 0));
    assert_eq!(node(1), ("synthetic", "(GC roots)", 0));
    assert_eq!((node(2), node(3)), (("synthetic", "(stack)", 0), ("synthetic", "(static)", 0)));
    assert_eq!(node(4), ("object", "App.Holder\"\\\n\u{1b}\u{2028}\u{202e}", 32));
    assert_eq!(node(5), ("array", "App.Part[]", 5 << 30));
    assert_eq!((node(7).0, node(8).1), ("string", "(unknown type)"));
    assert_eq!(edges(0), [("element", "1", 1)]);
    assert_eq!(edges(1), [("element", "1", 2), ("element", "2", 3)]);
    assert_eq!(edges(2), [("element", "1", 7), ("element", "2", 4)]);
    assert_eq!(edges(3), [("property", "All\"", 4)]);
    let holder = [("element", "0", 5), ("element", "1", 6), ("internal", "dependent handle", 8)];
    assert_eq!((edges(4), edges(5)), (holder.to_vec(), vec![("element", "0", 5)]));
    assert_eq!(snapshot.nodes.len(), 10);
}

#[test]
fn an_empty_graph_is_a_valid_snapshot() {
    let snapshot = read_snapshot(&written(|out| heapsnapshot::write(&GraphBuilder::default().finish(), out)));
    assert_eq!((snapshot.nodes.len(), snapshot.edges[1].len()), (2, 0));
}

#[test]
fn json_has_everything() {
    let graph = example();
    let text = written(|out| json::write(&graph, out));
    let document = parsed(&text);
    assert_eq!((&document["schema"], &document["complete"]), (&"runtap.heap.graph/1".into(), &true.into()));
    assert_eq!(document["types"][0]["name"], "App.Holder\"\\\n\u{1b}\u{2028}\u{202e}");
    assert_eq!(
        (&document["types"][0]["module"], &document["types"][3]["name"]),
        (&"app".into(), &Value::Null)
    );
    assert_eq!(document["objects"][0], serde_json::json!([0, 32, "0x1000", [1, 2, 4]]));
    assert_eq!(document["objects"][1], serde_json::json!([1, 5u64 << 30, "0x2000", [1]]));
    assert_eq!(document["roots"][0], serde_json::json!({"object": 0, "kind": "static", "name": "All\""}));
    assert_eq!(document["dependent_handles"], serde_json::json!([[0, 4]]));
    // One line for each object, so that scripts need not parse all of it at once.
    assert!(text.contains("\n[2,28,\"0x4000\",[]],\n"), "{text}");
    let missing = Graph::missing(Incomplete::NoEnd);
    let document = parsed(&written(|out| json::write(&missing, out)));
    assert_eq!(document["incomplete_reason"], Incomplete::NoEnd.to_string());
}

#[test]
fn dot_has_the_objects_that_retain_most_as_a_tree() {
    let graph = example();
    let dominators = Dominators::new(&graph);
    let text = written(|out| dot::write(&graph, &dominators, 2, out));
    assert_eq!(
        text,
        "digraph heap {
  rankdir=LR;
  node [shape=box, fontname=\"sans-serif\"];
  roots [label=\"roots\\n5 objects, 5368709244 bytes\", shape=ellipse];
  o0 [label=\"App.Holder\\\"\\\\\u{fffd}\u{fffd}\u{2028}\u{202e}\\n0x1000\\n32 bytes, retains 5368709216\"];
  o1 [label=\"App.Part[]\\n0x2000\\n5368709120 bytes, retains 5368709120\"];
  roots -> o0;
  o0 -> o1;
  more [label=\"3 more objects\", shape=plaintext];
}
"
    );
    let all = written(|out| dot::write(&graph, &dominators, 100, out));
    assert!(all.contains("o0 -> o4;") && all.contains("roots -> o3;") && !all.contains("more ["), "{all}");
    assert!(!all.contains("o5"), "garbage is not in the tree");
}
