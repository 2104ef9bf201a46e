//! What all formats have in common: a test and what became of it.

use std::time::Duration;

/// What became of a test.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Outcome {
    /// It has passed.
    Passed,
    /// It was not run.
    Skipped,
    /// An assertion has failed.
    Failed,
    /// Something else went wrong.
    Error,
    /// It took too long.
    TimedOut,
}

/// Why a test has not passed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Detail {
    /// The message.
    pub message: String,
    /// The type of the exception or error; may be empty.
    pub kind: String,
    /// The stack as the command has printed it; may be empty.
    pub stack: String,
}

/// A test that has ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Case {
    /// What filters call it: the suite and the name. No two that a [`Parser`](crate::Parser) gives are the same.
    pub uid: String,
    /// What people call it.
    pub name: String,
    /// The binary, package, class or file that it is of; may be empty.
    pub suite: String,
    /// What became of it.
    pub outcome: Outcome,
    /// How long it took, if that was said.
    pub duration: Option<Duration>,
    /// Why it was skipped; may be empty.
    pub reason: String,
    /// Why it has not passed; `None` if it has, or was skipped.
    pub detail: Option<Detail>,
    /// What it has printed.
    pub stdout: String,
    /// What it has printed to standard error.
    pub stderr: String,
    /// File and line, if they were said.
    pub place: Option<(String, u32)>,
    /// The paths of files that it has left, as it has said them.
    pub artifacts: Vec<String>,
}

impl Case {
    pub(crate) fn new(suite: &str, separator: &str, name: &str, outcome: Outcome) -> Self {
        let uid = if suite.is_empty() { name.to_owned() } else { format!("{suite}{separator}{name}") };
        Self {
            uid,
            name: name.to_owned(),
            suite: suite.to_owned(),
            outcome,
            duration: None,
            reason: String::new(),
            detail: None,
            stdout: String::new(),
            stderr: String::new(),
            place: None,
            artifacts: Vec::new(),
        }
    }
}

/// What a command has said.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Event {
    /// A test has begun.
    Begun {
        /// As that of [`Case`].
        uid: String,
        /// As that of [`Case`].
        name: String,
    },
    /// A test has ended.
    Ended(Box<Case>),
    /// There is such a test: an entry of a list.
    Listed(Box<Case>),
    /// Something is wrong with the run, and no test's fault.
    Problem(String),
    /// The run may be as it should, but what it says of its tests can't be read.
    Unreadable(String),
}

/// Seconds as a command has printed them.
pub(crate) fn seconds(seconds: f64) -> Option<Duration> {
    Duration::try_from_secs_f64(seconds).ok()
}
