//! Heap graphs as `.heapsnapshot` files, which the developer tools of Chromium and Node.js read.
//!
//! | in the file | content |
//! |---|---|
//! | node 0, of type `synthetic` | the root of the graph, with one edge to `(GC roots)` |
//! | node 1, `(GC roots)` | an edge to each kind of root, such as `(static)` |
//! | a node of type `synthetic` for each kind of root | an edge to each root: a `property` with the name of the root, or an `element` |
//! | node of type `object`, `array` or `string` | an object; its name is that of its type, its `id` is 2 × index + 1 |
//! | edge of type `element` | a reference; the events and dumps do not state the names of fields of .NET objects |
//! | edge of type `internal`, `dependent handle` | from the key of a dependent handle to its value |
//!
//! Sources: `src/profiler/heap-snapshot-generator.cc` (`HeapSnapshotJSONSerializer`) of V8 describes the layout: nodes and
//! edges are flat lists of numbers, and an edge names its target by the position of the node's first number.

use std::io::{self, Write};

use runtap_model::order;

use super::{json_text, separated};
use crate::dense::{Map, small};
use crate::{Graph, ObjectId, Root, RootKind};

/// The description of the numbers. `detachedness` is required by some readers.
const META: &str = r#"{"node_fields":["type","name","id","self_size","edge_count","trace_node_id","detachedness"],"node_types":[["hidden","array","string","object","code","closure","regexp","number","native","synthetic","concatenated string","sliced string","symbol","bigint","object shape"],"string","number","number","number","number","number"],"edge_fields":["type","name_or_index","to_node"],"edge_types":[["context","element","property","internal","hidden","shortcut","weak"],"string_or_number","node"],"trace_function_info_fields":["function_id","name","script_name","script_id","line","column"],"trace_node_fields":["id","function_info_index","count","size","children"],"sample_fields":["timestamp_us","last_assigned_id"],"location_fields":["object_index","script_id","line","column"]}"#;

/// The number of numbers of a node.
const NODE_FIELDS: u64 = 7;

/// Types of nodes: their positions in the list above.
const ARRAY: u8 = 1;
const STRING: u8 = 2;
const OBJECT: u8 = 3;
const SYNTHETIC: u8 = 9;

/// Types of edges.
const ELEMENT: u8 = 1;
const PROPERTY: u8 = 2;
const INTERNAL: u8 = 3;

/// The texts of a file.
#[derive(Default)]
struct Strings {
    texts: Vec<String>,
    numbers: Map<String, u32>,
}

impl Strings {
    fn number(&mut self, text: &str) -> u32 {
        if let Some(number) = self.numbers.get(text) {
            return *number;
        }
        let number = small(self.texts.len());
        self.texts.push(text.to_owned());
        self.numbers.insert(text.to_owned(), number);
        number
    }
}

/// The nodes in front of the objects.
struct Roots<'a> {
    graph: &'a Graph,
    /// The roots of each kind.
    kinds: Vec<(RootKind, Vec<&'a Root>)>,
}

impl<'a> Roots<'a> {
    fn new(graph: &'a Graph) -> Self {
        let mut kinds: Vec<(RootKind, Vec<&Root>)> = Vec::new();
        for root in graph.roots() {
            match kinds.iter_mut().find(|(kind, _)| *kind == root.kind) {
                Some((_, roots)) => roots.push(root),
                None => kinds.push((root.kind, vec![root])),
            }
        }
        order::sort_by_key(&mut kinds, |(kind, _)| *kind);
        Self { graph, kinds }
    }

    /// Returns the position of an object's node.
    fn position(&self, object: ObjectId) -> u64 {
        (2 + self.kinds.len() as u64 + u64::from(object)) * NODE_FIELDS
    }

    fn node_count(&self) -> u64 {
        2 + self.kinds.len() as u64 + u64::from(self.graph.object_count())
    }

    fn edge_count(&self) -> u64 {
        (1 + self.kinds.len() + self.graph.roots().len() + self.graph.reference_count()) as u64
    }
}

