//! The document: tables of the measured cells, and the reason for every cell that is not a plain answer.
//!
//! Owns the text, which depends only on versions and cells, and the parsing of cells from it.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use crate::cell::{Cell, NOT_TRIED};
use crate::column::{Column, Key};
use crate::rows::{self, GROUPS, Row};

const HEAD: &str = "\
# Commands that runtimes support

`cargo xtask conformance` sends every command of the Diagnostic IPC protocol to live runtimes, a new process for each cell, checks the effect of the command, and writes this page;
`cargo xtask conformance --check` compares. Sections are those of the specification (dotnet/diagnostics, `documentation/design-docs/ipc-protocol.md`).

| cell | means |
| --- | --- |
| answered | the reply was OK, and the effect in the second column was found |
| no effect | the reply was OK, but the effect was not found |
| a name in capitals | rejected with this HRESULT (section “Errors”) |
| not known | rejected with UNKNOWN_COMMAND: the runtime is older than the command |
| not sent | runtap examined the target and did not send the command, because it would harm the target or have no effect |
| no port | the runtime can't be suspended at startup and connects to no port |
| not tried | the runtime was not available |

A number behind a cell is that of a note below. “runtap's server” is the embeddable server, `runtap-diag-server`, in a program that implements every command; there, the checked effect is
that the request reached the program.
";

/// A table: the heading of each column, and its cells by request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Matrix {
    columns: BTreeMap<Key, (String, BTreeMap<&'static str, Cell>)>,
}

impl Matrix {
    /// Returns a table in which every cell is untried.
    pub(crate) fn untried() -> Self {
        let column = |key: Key| {
            let cells = rows::all().map(|row| (row.request, Cell::new(NOT_TRIED))).collect();
            (key, (format!("{} ({NOT_TRIED})", key.name()), cells))
        };
        Self { columns: Key::ALL.map(column).into_iter().collect() }
    }

    pub(crate) fn set(&mut self, column: &Column, cells: BTreeMap<&'static str, Cell>) {
        self.columns.insert(column.key, (column.title(), cells));
    }

    /// Copies from `other` the cells that are untried here.
    pub(crate) fn fill(&mut self, other: &Self) {
        for (key, (title, cells)) in &mut self.columns {
            let Some((known_title, known)) = other.columns.get(key) else { continue };
            let untried = cells.values().all(|cell| cell.is(NOT_TRIED));
            if untried {
                title.clone_from(known_title);
            }
            for (request, cell) in cells {
                if cell.is(NOT_TRIED)
                    && let Some(known) = known.get(request)
                {
                    cell.clone_from(known);
                }
            }
        }
    }

    fn cell(&self, key: Key, row: &Row) -> Cell {
        let cell = self.columns.get(&key).and_then(|(_, cells)| cells.get(row.request));
        cell.cloned().unwrap_or_else(|| Cell::new(NOT_TRIED))
    }

    /// Returns every cell that is neither an answer nor explained, and unexplained differences between runtap's server
    /// and the newest runtime.
    pub(crate) fn holes(&self) -> Vec<String> {
        let cells = rows::all().flat_map(|row| Key::ALL.map(|key| (row, key, self.cell(key, row))));
        let differs = |row: &Row, key: Key, cell: &Cell| {
            let newest = self.cell(Key::Net10, row);
            key == Key::OwnServer
                && *cell != newest
                && !newest.is(NOT_TRIED)
                && row.reason(key, cell).is_none()
        };
        let holes = cells.filter(|(row, key, cell)| row.is_hole(*key, cell) || differs(row, *key, cell));
        holes.map(|(row, key, cell)| format!("{}: {}: {cell}", self.title(key), row.request)).collect()
    }

    pub(crate) fn title(&self, key: Key) -> &str {
        self.columns.get(&key).map_or("", |(title, _)| title)
    }

    /// Returns the text of the page.
    pub(crate) fn to_text(&self) -> String {
        let mut notes = Notes::default();
        let mut text = HEAD.to_owned();
        for (title, rows) in GROUPS {
            let mut table = vec![self.heading()];
            for row in *rows {
                let cells = Key::ALL.map(|key| {
                    let cell = self.cell(key, row);
                    match row.reason(key, &cell) {
                        Some(reason) => format!("{cell} ({})", notes.number(reason)),
                        None => cell.to_string(),
                    }
                });
                table.push(
                    [row.request.to_owned(), row.checked.to_owned()].into_iter().chain(cells).collect(),
                );
            }
            let _ = write!(text, "\n## {title}\n\n{}", aligned(&table));
        }
        text.push_str("\n## Notes\n\n");
        for (number, note) in (1..).zip(&notes.texts) {
            let _ = writeln!(text, "{number}. {note}");
        }
        text
    }

