//! Reports on the objects in a heap: the document `runtap.heap/1`, and the same as text.

use std::io;
use std::path::Path;

use runtap_clr::report::ReportKind;
use runtap_convert::source::{Heap, Reason};
use runtap_heap::{ClassHistogram, Dominators, Graph, Incomplete, TypeOrder, root_counts, type_rows};
use runtap_model::order::sort_by_key;
use serde::Serialize;

use super::heap_path::HeapPath;
use crate::advice;
use crate::document::Partial;
use crate::units::{Bytes, Count, Things};
use crate::{Column, Print, Table, TextOptions};

/// The document `runtap.heap/1`.
#[derive(Debug, Serialize)]
pub struct HeapDocument {
    schema: &'static str,
    /// `None` for the heap of a process.
    file: Option<String>,
    pid: Option<u64>,
    format: &'static str,
    kind: &'static str,
    objects: u64,
    bytes: u64,
    complete: bool,
    incomplete_reason: Option<String>,
    /// `None`, like all that follows from references, for sums by class.
    references: Option<usize>,
    /// `None`, like all retained sizes, if the roots are missing from an incomplete heap.
    reachable_objects: Option<u64>,
    reachable_bytes: Option<u64>,
    weak_references: Option<u64>,
    dependent_handles: Option<usize>,
    dangling_references: Option<u64>,
    repeated_addresses: Option<u64>,
    unnamed_objects: u64,
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
    pub fn new(source: HeapSource<'_>, heap: Heap, order: TypeOrder, path_to: Option<&str>) -> Self {
        let reason = incomplete_reason(&heap);
        let Heap { format, graph, texts, lost, partial } = heap;
        let dominators = Dominators::new(&graph);
        let has_roots = graph.has_known_roots() && (reason.is_none() || !graph.roots().is_empty());
        let mut rows = type_rows(&graph, &dominators);
        sort_by_key(&mut rows, |row| std::cmp::Reverse(order.of(row)));
        let types: Vec<TypeRow> = rows
            .into_iter()
            .map(|row| {
                let of_type = graph.types().get(row.type_id as usize);
                TypeRow {
                    name: of_type.map(|it| it.name.clone()).filter(|name| !name.is_empty()),
                    module: of_type.and_then(|it| it.module.as_deref().map(str::to_owned)),
                    count: row.count,
                    bytes: row.bytes,
                    retained_bytes: row.retained_bytes.filter(|_| has_roots),
                }
            })
            .collect();
        Self {
            schema: "runtap.heap/1",
            file: source.file(),
            pid: source.pid(),
            format: format.name(),
            kind: format.runtime(),
            objects: graph.object_count().into(),
            bytes: graph.total_bytes(),
            complete: reason.is_none(),
            incomplete_reason: reason,
            references: Some(graph.reference_count()),
            reachable_objects: has_roots.then(|| dominators.reachable_count().into()),
            reachable_bytes: has_roots.then(|| dominators.reachable_bytes()),
            weak_references: Some(graph.weak_references()),
            dependent_handles: Some(graph.dependent_count()),
            dangling_references: Some(graph.dangling_references()),
            repeated_addresses: Some(graph.repeated_addresses()),
            unnamed_objects: unnamed(&types),
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

    /// Creates the document for the sums by class that a Java process has reported.
    pub fn of_classes(source: HeapSource<'_>, histogram: ClassHistogram, order: TypeOrder) -> Self {
        let reason = histogram.defect().map(str::to_owned);
        let mut types: Vec<TypeRow> = histogram
            .classes
            .into_iter()
            .map(|it| TypeRow {
                name: Some(it.name),
                module: it.module.as_deref().map(str::to_owned),
                count: it.count,
                bytes: it.bytes,
                retained_bytes: None,
            })
            .collect();
        sort_by_key(&mut types, |row| {
            std::cmp::Reverse(if order == TypeOrder::Count { row.count } else { row.bytes })
        });
        let sum = |number: fn(&TypeRow) -> u64| types.iter().map(number).fold(0, u64::saturating_add);
        Self {
            schema: "runtap.heap/1",
            file: source.file(),
            pid: source.pid(),
            format: "class-histogram",
            kind: "jvm",
            objects: sum(|row| row.count),
            bytes: sum(|row| row.bytes),
            complete: reason.is_none(),
            incomplete_reason: reason,
            references: None,
            reachable_objects: None,
            reachable_bytes: None,
            weak_references: None,
            dependent_handles: None,
            dangling_references: None,
            repeated_addresses: None,
            unnamed_objects: 0,
            roots: Vec::new(),
            types_count: types.len(),
            types,
            repeated_texts: None,
            path: None,
            lost: 0,
            partial: None,
            has_no_heap: false,
        }
    }

    /// Returns what is wrong with the heap although it is complete, for a line below the sums. `None` if nothing is.
    fn defects(&self) -> Option<String> {
        let references = self.dangling_references.unwrap_or(0);
        let repeated = self.repeated_addresses.unwrap_or(0);
        let parts: Vec<String> = [
            (references, "reference", "to addresses without an object"),
            (repeated, "object", "at the address of another one"),
            (self.unnamed_objects, "object", "of unknown type"),
        ]
        .into_iter()
        .filter(|(count, ..)| *count > 0)
        .map(|(count, noun, what)| format!("{} {what}", Things(count, noun)))
        .collect();
        (!parts.is_empty()).then(|| parts.join(", "))
    }

    /// Returns what is missing from a heap or from its file. `None` if nothing is.
    pub fn incomplete_reason(heap: &Heap) -> Option<String> {
        incomplete_reason(heap)
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

/// Where a heap comes from.
#[derive(Debug, Clone, Copy)]
pub enum HeapSource<'a> {
    /// A file.
    File(&'a Path),
    /// A process with this id; 0 if unknown.
    Process(u64),
}

impl HeapSource<'_> {
    fn file(self) -> Option<String> {
        match self {
            Self::File(path) => Some(path.display().to_string()),
            Self::Process(_) => None,
        }
    }

    fn pid(self) -> Option<u64> {
        match self {
            Self::Process(pid) if pid > 0 => Some(pid),
            _ => None,
        }
    }
}

/// Returns the number of objects whose type has no name.
fn unnamed(types: &[TypeRow]) -> u64 {
    types.iter().filter(|row| row.name.is_none()).map(|row| row.count).sum()
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
        write!(out, "\nRoots: {roots}\n")?;
        if let Some(defects) = self.defects() {
            writeln!(out, "Also: {defects}")?;
        }
        writeln!(out)?;
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
