//! What grew between two heaps: the document `runtap.heap.diff/1`, and the same as text.

use std::io;
use std::path::Path;

use runtap_convert::source::Heap;
use runtap_heap::{Dominators, TypeChange, compare, type_rows};
use serde::Serialize;

use super::heap::{incomplete_reason, label};
use crate::units::{Bytes, Count, Things};
use crate::{Clean, Column, Print, Table, TextOptions};

/// The document `runtap.heap.diff/1`.
#[derive(Debug, Serialize)]
pub struct HeapDiffDocument {
    schema: &'static str,
    before: HeapSide,
    after: HeapSide,
    types_count: usize,
    types: Vec<ChangeRow>,
}

/// A heap that is compared.
#[derive(Debug, Serialize)]
struct HeapSide {
    file: String,
    objects: u64,
    bytes: u64,
    complete: bool,
    incomplete_reason: Option<String>,
}

#[derive(Debug, Serialize)]
struct ChangeRow {
    #[serde(rename = "type")]
    name: Option<String>,
    module: Option<String>,
    growth_bytes: i64,
    count_before: u64,
    count_after: u64,
    bytes_before: u64,
    bytes_after: u64,
    /// `None` if the roots of the heap are unknown.
    retained_bytes_before: Option<u64>,
    retained_bytes_after: Option<u64>,
}

impl HeapDiffDocument {
    /// Compares two heaps by type. Types that did not change are left out; those that grew most are first.
    pub fn new([(before_file, before), (after_file, after)]: [(&Path, &Heap); 2]) -> Self {
        let rows = [before, after].map(|heap| type_rows(&heap.graph, &Dominators::new(&heap.graph)));
        let [rows_before, rows_after] = &rows;
        let changes = compare((&before.graph, rows_before), (&after.graph, rows_after));
        let types: Vec<ChangeRow> = changes.into_iter().map(ChangeRow::new).collect();
        let side = |file: &Path, heap: &Heap| {
            let reason = incomplete_reason(heap);
            HeapSide {
                file: file.display().to_string(),
                objects: heap.graph.object_count().into(),
                bytes: heap.graph.total_bytes(),
                complete: reason.is_none(),
                incomplete_reason: reason,
            }
        };
        Self {
            schema: "runtap.heap.diff/1",
            before: side(before_file, before),
            after: side(after_file, after),
            types_count: types.len(),
            types,
        }
    }

    /// Truncates the list of types to its first `n` elements.
    pub fn limit(&mut self, n: usize) {
        self.types.truncate(n);
    }

    /// Returns a text about each heap that is incomplete.
    pub fn missing(&self) -> Vec<String> {
        let reason = |side: &HeapSide| {
            side.incomplete_reason.as_ref().map(|reason| format!("{} is partial: {reason}", side.file))
        };
        [&self.before, &self.after].into_iter().filter_map(reason).collect()
    }
}

impl ChangeRow {
    fn new(change: TypeChange) -> Self {
        let growth = change.growth();
        let TypeChange { name, count, bytes, retained_bytes } = change;
        let ([count_before, count_after], [bytes_before, bytes_after]) = (count, bytes);
        let [retained_bytes_before, retained_bytes_after] = retained_bytes;
        Self {
            name: Some(name.name).filter(|name| !name.is_empty()),
            module: name.module.as_deref().map(str::to_owned),
            growth_bytes: i64::try_from(growth).unwrap_or(if growth < 0 { i64::MIN } else { i64::MAX }),
            count_before,
            count_after,
            bytes_before,
            bytes_after,
            retained_bytes_before,
            retained_bytes_after,
        }
    }
}

/// Formats a difference with its sign.
fn signed(difference: i64, text: impl Fn(u64) -> String) -> String {
    let sign = if difference < 0 { "-" } else { "+" };
    format!("{sign}{}", text(difference.unsigned_abs()))
}

impl Print for HeapDiffDocument {
    fn print(&self, out: &mut dyn io::Write, options: &TextOptions<'_>) -> io::Result<()> {
        for (title, side) in [("before", &self.before), ("after", &self.after)] {
            let (objects, bytes) = (Things(side.objects, "object"), Bytes(side.bytes));
            writeln!(out, "{title}: {objects}, {bytes} ({})", Clean(&side.file))?;
        }
        writeln!(out)?;
        if self.types.is_empty() {
            return writeln!(out, "The number and size of the objects of each type are equal.");
        }
        let columns = [
            Column::number("GROWTH"),
            Column::number("OBJECTS"),
            Column::number("SIZE AFTER"),
            Column::number("RETAINED AFTER"),
            Column::text("TYPE"),
        ];
        let mut table = Table::new("type", columns);
        table.fill(self.types.iter(), options, |row| {
            let objects = row.count_after.cast_signed().wrapping_sub(row.count_before.cast_signed());
            [
                signed(row.growth_bytes, |bytes| Bytes(bytes).to_string()),
                signed(objects, |count| Count(count).to_string()),
                Bytes(row.bytes_after).to_string(),
                row.retained_bytes_after.map_or_else(|| "?".to_owned(), |bytes| Bytes(bytes).to_string()),
                label(row.name.as_deref(), row.module.as_deref()),
            ]
        });
        table.print(out, options)
    }
}
