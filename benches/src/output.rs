//! The only module that prints: lines, tables, and the conditions of a measurement.
#![expect(clippy::print_stdout, reason = "the only module that prints")]

use std::fmt::Display;
use std::fs;

pub(crate) fn line(text: impl Display) {
    println!("{text}");
}

/// Prints the state of the machine, on which the numbers depend.
pub(crate) fn machine() {
    let cpus = std::thread::available_parallelism().map_or(0, usize::from);
    let load = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let load = load.split(' ').next().unwrap_or_default();
    line(format_args!("{cpus} processors, load {load}"));
}

/// Returns the median; of two middle values, the upper one.
pub(crate) fn median<T: PartialOrd + Copy + Default>(mut values: Vec<T>) -> T {
    values.sort_by(|a, b| a.partial_cmp(b).unwrap_or(std::cmp::Ordering::Equal));
    values.get(values.len() / 2).copied().unwrap_or_default()
}

/// Prints whether a bar is met, without ever failing.
pub(crate) fn bar(what: &str, met: bool, measured: &str) {
    line(format_args!("{}: {what} ({measured})", if met { "met" } else { "MISSED" }));
}

/// A table whose columns are as wide as necessary; the first is left-aligned, the others right-aligned.
#[derive(Debug)]
pub(crate) struct Table {
    rows: Vec<Vec<String>>,
}

impl Table {
    pub(crate) fn new(head: &[&str]) -> Self {
        Self { rows: vec![head.iter().map(|text| (*text).to_owned()).collect()] }
    }

    pub(crate) fn row(&mut self, cells: &[String]) {
        self.rows.push(cells.to_vec());
    }

    pub(crate) fn print(&self, title: &str) {
        line(format_args!("\n{title}"));
        let width = |column: usize| {
            let cells = self.rows.iter().filter_map(|row| row.get(column));
            cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
        };
        for row in &self.rows {
            let cells = row.iter().enumerate().map(|(column, cell)| match column {
                0 => format!("{cell:<width$}", width = width(0)),
                _ => format!("{cell:>width$}", width = width(column)),
            });
            let text = cells.collect::<Vec<_>>().join("   ");
            line(text.trim_end());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_does_not_depend_on_the_order() {
        assert_eq!(median(vec![5, 1, 9]), 5);
        assert_eq!(median(vec![2, 1]), 2);
        assert_eq!(median(Vec::<u64>::new()), 0);
    }
}