/// Writes a graph as a `.heapsnapshot` file.
///
/// Takes memory for the names of types and roots.
///
/// # Errors
/// If writing fails.
pub fn write(graph: &Graph, out: &mut dyn Write) -> io::Result<()> {
    let (roots, mut strings) = (Roots::new(graph), Strings::default());
    let (nodes, edges) = (roots.node_count(), roots.edge_count());
    writeln!(
        out,
        "{{\"snapshot\":{{\"meta\":{META},\"node_count\":{nodes},\"edge_count\":{edges},\"trace_function_count\":0}},"
    )?;
    out.write_all(b"\"nodes\":[")?;
    write_nodes(&roots, &mut strings, out)?;
    out.write_all(b"],\n\"edges\":[")?;
    write_edges(&roots, &mut strings, out)?;
    out.write_all(b"],\n\"trace_function_infos\":[],\n\"trace_tree\":[],\n\"samples\":[],\n\"locations\":[],\n\"strings\":[")?;
    separated(&strings.texts, ",\n", out, |text, out| json_text(text, out))?;
    out.write_all(b"]}\n")
}

fn write_nodes(roots: &Roots<'_>, strings: &mut Strings, out: &mut dyn Write) -> io::Result<()> {
    let graph = roots.graph;
    let empty = strings.number("");
    let all = strings.number("(GC roots)");
    writeln!(out, "{SYNTHETIC},{empty},1,0,1,0,0")?;
    writeln!(out, ",{SYNTHETIC},{all},3,0,{},0,0", roots.kinds.len())?;
    for (number, (kind, of_kind)) in (2..).zip(&roots.kinds) {
        let name = strings.number(&format!("({})", kind.name()));
        writeln!(out, ",{SYNTHETIC},{name},{},0,{},0,0", 2 * number + 1, of_kind.len())?;
    }
    let types: Vec<(u8, u32)> = graph
        .types()
        .iter()
        .map(|it| match it.name.as_str() {
            "" => (OBJECT, strings.number("(unknown type)")),
            name @ ("System.String" | "java.lang.String") => (STRING, strings.number(name)),
            name if name.ends_with(']') => (ARRAY, strings.number(name)),
            name => (OBJECT, strings.number(name)),
        })
        .collect();
    let first = 2 + roots.kinds.len() as u64;
    for object in 0..graph.object_count() {
        let (node_type, name) = types.get(graph.type_of(object) as usize).copied().unwrap_or((OBJECT, empty));
        let (id, bytes) = (2 * (first + u64::from(object)) + 1, graph.size_of(object));
        writeln!(out, ",{node_type},{name},{id},{bytes},{},0,0", graph.references_of(object).len())?;
    }
    Ok(())
}

fn write_edges(roots: &Roots<'_>, strings: &mut Strings, out: &mut dyn Write) -> io::Result<()> {
    let graph = roots.graph;
    write!(out, "{ELEMENT},1,{NODE_FIELDS}")?;
    for (number, _) in (1..).zip(&roots.kinds) {
        write!(out, ",{ELEMENT},{number},{}", (1 + number) * NODE_FIELDS)?;
    }
    for (_, of_kind) in &roots.kinds {
        for (number, root) in (1..).zip(of_kind) {
            let to = roots.position(root.object);
            match graph.root_name(root) {
                Some(name) => writeln!(out, ",{PROPERTY},{},{to}", strings.number(name))?,
                None => writeln!(out, ",{ELEMENT},{number},{to}")?,
            }
        }
    }
    let dependent = strings.number("dependent handle");
    for object in 0..graph.object_count() {
        for (number, target) in (0..).zip(graph.references_of(object)) {
            let to = roots.position(*target);
            if graph.dependent_count() > 0 && graph.is_dependent(object, *target) {
                write!(out, ",{INTERNAL},{dependent},{to}")?;
            } else {
                let number: u32 = number;
                write!(out, ",{ELEMENT},{number},{to}")?;
            }
        }
        if object % 16 == 15 {
            out.write_all(b"\n")?;
        }
    }
    Ok(())
}
