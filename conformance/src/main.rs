//! Sends every command of the diagnostic protocol to live runtimes: `cargo xtask conformance`.
//!
//! Owns the matrix request × runtime and its document. Each cell has its own process, and the effect of a command is
//! checked where it occurs. Never asserts a time, nor leaves a cell that is not a plain answer without a reason.

#![allow(clippy::doc_markdown, reason = "the names of the commands are words here, not code")]

mod cell;
mod column;
mod core_file;
mod document;
mod ours;
mod output;
mod recording;
mod room;
mod rows;
mod target;
mod wire;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::ExitCode;
use std::thread;

use anyhow::{Context as _, Result, anyhow, bail};
use runtap_testkit::shared_dir;

use crate::cell::{Cell, FAILED};
use crate::column::{Column, Key};
use crate::document::Matrix;
use crate::output::line;
use crate::room::{Driver, Room};
use crate::target::STDERR;

const USAGE: &str = "usage: runtap-conformance write|check DOCUMENT";

/// Exit code if some runtimes were missing and the other columns are correct.
const NOT_ALL: u8 = 3;

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let done = match words.as_slice() {
        ["write", document] => write(Path::new(document)),
        ["check", document] => check(Path::new(document)),
        _ => Err(anyhow!(USAGE)),
    };
    match done {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(NOT_ALL),
        Err(error) => {
            output::error(format_args!("{error:#}"));
            ExitCode::FAILURE
        }
    }
}

/// Measures all columns and writes the document. Returns whether every runtime was available.
fn write(document: &Path) -> Result<bool> {
    let columns = columns();
    if columns.iter().all(|column| column.key == Key::OwnServer) {
        bail!("there is no runtime to measure: cargo xtask peers");
    }
    let matrix = measure(&columns)?;
    let text = matrix.to_text();
    line(&text);
    explained(&matrix)?;
    fs::write(document, text).with_context(|| format!("cannot write {}", document.display()))?;
    Ok(columns.len() == Key::ALL.len())
}

/// Measures all columns and compares them with the document, which supplies the cells of missing runtimes. Returns
/// whether every runtime was available.
fn check(document: &Path) -> Result<bool> {
    let written =
        fs::read_to_string(document).with_context(|| format!("cannot read {}", document.display()))?;
    let known = Matrix::from_text(&written);
    let mut columns = columns();
    if shared_dir().is_none() {
        // Installed runtimes may have any version.
        columns.retain(|column| {
            let same = known.title(column.key) == column.title();
            if !same {
                line(format_args!("{}: the document has {}", column.title(), known.title(column.key)));
            }
            same
        });
    }
    let mut matrix = measure(&columns)?;
    matrix.fill(&known);
    explained(&matrix)?;
    let text = matrix.to_text();
    let written: Vec<&str> = written.lines().collect();
    let measured: Vec<&str> = text.lines().collect();
    for added in measured.iter().filter(|line| !written.contains(line)) {
        line(format_args!("measured: {added}"));
    }
    for removed in written.iter().filter(|line| !measured.contains(line)) {
        line(format_args!("written:  {removed}"));
    }
    if written != measured {
        bail!(
            "{} is not what was measured: run cargo xtask conformance and look at the difference",
            document.display()
        );
    }
    Ok(columns.len() == Key::ALL.len())
}

fn explained(matrix: &Matrix) -> Result<()> {
    let holes = matrix.holes();
    if !holes.is_empty() {
        bail!("without a reason:\n{}", holes.join("\n"));
    }
    Ok(())
}

/// Returns the columns whose runtime is available.
fn columns() -> Vec<Column> {
    let found = Key::ALL.into_iter().filter_map(|key| {
        let found = Column::find(key);
        found.inspect_err(|skip| line(format_args!("{} {}: {skip}", key.name(), key.release()))).ok()
    });
    found.collect()
}

/// Measures all columns in parallel.
fn measure(columns: &[Column]) -> Result<Matrix> {
    let driver = Driver::start()?;
    let measured: Vec<Result<BTreeMap<&'static str, Cell>>> = thread::scope(|scope| {
        let started: Vec<_> =
            columns.iter().map(|column| scope.spawn(|| measure_column(column, &driver))).collect();
        // The test kit reports missing prerequisites by panicking.
        started.into_iter().map(|thread| thread.join().unwrap_or_else(|_panic| bail!("see above"))).collect()
    });
    let mut matrix = Matrix::untried();
    for (column, cells) in columns.iter().zip(measured) {
        matrix.set(column, cells.with_context(|| column.title())?);
    }
    Ok(matrix)
}

/// Measures one column. Failures are printed to stderr and leave a hole in the table.
fn measure_column(column: &Column, driver: &Driver) -> Result<BTreeMap<&'static str, Cell>> {
    let mut cells = BTreeMap::new();
    for row in rows::all() {
        let room = Room::new(column, driver)?;
        let cell = cell::judge((row.run)(&room)).unwrap_or_else(|error| {
            let said = fs::read_to_string(room.file(STDERR)).unwrap_or_default();
            output::error(format_args!("{}: {}: {error:#}\n{said}", column.title(), row.request));
            Cell::new(FAILED)
        });
        cells.insert(row.request, cell);
    }
    line(format_args!("{}: {} cells", column.title(), cells.len()));
    Ok(cells)
}
