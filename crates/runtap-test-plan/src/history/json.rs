//! The bytes of a history file. Owns: the schema `runtap.test-history/1` and what is wrong with a file.
//!
//! ```text
//! {"schema": "runtap.test-history/1",
//!  "modules": [
//!    {"name": "Shop.Tests", "framework": "net10.0",
//!     "fingerprint": "…",                  text of the caller's choice; may be absent
//!     "start_us": 310000,                  start of the process to the first test, microseconds; may be absent
//!     "wall_us": 5200000,                  all tests in one process, microseconds; may be absent
//!     "updated": 1790000000000,            when the run began that told these three, milliseconds since 1970
//!     "runs": [1790000000000],             when the last complete runs began, ascending, at most 32
//!     "listed": [1790000000000, "…"],      time and fingerprint of the run from which all tests are known; may be absent
//!     "tests": {
//!       "UID": {"class": "Shop.OrderTests", "duration_us": 40000, "last_seen": 1790000000000,
//!               "outcomes": [[1790000000000, "passed"]]}}}]}    oldest first, at most 10
//! ```
//!
//! Outcomes are `passed`, `skipped`, `flaky`, `failed` and `timed-out`. Unknown members are ignored: a later minor
//! change may add some. A change that an older program would misunderstand gets another number in the schema.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::{History, Listing, ModuleHistory, ModuleKey, Outcome, Seen, TestHistory, merge};

/// What the member `schema` says.
const SCHEMA: &str = "runtap.test-history/1";

/// What it begins with in every version.
const SCHEMA_NAME: &str = "runtap.test-history/";

/// Why bytes are no history. Nothing is lost but the order of the next run, so a caller may go on without.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum HistoryError {
    /// A later version of runtap has written it.
    #[error("the test history has the schema '{0}', which is newer than this program ('{SCHEMA}')")]
    Newer(String),
    /// Something else.
    #[error("this is not a test history: its member 'schema' is '{0}' instead of '{SCHEMA}'")]
    OtherSchema(String),
    /// Not JSON, or a member is missing or has another type.
    #[error("the test history is damaged at line {line}, column {column}: {what}")]
    Damaged {
        /// The line, from 1.
        line: usize,
        /// The column in bytes, from 1; 0 at the end of a line.
        column: usize,
        /// What is wrong there.
        what: String,
    },
}

impl From<serde_json::Error> for HistoryError {
    fn from(error: serde_json::Error) -> Self {
        let what = error.to_string();
        // serde_json puts the place behind the message, which has one of its own here.
        let place = format!(" at line {} column {}", error.line(), error.column());
        let what = what.strip_suffix(&place).unwrap_or(&what).to_owned();
        Self::Damaged { line: error.line(), column: error.column(), what }
    }
}

#[derive(Deserialize)]
struct Version {
    schema: String,
}

#[derive(Serialize, Deserialize)]
struct File {
    schema: String,
    modules: Vec<Module>,
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
    #[serde(default)]
    updated: u64,
    #[serde(default)]
    runs: Vec<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    listed: Option<(u64, String)>,
    #[serde(default)]
    tests: BTreeMap<String, Test>,
}

#[derive(Serialize, Deserialize)]
struct Test {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    class: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    duration_us: Option<u64>,
    last_seen: u64,
    #[serde(default)]
    outcomes: Vec<(u64, Word)>,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", remote = "Outcome")]
enum OutcomeWord {
    Passed,
    Skipped,
    Flaky,
    Failed,
    TimedOut,
}

#[derive(Serialize, Deserialize)]
struct Word(#[serde(with = "OutcomeWord")] Outcome);

impl History {
    /// Reads the bytes of a file. Needs memory in proportion to them.
    ///
    /// # Errors
    /// If they are damaged, something else, or written by a later version.
    pub fn from_json(bytes: &[u8]) -> Result<Self, HistoryError> {
        let Version { schema } = serde_json::from_slice(bytes)?;
        if schema != SCHEMA {
            let version = schema.strip_prefix(SCHEMA_NAME).and_then(|version| version.parse::<u32>().ok());
            return Err(if version.is_some_and(|version| version > 1) {
                HistoryError::Newer(schema)
            } else {
                HistoryError::OtherSchema(schema)
            });
        }
        let file: File = serde_json::from_slice(bytes)?;
        let mut history = Self::default();
        for module in file.modules {
            let (key, module) = module.read();
            // The same module twice, which we never write: both count.
            let mut one = Self::default();
            one.modules.insert(key, module);
            history.merge(one);
        }
        Ok(history)
    }

    /// The bytes of a file: one line, the same for equal histories.
    pub fn to_json(&self) -> Vec<u8> {
        let modules = self.modules.iter().map(|(key, module)| Module::of(key, module)).collect();
        let file = File { schema: SCHEMA.to_owned(), modules };
        // Only a map with keys other than texts, or a failing writer, could keep it from being written.
        let mut bytes = serde_json::to_vec(&file).unwrap_or_default();
        bytes.push(b'\n');
        bytes
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
            updated: module.updated,
            runs: module.runs.clone(),
            listed: module.listing.clone().map(|list| (list.at, list.fingerprint)),
            tests: module.tests.iter().map(|(uid, test)| (uid.clone(), Test::of(test))).collect(),
        }
    }

    fn read(self) -> (ModuleKey, ModuleHistory) {
        let mut module = ModuleHistory {
            fingerprint: self.fingerprint,
            start: self.start_us.map(Duration::from_micros),
            wall: self.wall_us.map(Duration::from_micros),
            updated: self.updated,
            listing: self.listed.map(|(at, fingerprint)| Listing { at, fingerprint }),
            ..ModuleHistory::default()
        };
        // What a hand has put out of order is put in order.
        for run in self.runs {
            merge::insert_run(&mut module.runs, run);
        }
        module.tests = self.tests.into_iter().map(|(uid, test)| (uid, test.read())).collect();
        (ModuleKey { name: self.name, framework: self.framework }, module)
    }
}

impl Test {
    fn of(test: &TestHistory) -> Self {
        Self {
            class: test.class.clone(),
            duration_us: test.duration.map(micros),
            last_seen: test.last_seen,
            outcomes: test.outcomes.iter().map(|seen| (seen.at, Word(seen.outcome))).collect(),
        }
    }

    fn read(self) -> TestHistory {
        let mut outcomes = Vec::new();
        for (at, Word(outcome)) in self.outcomes {
            merge::insert_outcome(&mut outcomes, Seen { at, outcome });
        }
        let duration = self.duration_us.map(Duration::from_micros);
        TestHistory { class: self.class, duration, outcomes, last_seen: self.last_seen }
    }
}

/// A duration that the caller has set may be longer than what is stored.
fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}
