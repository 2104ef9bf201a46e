//! Heap graphs as JSON: the document `runtap.heap.graph/1`, with a line for each type, root and object.
//!
//! | member | content |
//! |---|---|
//! | `complete`, `incomplete_reason` | whether the graph contains the whole heap, and why not |
//! | `types[]` | `name`, `module`; `null` if unknown |
//! | `roots[]` | `object`, `kind`, `name`; an object is its index in `objects` |
//! | `objects[]` | lists: type (index in `types`), bytes, address, list of the objects that it references |
//! | `dependent_handles[]` | pairs of key and value; the value is also among the references of the key |

use std::io::{self, Write};

use super::{json_option, json_text, separated};
use crate::Graph;

/// Writes a graph as JSON.
///
/// # Errors
/// If writing fails.
pub fn write(graph: &Graph, out: &mut dyn Write) -> io::Result<()> {
    let complete = graph.incomplete().is_none();
    write!(out, "{{\"schema\":\"runtap.heap.graph/1\",\"complete\":{complete},\"incomplete_reason\":")?;
    json_option(graph.incomplete().map(ToString::to_string).as_deref(), out)?;
    out.write_all(b",\n\"types\":[\n")?;
    separated(graph.types(), ",\n", out, |it, out| {
        out.write_all(b"{\"name\":")?;
        json_option(Some(it.name.as_str()).filter(|name| !name.is_empty()), out)?;
        out.write_all(b",\"module\":")?;
        json_option(it.module.as_deref(), out)?;
        out.write_all(b"}")
    })?;
    out.write_all(b"],\n\"roots\":[\n")?;
    separated(graph.roots(), ",\n", out, |root, out| {
        write!(out, "{{\"object\":{},\"kind\":", root.object)?;
        json_text(root.kind.name(), out)?;
        out.write_all(b",\"name\":")?;
        json_option(graph.root_name(root), out)?;
        out.write_all(b"}")
    })?;
    out.write_all(b"],\n\"objects\":[\n")?;
    separated(0..graph.object_count(), ",\n", out, |object, out| {
        let (type_id, bytes) = (graph.type_of(object), graph.size_of(object));
        write!(out, "[{type_id},{bytes},\"{:#x}\",[", graph.address_of(object))?;
        separated(graph.references_of(object), ",", out, |target, out| write!(out, "{target}"))?;
        out.write_all(b"]]")
    })?;
    out.write_all(b"],\n\"dependent_handles\":[")?;
    separated(&graph.dependent, ",", out, |(key, value), out| write!(out, "[{key},{value}]"))?;
    out.write_all(b"]}\n")
}
