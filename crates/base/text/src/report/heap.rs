//! Reports on the objects in a heap: the document `runtap.heap/1`, and the same as text.

use std::io;
use std::path::Path;

use runtap_clr::report::ReportKind;
use runtap_convert::source::{Heap, Reason};
use runtap_heap::{Dominators, Graph, Incomplete, TypeName, TypeOrder, path_to_root, root_counts, type_rows};
use runtap_model::order::sort_by_key;
use serde::Serialize;

use crate::advice;
use crate::document::Partial;
use crate::units::{Bytes, Count, Things};
use crate::{Clean, Column, Print, Table, TextOptions};

/// The document `runtap.heap/1`.
#[derive(Debug, Serialize)]
pub struct HeapDocument {
    schema: &'static str,
    file: String,
    format: &'static str,
    kind: &'static str,
    objects: u64,
    bytes: u64,
    complete: bool,
    incomplete_reason: Option<String>,
    references: usize,
    /// `None`, like all retained sizes, if the roots are missing from an incomplete heap.
    reachable_objects: Option<u64>,
    reachable_bytes: Option<u64>,
    weak_references: u64,
    dependent_handles: usize,
    roots: Vec<RootRow>,
    types_count: usize,
    types: Vec<TypeRow>,
    repeated_texts: Option<TextRows>,
    path: Option<HeapPath>,
    lost: u64,
    partial: Option<Partial>,
    /// Whether the file is a recording that describes no heap.
    #[serde(skip)]
    has_no_heap: bool,
}

#[derive(Debug, Serialize)]
struct RootRow {
    kind: &'static str,
    count: u64,
}

#[derive(Debug, Serialize)]
struct TypeRow {
    #[serde(rename = "type")]
    name: Option<String>,
    module: Option<String>,
    count: u64,
    bytes: u64,
    retained_bytes: Option<u64>,
}

#[derive(Debug, Serialize)]
struct TextRows {
    arrays: u64,
    wasted_bytes: u64,
    texts_count: usize,
    texts: Vec<TextRow>,
}

#[derive(Debug, Serialize)]
struct TextRow {
    text: String,
    truncated: bool,
    copies: u64,
    wasted_bytes: u64,
}

impl HeapDocument {
    /// Creates the document for a heap. Computes what each object keeps alive. `path_to` is the name of a type, or the
    /// hexadecimal address of an object, to which the document contains a path from a root.
    pub fn new(file: &Path, heap: Heap, order: TypeOrder, path_to: Option<&str>) -> Self {
        let reason = incomplete_reason(&heap);
        let Heap { format, graph, texts, lost, partial } = heap;
        let dominators = Dominators::new(&graph);
        let has_roots = reason.is_none() || !graph.roots().is_empty();
        let mut rows = type_rows(&graph, &dominators);
        sort_by_key(&mut rows, |row| std::cmp::Reverse(order.of(row)));
        let types: Vec<TypeRow> = rows
            .into_iter()
            .map(|row| {
                let of_type = graph.types().get(row.type_id as usize);
                TypeRow {
                    name: of_type.map(|it| it.name.clone()).filter(|name| !name.is_empty()),
                    module: of_type.and_then(|it| it.module.clone()),
                    count: row.count,
                    bytes: row.bytes,
                    retained_bytes: has_roots.then_some(row.retained_bytes),
                }
            })
            .collect();
        Self {
            schema: "runtap.heap/1",
            file: file.display().to_string(),
            format: format.name(),
            kind: format.runtime(),
            objects: graph.object_count().into(),
            bytes: graph.total_bytes(),
            complete: reason.is_none(),
            incomplete_reason: reason,
            references: graph.reference_count(),
            reachable_objects: has_roots.then(|| dominators.reachable_count().into()),
            reachable_bytes: has_roots.then(|| dominators.reachable_bytes()),
            weak_references: graph.weak_references(),
            dependent_handles: graph.dependent_count(),
            roots: root_rows(&graph),
            types_count: types.len(),
            types,
            path: path_to.map(|target| HeapPath::new(&graph, &dominators, target)),
            repeated_texts: texts.map(|texts| TextRows {
                arrays: texts.arrays,
                wasted_bytes: texts.wasted_bytes,
                texts_count: texts.texts.len(),
                texts: texts
                    .texts
                    .into_iter()
                    .map(|it| TextRow {
                        text: it.text,
                        truncated: it.is_truncated,
                        copies: it.copies,
                        wasted_bytes: it.wasted_bytes,
                    })
                    .collect(),
            }),
            lost,
            partial: partial.map(Into::into),
            has_no_heap: graph.incomplete() == Some(&Incomplete::NoHeap),
        }
    }

    /// Truncates each list to its first `n` elements.
    pub fn limit(&mut self, n: usize) {
        self.types.truncate(n);
        if let Some(texts) = &mut self.repeated_texts {
            texts.texts.truncate(n);
        }
    }

    /// Returns what is missing from the file or from its heap. `None` if nothing is, and for a complete file without a heap.
    pub fn missing(&self) -> Option<&str> {
        self.incomplete_reason
            .as_deref()
            .filter(|_| !self.has_no_heap || self.partial.is_some() || self.lost > 0)
    }
}

/// A shortest path from a root to an object.
#[derive(Debug, Serialize)]
struct HeapPath {
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
    bytes: u64,
    retained_bytes: u64,
    dependent: bool,
}

