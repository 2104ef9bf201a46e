//! Counters as files: a row for each reading, or the latest state of all series.
//!
//! | format | module | contents |
//! |---|---|---|
//! | csv, json | `dotnet.rs` | rows as in the files of dotnet-counters |
//! | jsonl | `lines.rs` | one JSON object per reading, with all numbers |
//! | prometheus | `prometheus.rs` | the latest reading of each series |
//!
//! Missing numbers, NaN and infinities differ in every format. Texts are those of the program: control characters and what spreadsheets
//! or build servers interpret are escaped.

mod dotnet;
mod lines;
mod number;
mod prometheus;

use std::io;
use std::path::Path;

use runtap_model::counters::{CounterBoard, CounterRow};

/// A format for counters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum CounterFormat {
    /// Comma-separated values with the columns of dotnet-counters.
    Csv,
    /// One JSON document with the members of dotnet-counters.
    Json,
    /// JSON Lines.
    Jsonl,
    /// The text format of Prometheus.
    Prometheus,
}

impl CounterFormat {
    /// All formats.
    pub const ALL: [Self; 4] = [Self::Csv, Self::Json, Self::Jsonl, Self::Prometheus];

    /// Returns the name of the format on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Csv => "csv",
            Self::Json => "json",
            Self::Jsonl => "jsonl",
            Self::Prometheus => "prometheus",
        }
    }

    /// Describes the format in a few words.
    pub fn about(self) -> &'static str {
        match self {
            Self::Csv => "A row per value, with the columns of dotnet-counters",
            Self::Json => "One document, with the members of dotnet-counters",
            Self::Jsonl => "A JSON object per reading, with all numbers",
            Self::Prometheus => "The latest values, for Prometheus; the file is replaced in each interval",
        }
    }

    /// Returns the file name extension, including the dot.
    pub fn extension(self) -> &'static str {
        match self {
            Self::Csv => ".csv",
            Self::Json => ".json",
            Self::Jsonl => ".jsonl",
            Self::Prometheus => ".prom",
        }
    }

    /// Returns the format of a file by its extension. `None` if no format has this extension.
    pub fn of_path(path: &Path) -> Option<Self> {
        let extension = path.extension()?;
        Self::ALL
            .into_iter()
            .find(|format| format.extension().strip_prefix('.').is_some_and(|it| extension == it))
    }

    /// Whether a file contains the latest state, and not all readings.
    pub fn is_snapshot(self) -> bool {
        self == Self::Prometheus
    }
}

/// Writes readings in one format into memory.
#[derive(Debug)]
pub struct CounterWriter {
    format: CounterFormat,
    /// The requested interval in seconds, which names contain.
    interval_s: f64,
    /// Whether the names of csv and json contain the process id.
    has_process_ids: bool,
    has_rows: bool,
}

impl CounterWriter {
    /// Creates a writer of readings that are requested at this interval.
    pub fn new(format: CounterFormat, interval_s: f64) -> Self {
        Self { format, interval_s, has_process_ids: false, has_rows: false }
    }

    /// Sets whether readings of several processes are written. The process id is then a tag in the formats of dotnet-counters, which
    /// have no other place for it.
    #[must_use]
    pub fn with_process_ids(self, has_process_ids: bool) -> Self {
        Self { has_process_ids, ..self }
    }

    /// Returns the format.
    pub fn format(&self) -> CounterFormat {
        self.format
    }

    /// Writes what precedes all rows: the name of the program, and the time in nanoseconds since 1970, UTC.
    ///
    /// # Errors
    /// Writing to memory does not fail.
    pub fn head(&self, target: &str, start_ns: i64, out: &mut Vec<u8>) -> io::Result<()> {
        match self.format {
            CounterFormat::Csv => dotnet::csv_head(out),
            CounterFormat::Json => dotnet::json_head(target, start_ns, out)?,
            CounterFormat::Jsonl | CounterFormat::Prometheus => {}
        }
        Ok(())
    }

    /// Writes the latest reading of a series. Writes nothing in a format that is a [snapshot](CounterFormat::is_snapshot).
    ///
    /// # Errors
    /// Writing to memory does not fail.
    pub fn row(&mut self, row: &CounterRow, out: &mut Vec<u8>) -> io::Result<()> {
        let process = self.has_process_ids.then_some(row.process);
        match self.format {
            CounterFormat::Csv => dotnet::csv_rows(row, process, self.interval_s, out),
            CounterFormat::Json => {
                dotnet::json_rows(row, process, self.interval_s, &mut self.has_rows, out)?;
            }
            CounterFormat::Jsonl => lines::write(row, out)?,
            CounterFormat::Prometheus => {}
        }
        Ok(())
    }

    /// Writes the state of all series, in a format that is a [snapshot](CounterFormat::is_snapshot).
    pub fn snapshot(&self, board: &CounterBoard, out: &mut Vec<u8>) {
        if self.format == CounterFormat::Prometheus {
            prometheus::write(board, out);
        }
    }

    /// Returns what follows the last row. Further rows must replace it.
    pub fn tail(&self) -> &'static str {
        if self.format == CounterFormat::Json { dotnet::JSON_TAIL } else { "" }
    }
}

#[cfg(test)]
mod tests;
