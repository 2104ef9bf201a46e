//! The format of a history file, with the schema `runtap.test-history/1`, and its errors.
//!
//! Each entry is a line of UTF-8 JSON, so that a file can be read and written without being kept in memory:
//!
//! ```text
//! {"schema":"runtap.test-history/1"}           the first line
//! {"module":{"name":"Shop.Tests","framework":"net10.0",
//!   "fingerprint":"…",                         text of the caller's choice; may be absent
//!   "start_us":310000,                         start of the process to the first test, microseconds; may be absent
//!   "wall_us":5200000,                         all tests in one process, microseconds; may be absent
//!   "broken":true,                             there may be unknown failures; absent if not
//!   "updated":1790000000000,                   start of the run with these values, milliseconds since 1970
//!   "runs":[1790000000000],                    starts of the last complete runs, ascending, at most 32
//!   "listed":[1790000000000,"…"]}}             start and fingerprint of the run with all tests; may be absent
//! {"test":{"uid":"…",                          a test of the module above
//!   "class":"Shop.OrderTests","duration_us":40000,"last_seen":1790000000000,
//!   "outcomes":[[1790000000000,"passed"]]}}    oldest first, at most 10
//! {"end":{"tests":1}}                          the last line, with the number of tests
//! ```
//!
//! Modules are sorted by name and framework, the tests of a module by uid. Outcomes are `passed`, `skipped`, `flaky`,
//! `failed` and `timed-out`. Unknown members are ignored, because later minor changes may add some. A change that older
//! programs would misunderstand gets another number in the schema.

use std::collections::BTreeMap;
use std::io::{self, BufRead, Write};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::{History, Listing, ModuleHistory, ModuleKey, PastOutcome, Seen, TestHistory, merge};

/// The value of the member `schema`.
const SCHEMA: &str = "runtap.test-history/1";

/// The prefix of the value in all versions.
const SCHEMA_NAME: &str = "runtap.test-history/";

/// An error that occurs when reading a history. A run is still possible without a history, in an arbitrary order.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum HistoryError {
    /// The file was written by a later version of runtap.
    #[error("the test history has the schema '{0}', which is newer than this program ('{SCHEMA}')")]
    Newer(String),
    /// The file has another schema.
    #[error("this is not a test history: its member 'schema' is '{0}' instead of '{SCHEMA}'")]
    OtherSchema(String),
    /// The file is not JSON, or a member is missing or has another type.
    #[error("the test history is damaged at line {line}, column {column}: {what}")]
    Damaged {
        /// The line, starting at 1.
        line: usize,
        /// The column in bytes, starting at 1; 0 for the whole line.
        column: usize,
        /// The reason.
        what: String,
    },
    /// The file cannot be read.
    #[error("the test history can't be read: {0}")]
    Unreadable(String),
}

/// A line of a file.
#[derive(Debug)]
pub(super) enum Line {
    Module(ModuleKey, ModuleHistory),
    Test(String, TestHistory),
}