impl HeapPath {
    /// Finds a path to an object of a type, or to the object at an address. It has no root if no root reaches one.
    fn new(graph: &Graph, dominators: &Dominators, target: &str) -> Self {
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
                module: of_type.and_then(|it| it.module.clone()),
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
                name: graph.root_name(&path.root).map(Into::into),
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
            let label = if it.dependent { format!("{label} (dependent handle)") } else { label };
            [it.address.clone(), Bytes(it.bytes).to_string(), Bytes(it.retained_bytes).to_string(), label]
        });
        table.print(out, options)
    }
}

/// Returns what is missing from a heap or from its file. `None` if nothing is.
pub(super) fn incomplete_reason(heap: &Heap) -> Option<String> {
    let of_file = heap.partial.as_ref().map(|partial| &partial.reason);
    first_reason(of_file, heap.graph.incomplete(), heap.lost)
}

/// Returns the reason that explains the others. `lost` is the number of events that the target dropped.
fn first_reason(of_file: Option<&Reason>, of_graph: Option<&Incomplete>, lost: u64) -> Option<String> {
    // A heap is truncated if runtap stops reading its file.
    let stopped = of_file.filter(|it| matches!(it, Reason::Memory { .. } | Reason::Compressed { .. }));
    // A heap whose events were all dropped looks like a recording without a heap.
    let of_graph = of_graph.filter(|it| lost == 0 || **it != Incomplete::NoHeap);
    let events = Things(lost, "event");
    stopped
        .map(ToString::to_string)
        .or_else(|| of_graph.map(ToString::to_string))
        .or_else(|| of_file.map(ToString::to_string))
        .or_else(|| {
            (lost > 0).then(|| format!("the target dropped {events}; objects or references may be missing"))
        })
}

/// Returns `MODULE!TYPE`.
pub(super) fn label(name: Option<&str>, module: Option<&str>) -> String {
    let name = name.unwrap_or("(unknown)");
    module.map_or_else(|| name.to_owned(), |module| format!("{module}!{name}"))
}

fn root_rows(graph: &Graph) -> Vec<RootRow> {
    root_counts(graph).into_iter().map(|it| RootRow { kind: it.kind.name(), count: it.count }).collect()
}

impl Print for HeapDocument {
    fn print(&self, out: &mut dyn io::Write, options: &TextOptions<'_>) -> io::Result<()> {
        if let Some(path) = &self.path {
            return path.print(out, options);
        }
        if self.has_no_heap {
            // A table of zeros would look like a measurement.
            return writeln!(out, "{}", advice::empty_report(ReportKind::Heap, None));
        }
        write!(out, "{}, {}", Things(self.objects, "object"), Bytes(self.bytes))?;
        if let Some((objects, bytes)) = self.reachable_objects.zip(self.reachable_bytes)
            && objects < self.objects
        {
            let (objects, bytes) = (Count(self.objects - objects), Bytes(self.bytes.saturating_sub(bytes)));
            write!(out, "; no root reaches {objects} of them ({bytes})")?;
        }
        let roots: Vec<String> =
            self.roots.iter().map(|it| format!("{} {}", Count(it.count), it.kind)).collect();
        let roots = match roots.as_slice() {
            [] if self.reachable_objects.is_none() => "unknown".to_owned(),
            [] => "none".to_owned(),
            roots => roots.join(", "),
        };
        writeln!(out, "\nRoots: {roots}\n")?;
        let columns = [
            Column::number("COUNT"),
            Column::number("SIZE"),
            Column::number("RETAINED"),
            Column::text("TYPE"),
        ];
        let mut table = Table::new("type", columns);
        table.fill(self.types.iter(), options, |row| {
            let label = label(row.name.as_deref(), row.module.as_deref());
            [
                Count(row.count).to_string(),
                Bytes(row.bytes).to_string(),
                row.retained_bytes.map_or_else(|| "?".to_owned(), |bytes| Bytes(bytes).to_string()),
                label,
            ]
        });
        table.print(out, options)?;
        let Some(texts) = self.repeated_texts.as_ref().filter(|texts| !texts.texts.is_empty()) else {
            return Ok(());
        };
        let wasted = Bytes(texts.wasted_bytes);
        writeln!(
            out,
            "\n{} of strings in more than one array ({wasted} could be saved)\n",
            Things(texts.texts_count as u64, "text")
        )?;
        let columns = [Column::number("WASTED"), Column::number("COPIES"), Column::text("TEXT")];
        let mut table = Table::new("text", columns);
        table.fill(texts.texts.iter(), options, |row| {
            let more = if row.truncated { "…" } else { "" };
            [
                Bytes(row.wasted_bytes).to_string(),
                Count(row.copies).to_string(),
                format!("{}{more}", row.text),
            ]
        });
        table.print(out, options)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reason_why_reading_stopped_is_stated_instead_of_a_truncated_heap() {
        let truncated = Incomplete::Truncated { offset: 9 };
        for reason in [Reason::Memory { most: 7 }, Reason::Compressed { error: "no".to_owned() }] {
            assert_eq!(first_reason(Some(&reason), Some(&truncated), 0), Some(reason.to_string()));
        }
        let skipped = Reason::Skipped { blocks: 1 };
        assert_eq!(first_reason(Some(&skipped), Some(&truncated), 0), Some(truncated.to_string()));
    }
}
