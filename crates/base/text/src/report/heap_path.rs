//! A shortest path from a root to an object of a heap, as a member of the document `runtap.heap/1` and as text.

use std::io;

use runtap_heap::{Dominators, Graph, TypeName, path_to_root};
use serde::Serialize;

use super::heap::label;
use crate::units::{Bytes, Things};
use crate::{Clean, Column, Print, Table, TextOptions};

/// A shortest path from a root to an object.
#[derive(Debug, Serialize)]
pub(super) struct HeapPath {
    to: String,
    /// The number of objects with this type or address.
    matching_objects: u64,
    /// The type with the nearest name, if there is no matching object.
    #[serde(skip)]
    nearest: Option<String>,
    root: Option<PathRoot>,
    objects: Vec<PathObject>,
}

#[derive(Debug, Serialize)]
struct PathRoot {
    kind: &'static str,
    name: Option<String>,
}

#[derive(Debug, Serialize)]
struct PathObject {
    address: String,
    #[serde(rename = "type")]
    name: Option<String>,
    module: Option<String>,
    /// The class that an object of type `java.lang.Class` represents.
    class: Option<String>,
    bytes: u64,
    retained_bytes: u64,
    dependent: bool,
}

impl HeapPath {
    /// Finds a path to an object of a type, or to the object at an address. It has no root if no root reaches one.
    pub(super) fn new(graph: &Graph, dominators: &Dominators, target: &str) -> Self {
        let address = target.strip_prefix("0x").and_then(|digits| u64::from_str_radix(digits, 16).ok());
        let is_named =
            |it: &TypeName| it.name == target || label(Some(&it.name), it.module.as_deref()) == target;
        let named: Vec<bool> = graph.types().iter().map(is_named).collect();
        let is_target = |object| match address {
            Some(address) => graph.address_of(object) == address,
            None => named.get(graph.type_of(object) as usize) == Some(&true),
        };
        let matching_objects = (0..graph.object_count()).filter(|object| is_target(*object)).count() as u64;
        let nearest =
            (matching_objects == 0 && address.is_none()).then(|| graph.nearest_type(target)).flatten();
        let found = path_to_root(graph, is_target);
        let objects = found.as_ref().map_or(&[][..], |path| &path.objects);
        let before = std::iter::once(None).chain(objects.iter().map(|object| Some(*object)));
        let objects = objects.iter().zip(before).map(|(object, before)| {
            let of_type = graph.type_name(*object);
            PathObject {
                address: format!("{:#x}", graph.address_of(*object)),
                name: of_type.map(|it| it.name.clone()).filter(|name| !name.is_empty()),
                module: of_type.and_then(|it| it.module.as_deref().map(str::to_owned)),
                class: graph.represented_class(*object).map(str::to_owned),
                bytes: graph.size_of(*object),
                retained_bytes: dominators.retained(*object),
                dependent: before.is_some_and(|before| graph.is_dependent(before, *object)),
            }
        });
        Self {
            to: target.to_owned(),
            matching_objects,
            nearest: nearest.map(str::to_owned),
            objects: objects.collect(),
            root: found.map(|path| PathRoot {
                kind: path.root.kind.name(),
                name: graph.root_name(&path.root).map(str::to_owned),
            }),
        }
    }
}

impl Print for HeapPath {
    fn print(&self, out: &mut dyn io::Write, options: &TextOptions<'_>) -> io::Result<()> {
        let Some(root) = &self.root else {
            let kind = if self.to.starts_with("0x") { "object at" } else { "object of type" };
            let to = Clean(&self.to);
            if self.matching_objects > 0 {
                let objects = Things(self.matching_objects, "object");
                return writeln!(out, "No root reaches {to} ({objects}).");
            }
            write!(out, "The heap has no {kind} {to}")?;
            return match &self.nearest {
                Some(nearest) => writeln!(out, "; the nearest name is {}.", Clean(nearest)),
                None => writeln!(out, "."),
            };
        };
        writeln!(out, "A shortest path from a root to {}:\n", Clean(&self.to))?;
        let columns = [
            Column::text("ADDRESS"),
            Column::number("SIZE"),
            Column::number("RETAINED"),
            Column::text("OBJECT"),
        ];
        let mut table = Table::new("object", columns);
        let name = root.name.as_ref().map_or_else(String::new, |name| format!(" {name}"));
        table.row([String::new(), String::new(), String::new(), format!("root: {}{name}", root.kind)]);
        table.fill(self.objects.iter(), options, |it| {
            let label = label(it.name.as_deref(), it.module.as_deref());
            let label = it.class.as_ref().map_or_else(|| label.clone(), |class| format!("{label} ({class})"));
            let label = if it.dependent { format!("{label} (dependent handle)") } else { label };
            [it.address.clone(), Bytes(it.bytes).to_string(), Bytes(it.retained_bytes).to_string(), label]
        });
        table.print(out, options)
    }
}