#[derive(Serialize, Deserialize)]
struct SchemaLine {
    schema: String,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Member {
    Module(Module),
    Test(Test),
    End(End),
}

#[derive(Serialize, Deserialize)]
struct Module {
    name: String,
    framework: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    fingerprint: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    start_us: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    wall_us: Option<u64>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    broken: bool,
    #[serde(default)]
    updated: u64,
    #[serde(default)]
    runs: Vec<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    listed: Option<(u64, String)>,
}

#[derive(Serialize, Deserialize)]
struct Test {
    uid: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    class: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    duration_us: Option<u64>,
    last_seen: u64,
    #[serde(default)]
    outcomes: Vec<(u64, Word)>,
}

#[derive(Serialize, Deserialize)]
struct End {
    tests: usize,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", remote = "PastOutcome")]
enum OutcomeWord {
    Passed,
    Skipped,
    Flaky,
    Failed,
    TimedOut,
}

#[derive(Serialize, Deserialize)]
struct Word(#[serde(with = "OutcomeWord")] PastOutcome);

/// A reader of a file line by line.
#[derive(Debug)]
pub(super) struct Lines<R> {
    input: R,
    /// The last line, and its number, starting at 1.
    line: Vec<u8>,
    number: usize,
    tests: usize,
}

impl<R: BufRead> Lines<R> {
    /// Reads the schema.
    pub(super) fn open(input: R) -> Result<Self, HistoryError> {
        let mut lines = Self { input, line: Vec::new(), number: 0, tests: 0 };
        lines.read()?;
        let SchemaLine { schema } = serde_json::from_slice(&lines.line).map_err(|it| lines.damaged(&it))?;
        if schema == SCHEMA {
            return Ok(lines);
        }
        let version = schema.strip_prefix(SCHEMA_NAME).and_then(|version| version.parse::<u32>().ok());
        Err(if version.is_some_and(|version| version > 1) {
            HistoryError::Newer(schema)
        } else {
            HistoryError::OtherSchema(schema)
        })
    }

    /// Returns the next module or test, or `None` at the end of a complete file.
    pub(super) fn next(&mut self) -> Result<Option<Line>, HistoryError> {
        self.read()?;
        let member = serde_json::from_slice(&self.line).map_err(|error| self.damaged(&error))?;
        match member {
            Member::Module(module) => {
                let (key, module) = module.into_history();
                Ok(Some(Line::Module(key, module)))
            }
            Member::Test(test) => {
                self.tests += 1;
                let (uid, test) = test.into_history();
                Ok(Some(Line::Test(uid, test)))
            }
            Member::End(End { tests }) if tests != self.tests => {
                Err(self.wrong(format!("there are {} tests, not {tests}", self.tests)))
            }
            Member::End(_) => {
                self.read()?;
                if self.line.is_empty() {
                    Ok(None)
                } else {
                    Err(self.wrong("the file contains data after its end"))
                }
            }
        }
    }

    /// Creates the error of a damaged line.
    pub(super) fn wrong(&self, what: impl Into<String>) -> HistoryError {
        HistoryError::Damaged { line: self.number, column: 0, what: what.into() }
    }

    fn read(&mut self) -> Result<(), HistoryError> {
        self.line.clear();
        self.number += 1;
        let read = self.input.read_until(b'\n', &mut self.line);
        read.map(drop).map_err(|error| HistoryError::Unreadable(error.to_string()))
    }

    fn damaged(&self, error: &serde_json::Error) -> HistoryError {
        if self.line.is_empty() {
            return self.wrong("the file ends too early");
        }
        let what = error.to_string();
        // serde_json appends the location to the message, which is stored separately here.
        let place = format!(" at line {} column {}", error.line(), error.column());
        let what = what.strip_suffix(&place).unwrap_or(&what).to_owned();
        HistoryError::Damaged { line: self.number, column: error.column(), what }
    }
}

/// A writer of a file line by line.
#[derive(Debug)]
pub(super) struct Lined<W> {
    out: W,
    tests: usize,
}

impl<W: Write> Lined<W> {
    pub(super) fn begin(out: W) -> io::Result<Self> {
        let mut lined = Self { out, tests: 0 };
        lined.line(&SchemaLine { schema: SCHEMA.to_owned() })?;
        Ok(lined)
    }

    pub(super) fn module(&mut self, key: &ModuleKey, module: &ModuleHistory) -> io::Result<()> {
        self.line(&Member::Module(Module::of(key, module)))
    }

    pub(super) fn test(&mut self, uid: &str, test: &TestHistory) -> io::Result<()> {
        self.tests += 1;
        self.line(&Member::Test(Test::of(uid, test)))
    }

    /// Returns the number of written tests.
    pub(super) fn tests(&self) -> usize {
        self.tests
    }

    pub(super) fn end(mut self) -> io::Result<()> {
        self.line(&Member::End(End { tests: self.tests }))?;
        self.out.flush()
    }

    fn line(&mut self, line: &impl Serialize) -> io::Result<()> {
        serde_json::to_writer(&mut self.out, line)?;
        self.out.write_all(b"\n")
    }
}

impl History {
    /// Reads a file. The memory usage is proportional to the size of the file.
    ///
    /// # Errors
    /// Returns an error if the file cannot be read, is damaged, is not a history, or was written by a later version.
    pub fn read(input: impl BufRead) -> Result<Self, HistoryError> {
        let mut lines = Lines::open(input)?;
        let mut history = Self::default();
        let mut current = None;
        while let Some(line) = lines.next()? {
            match line {
                Line::Module(key, module) => {
                    // A duplicate module, which is never written by runtap: merge both.
                    let one = Self { modules: BTreeMap::from([(key.clone(), module)]) };
                    history.merge(one);
                    current = history.modules.get_mut(&key);
                }
                Line::Test(uid, test) => {
                    let Some(module) = &mut current else { return Err(lines.wrong("a test of no module")) };
                    module.put(uid, test);
                }
            }
        }
        Ok(history)
    }

    /// Writes a file. Equal histories produce equal bytes.
    ///
    /// # Errors
    /// Returns errors of the writer.
    pub fn write(&self, out: impl Write) -> io::Result<()> {
        let mut lined = Lined::begin(out)?;
        for (key, module) in &self.modules {
            lined.module(key, module)?;
            for (uid, test) in &module.tests {
                lined.test(uid, test)?;
            }
        }
        lined.end()
    }
}

impl Module {
    fn of(key: &ModuleKey, module: &ModuleHistory) -> Self {
        Self {
            name: key.name.clone(),
            framework: key.framework.clone(),
            fingerprint: module.fingerprint.clone(),
            start_us: module.start.map(micros),
            wall_us: module.wall.map(micros),
            broken: module.broken,
            updated: module.updated,
            runs: module.runs.clone(),
            listed: module.listing.clone().map(|list| (list.at, list.fingerprint)),
        }
    }

    fn into_history(self) -> (ModuleKey, ModuleHistory) {
        let mut module = ModuleHistory {
            fingerprint: self.fingerprint,
            start: self.start_us.map(Duration::from_micros),
            wall: self.wall_us.map(Duration::from_micros),
            broken: self.broken,
            updated: self.updated,
            listing: self.listed.map(|(at, fingerprint)| Listing { at, fingerprint }),
            ..ModuleHistory::default()
        };
        // Sort entries of files that were edited manually.
        for run in self.runs {
            merge::insert_run(&mut module.runs, run);
        }
        (ModuleKey { name: self.name, framework: self.framework }, module)
    }
}

impl Test {
    fn of(uid: &str, test: &TestHistory) -> Self {
        Self {
            uid: uid.to_owned(),
            class: test.class.clone(),
            duration_us: test.duration.map(micros),
            last_seen: test.last_seen,
            outcomes: test.outcomes.iter().map(|seen| (seen.at, Word(seen.outcome))).collect(),
        }
    }

    fn into_history(self) -> (String, TestHistory) {
        let mut outcomes = Vec::new();
        for (at, Word(outcome)) in self.outcomes {
            merge::insert_outcome(&mut outcomes, Seen { at, outcome });
        }
        let duration = self.duration_us.map(Duration::from_micros);
        (self.uid, TestHistory { class: self.class, duration, outcomes, last_seen: self.last_seen })
    }
}

/// Limits a duration to the maximum that can be stored.
fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}
