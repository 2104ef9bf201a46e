//! Tables with columns that fit their contents, right-aligned numbers, and a count of omitted rows.

use std::io;

use crate::units::{Count, noun};
use crate::{Clean, TextOptions, cut};

/// Maximum width of a text column. Longer texts shift the following columns.
const MAX_COLUMN_WIDTH: usize = 32;

/// A column of a table.
#[derive(Debug, Clone, Copy)]
pub struct Column {
    title: &'static str,
    is_number: bool,
}

impl Column {
    /// Creates a left-aligned column.
    pub fn text(title: &'static str) -> Self {
        Self { title, is_number: false }
    }

    /// Creates a right-aligned column for numbers with units.
    pub fn number(title: &'static str) -> Self {
        Self { title, is_number: true }
    }
}

/// A table with `N` columns, the last of which may contain long texts.
#[derive(Debug)]
pub struct Table<const N: usize> {
    /// What a row contains, in the singular.
    noun: &'static str,
    columns: [Column; N],
    rows: Vec<[String; N]>,
    hidden: usize,
}

impl<const N: usize> Table<N> {
    /// Creates an empty table. `noun` is what a row contains, in the singular.
    pub fn new(noun: &'static str, columns: [Column; N]) -> Self {
        Self { noun, columns, rows: Vec::new(), hidden: 0 }
    }

    /// Adds rows for the items, up to the maximum in the options. Cells are cleaned.
    pub fn fill<T>(
        &mut self,
        items: impl ExactSizeIterator<Item = T>,
        options: &TextOptions<'_>,
        cells: impl Fn(T) -> [String; N],
    ) {
        let shown = options.rows.unwrap_or(usize::MAX).min(items.len());
        self.hidden += items.len() - shown;
        items.take(shown).for_each(|item| self.row(cells(item)));
    }

    /// Adds a row regardless of the options. Cells are cleaned.
    pub fn row(&mut self, cells: [String; N]) {
        self.rows.push(cells.map(|cell| Clean(&cell).to_string()));
    }

    /// Writes the table, and the number of omitted rows.
    pub fn print(&self, out: &mut dyn io::Write, options: &TextOptions<'_>) -> io::Result<()> {
        // A non-generic function for any number of columns.
        let rows: Vec<&[String]> = self.rows.iter().map(<[String; N]>::as_slice).collect();
        print(&self.columns, &rows, out, options)?;
        if self.hidden > 0 {
            let dim = options.dim();
            let more = options.more.map_or_else(String::new, |more| format!(" ({more})"));
            let hidden = self.hidden as u64;
            let (count, noun) = (Count(hidden), noun(hidden, self.noun));
            writeln!(out, "{dim}… and {count} more {noun}{more}{dim:#}")?;
        }
        Ok(())
    }
}

fn print(
    columns: &[Column],
    rows: &[&[String]],
    out: &mut dyn io::Write,
    options: &TextOptions<'_>,
) -> io::Result<()> {
    let mut widths: Vec<usize> = columns.iter().map(|column| column.title.chars().count()).collect();
    for row in rows {
        for ((width, cell), column) in widths.iter_mut().zip(*row).zip(columns) {
            let cell = cell.chars().count();
            *width = (*width).max(if column.is_number { cell } else { cell.min(MAX_COLUMN_WIDTH) });
        }
    }
    let line = |cells: &mut dyn Iterator<Item = &str>| {
        let mut line = String::new();
        for (n, ((cell, width), column)) in cells.zip(&widths).zip(columns).enumerate() {
            if n > 0 {
                line.push_str("  ");
            }
            let blanks = " ".repeat(width.saturating_sub(cell.chars().count()));
            line.extend(if column.is_number { [blanks.as_str(), cell] } else { [cell, blanks.as_str()] });
        }
        line.truncate(line.trim_end().len());
        cut(line, options.width)
    };
    let (heading, titles) = (options.heading(), line(&mut columns.iter().map(|column| column.title)));
    writeln!(out, "{heading}{titles}{heading:#}")?;
    rows.iter().try_for_each(|row| writeln!(out, "{}", line(&mut row.iter().map(String::as_str))))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(options: &TextOptions<'_>) -> String {
        let mut table =
            Table::new("method", [Column::number("SELF"), Column::text("TIER"), Column::text("METHOD")]);
        let rows =
            [("9.1 ms", "Tier0", "Main()"), ("123.4 ms", "OptimizedTier1", "a\x1bb"), ("1 ms", "", "c")];
        table.fill(rows.into_iter(), options, |(own, tier, name)| [own, tier, name].map(str::to_owned));
        let mut text = Vec::new();
        table.print(&mut text, options).unwrap();
        String::from_utf8(text).unwrap()
    }

    #[test]
    fn columns_are_aligned_and_cells_are_cleaned() {
        insta::assert_snapshot!(shown(&TextOptions::default()), @r"
            SELF  TIER            METHOD
          9.1 ms  Tier0           Main()
        123.4 ms  OptimizedTier1  a\u{1b}b
            1 ms                  c
        ");
    }

    #[test]
    fn omitted_rows_are_counted() {
        let options = TextOptions { rows: Some(1), more: Some("-n shows more"), ..TextOptions::default() };
        insta::assert_snapshot!(shown(&options), @r"
          SELF  TIER   METHOD
        9.1 ms  Tier0  Main()
        … and 2 more methods (-n shows more)
        ");
    }

    #[test]
    fn lines_are_truncated_to_the_width() {
        let options = TextOptions { width: Some(14), styled: true, ..TextOptions::default() };
        let text = shown(&options);
        assert!(text.starts_with("\u{1b}[1m    SELF  TIE…\u{1b}[0m\n  9.1 ms  Tie…\n"), "{text:?}");
    }
}