    fn heading(&self) -> Vec<String> {
        let fixed = ["request", "looked at"].map(str::to_owned);
        fixed.into_iter().chain(Key::ALL.map(|key| self.title(key).to_owned())).collect()
    }

    /// Parses the cells of a page that [`to_text`](Self::to_text) wrote; missing cells are untried.
    pub(crate) fn from_text(text: &str) -> Self {
        let mut matrix = Self::untried();
        for line in text.lines() {
            let fields: Vec<&str> = line.trim().trim_matches('|').split('|').map(str::trim).collect();
            let Some((&request, cells)) =
                fields.split_first().and_then(|(request, rest)| Some((request, rest.get(1..)?)))
            else {
                continue;
            };
            let row = rows::all().find(|row| row.request == request);
            for (key, field) in Key::ALL.into_iter().zip(cells) {
                let Some((title, known)) = matrix.columns.get_mut(&key) else { continue };
                match row {
                    Some(row) => {
                        let cell = field.split_once(" (").map_or(*field, |(cell, _)| cell);
                        known.insert(row.request, Cell::new(cell));
                    }
                    None if request == "request" => (*field).clone_into(title),
                    None => {}
                }
            }
        }
        matrix
    }
}

/// Reasons in the order in which the table first refers to them.
#[derive(Debug, Default)]
struct Notes {
    texts: Vec<String>,
}

impl Notes {
    fn number(&mut self, text: String) -> usize {
        let place = self.texts.iter().position(|known| *known == text).unwrap_or_else(|| {
            self.texts.push(text);
            self.texts.len() - 1
        });
        place + 1
    }
}

/// Formats a Markdown table with aligned columns.
fn aligned(rows: &[Vec<String>]) -> String {
    let columns = rows.first().map_or(0, Vec::len);
    let width = |column: usize| {
        rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let mut text = String::new();
    for (number, row) in rows.iter().enumerate() {
        for (cell, width) in row.iter().zip(&widths) {
            let _ = write!(text, "| {cell:<width$} ");
        }
        text.push_str("|\n");
        if number == 0 {
            for width in &widths {
                let _ = write!(text, "| {:-<width$} ", "");
            }
            text.push_str("|\n");
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cell::{ANSWERED, NOT_KNOWN};
    use crate::column::Subject;

    fn measured(key: Key, text: &str) -> Matrix {
        let mut matrix = Matrix::untried();
        let column = Column { key, version: "1.2.3".to_owned(), subject: Subject::OwnServer };
        matrix.set(&column, rows::all().map(|row| (row.request, Cell::new(text))).collect());
        matrix
    }

    #[test]
    fn what_is_written_can_be_read_back() {
        let mut matrix = measured(Key::Core31, NOT_KNOWN);
        matrix.fill(&measured(Key::Net8, "E_FAIL"));
        let text = matrix.to_text();
        assert!(
            text.contains("| .NET Core 1.2.3 ")
                && text.contains("| E_FAIL (")
                && text.contains("| .NET (not tried) ")
        );
        assert_eq!(Matrix::from_text(&text), matrix);
        assert_eq!(Matrix::from_text(&text).to_text(), text);
    }

    #[test]
    fn only_what_was_not_tried_is_filled() {
        let mut matrix = measured(Key::Net8, ANSWERED);
        matrix.fill(&measured(Key::Net8, NOT_KNOWN));
        matrix.fill(&measured(Key::Net9, NOT_KNOWN));
        let row = rows::all().next().unwrap();
        assert!(matrix.cell(Key::Net8, row).is(ANSWERED));
        assert!(matrix.cell(Key::Net9, row).is(NOT_KNOWN));
        assert_eq!(matrix.title(Key::Net9), ".NET 1.2.3");
        assert!(matrix.cell(Key::Net10, row).is(NOT_TRIED));
    }

    #[test]
    fn a_cell_without_a_reason_is_a_hole() {
        assert_eq!(measured(Key::Net10, ANSWERED).holes(), Vec::<String>::new());
        let mut matrix = measured(Key::OwnServer, ANSWERED);
        let row = rows::all().next().unwrap();
        let (_, newest) = matrix.columns.get_mut(&Key::Net10).unwrap();
        newest.insert(row.request, Cell::new("E_FAIL"));
        let of_ours = matrix.holes().into_iter().filter(|hole| hole.ends_with(": answered"));
        assert_eq!(of_ours.count(), 1, "it differs from the newest runtime");
        let holes = measured(Key::Net10, "failed").holes();
        assert_eq!(holes.len(), rows::all().count());
        assert!(holes.iter().all(|hole| hole.starts_with(".NET 1.2.3: ") && hole.ends_with(": failed")));
    }
}
