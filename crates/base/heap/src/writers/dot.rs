//! The largest part of a dominator tree as a graph for Graphviz.
//!
//! | in the file | content |
//! |---|---|
//! | node | an object: type, address, own and retained size in bytes |
//! | edge | from an object to one that it alone keeps alive |
//! | node `roots` | what no single object keeps alive |
//! | node `more` | the number of objects that are left out |
//!
//! The objects are those that retain most. The object that dominates another one retains more than that, so the nodes
//! form a tree.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io::{self, Write};

use crate::dense::small;
use crate::{Dominators, Graph, ObjectId};

/// The default number of objects: about as many as a person can look at.
pub const DEFAULT_OBJECTS: usize = 200;

/// Writes the `most` objects that retain most.
///
/// Takes 4 bytes an object of memory.
///
/// # Errors
/// If writing fails.
pub fn write(graph: &Graph, dominators: &Dominators, most: usize, out: &mut dyn Write) -> io::Result<()> {
    let objects = largest(graph, dominators, most);
    out.write_all(b"digraph heap {\n  rankdir=LR;\n  node [shape=box, fontname=\"sans-serif\"];\n")?;
    let (count, bytes) = (dominators.reachable_count(), dominators.reachable_bytes());
    writeln!(out, "  roots [label=\"roots\\n{count} objects, {bytes} bytes\", shape=ellipse];")?;
    for object in &objects {
        let name = graph.type_name(*object).map_or("", |it| it.name.as_str());
        write!(out, "  o{object} [label=\"")?;
        label(if name.is_empty() { "(unknown type)" } else { name }, out)?;
        let (address, bytes) = (graph.address_of(*object), graph.size_of(*object));
        writeln!(out, "\\n{address:#x}\\n{bytes} bytes, retains {}\"];", dominators.retained(*object))?;
    }
    for object in &objects {
        match dominators.immediate(*object) {
            Some(dominator) => writeln!(out, "  o{dominator} -> o{object};")?,
            None => writeln!(out, "  roots -> o{object};")?,
        }
    }
    let rest = count.saturating_sub(small(objects.len()));
    if rest > 0 {
        writeln!(out, "  more [label=\"{rest} more objects\", shape=plaintext];")?;
    }
    out.write_all(b"}\n")
}

/// Returns the reachable objects that retain most, each one behind its dominator.
fn largest(graph: &Graph, dominators: &Dominators, most: usize) -> Vec<ObjectId> {
    let mut largest = BinaryHeap::new();
    for object in (0..graph.object_count()).filter(|object| dominators.is_reachable(*object)) {
        largest.push((Reverse(dominators.retained(object)), dominators.number(object), object));
        if largest.len() > most {
            largest.pop();
        }
    }
    largest.into_sorted_vec().into_iter().map(|(_, _, object)| object).collect()
}

/// Writes a text inside of the quotes of a label.
fn label(text: &str, out: &mut dyn Write) -> io::Result<()> {
    for character in text.chars() {
        match character {
            '"' | '\\' => write!(out, "\\{character}")?,
            _ if character.is_control() => write!(out, "\u{fffd}")?,
            _ => write!(out, "{character}")?,
        }
    }
    Ok(())
}
