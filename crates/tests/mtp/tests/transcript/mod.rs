//! What the tests share: the recordings of the shared folder, and recordings of our own that are held in memory.

#![allow(dead_code, reason = "each test uses a part of it")]

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufReader, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use runtap_mtp::transcript::{Finding, Linter, Summary, TestPipe, limits};
use runtap_os::compressed::{Input, MaxSize};
use runtap_testkit::{Skip, shared_data, shared_dir};
use runtap_transcript::{Error, Inspector, Located, Reader, Row};

/// A row of `INDEX.tsv`.
#[derive(Debug, Clone)]
pub(crate) struct Listed {
    pub(crate) file: String,
    pub(crate) path: PathBuf,
    pub(crate) command: String,
    pub(crate) connections: u64,
    pub(crate) exit_code: i64,
    /// Frames of the application, as `6x27 8x2`.
    pub(crate) frames: String,
}

impl Listed {
    /// The name without extensions.
    pub(crate) fn name(&self) -> &str {
        self.file.trim_end_matches(".zst").trim_end_matches(".jsonl")
    }

    pub(crate) fn is_run(&self) -> bool {
        !self.command.contains("--help") && !self.command.contains("--list-tests")
    }
}

/// The recordings of the shared folder; none where there is no such folder, which is told.
pub(crate) fn listed() -> Vec<Listed> {
    let Some(shared) = shared_dir() else {
        Skip::because("there are no recordings of the protocol (RUNTAP_SHARED)").report();
        return Vec::new();
    };
    let index = String::from_utf8(shared_data("mtp/transcripts/INDEX.tsv").unwrap()).unwrap();
    let rows = index.lines().skip(1).map(|row| {
        let columns: Vec<_> = row.split('\t').collect();
        Listed {
            file: columns[0].to_owned(),
            path: shared.join("data/mtp/transcripts").join(columns[0]),
            command: columns[3].to_owned(),
            connections: columns[4].parse().unwrap(),
            exit_code: columns[5].parse().unwrap(),
            frames: columns.get(6).copied().unwrap_or_default().to_owned(),
        }
    });
    let rows: Vec<_> = rows.collect();
    assert!(rows.len() >= 55, "{}", rows.len());
    rows
}

/// All lines of a recording.
pub(crate) fn lines(path: &Path) -> Result<Vec<Located>, Error> {
    let input = Input::new(File::open(path).unwrap(), MaxSize::BY_RATIO).unwrap();
    Reader::with_limits(BufReader::new(input), limits()).collect()
}

pub(crate) fn rows(lines: &[Located]) -> (Vec<Row>, Inspector<TestPipe>) {
    let mut inspector = Inspector::new(TestPipe);
    let rows = lines.iter().cloned().flat_map(|located| inspector.rows(located)).collect();
    (rows, inspector)
}

/// How many frames of the application there are with each id, as `INDEX.tsv` writes it.
pub(crate) fn counts(rows: &[Row]) -> String {
    let mut counts = BTreeMap::<i64, u64>::new();
    for row in rows.iter().filter(|row| row.dir.as_deref() == Some("h2s")) {
        *counts.entry(row.id.unwrap()).or_default() += 1;
    }
    counts.iter().map(|(id, count)| format!("{id}x{count}")).collect::<Vec<_>>().join(" ")
}

pub(crate) fn lint(lines: &[Located]) -> (Summary, Vec<Finding>) {
    let mut linter = Linter::new();
    for located in lines {
        linter.take(located.clone());
    }
    linter.finish()
}

/// The ids of the rules that were broken, each once.
pub(crate) fn broken(lines: &[Located]) -> Vec<&'static str> {
    let mut rules: Vec<_> = lint(lines).1.iter().map(|finding| finding.rule.id()).collect();
    rules.sort_unstable();
    rules.dedup();
    rules
}

/// Where a recording is written to, with room for so many bytes.
#[derive(Debug, Clone)]
pub(crate) struct Memory {
    pub(crate) bytes: Arc<Mutex<Vec<u8>>>,
    room: usize,
}

impl Memory {
    pub(crate) fn new() -> Self {
        Self::with_room(usize::MAX)
    }

    pub(crate) fn with_room(room: usize) -> Self {
        Self { bytes: Arc::default(), room }
    }

    pub(crate) fn lines(&self) -> Vec<Located> {
        let bytes = self.bytes.lock().unwrap().clone();
        Reader::new(&bytes[..]).collect::<Result<_, _>>().unwrap()
    }
}

impl Write for Memory {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut all = self.bytes.lock().unwrap();
        if all.len() + bytes.len() > self.room {
            return Err(io::ErrorKind::StorageFull.into());
        }
        all.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
