//! What all formats have in common: a test and what became of it.

use std::sync::Arc;
use std::time::Duration;

/// The most bytes of a test's own name. A longer one is shortened, and ends with a mark that differs for each name.
pub const LONGEST_NAME: usize = 4 << 10;

/// The most bytes of the name of a suite, with those it is in: it is read once, and is in the uid of each of its tests.
pub const LONGEST_SUITE: usize = 1 << 10;

/// The most bytes of a name, or of the first line of a panic, that is quoted beside others.
pub(crate) const LONGEST_REASON: usize = 256;

/// The name of what has none, as reports have it.
const UNNAMED: &str = "(unnamed)";

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
    /// What filters call it: the suite and the name. No two that a [`Parser`](crate::formats::Parser) gives are the same.
    pub uid: String,
    /// What people call it.
    pub name: String,
    /// The binary, package, class or file that it is of; may be empty. Tests of one suite share it.
    pub suite: Arc<str>,
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
    /// No test, but a suite, a package or a target that has failed for a reason of its own: a failed test does not explain it.
    pub is_group: bool,
}

impl Case {
    /// `suite` is one that [`suite`] has made.
    pub(crate) fn new(suite: &Arc<str>, separator: &str, name: &str, outcome: Outcome) -> Self {
        let name = if name.trim().is_empty() { UNNAMED } else { name };
        let name = shortened(name, LONGEST_NAME);
        let uid = if suite.is_empty() { name.clone() } else { format!("{suite}{separator}{name}") };
        Self {
            uid,
            name,
            suite: Arc::clone(suite),
            outcome,
            duration: None,
            reason: String::new(),
            detail: None,
            stdout: String::new(),
            stderr: String::new(),
            place: None,
            artifacts: Vec::new(),
            is_group: false,
        }
    }

    /// A suite, a package or a target that has failed for a reason of its own.
    pub(crate) fn group(name: &str, detail: Detail) -> Self {
        let case = Self::new(&Arc::default(), "", name, Outcome::Error);
        Self { detail: Some(detail), is_group: true, ..case }
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

/// The name of a suite, as the uids of its tests have it.
pub(crate) fn suite(name: &str) -> Arc<str> {
    shortened(name, LONGEST_SUITE).into()
}

/// A text of at most so many bytes. One that is longer ends with a mark: an ellipsis and a number made of the whole text, so that
/// names which begin in the same way stay different ones, and a name stays the same from run to run.
pub(crate) fn shortened(text: &str, most: usize) -> String {
    const MARK: usize = "…".len() + 16;
    if text.len() <= most {
        return text.to_owned();
    }
    let kept = text.get(..text.floor_char_boundary(most.saturating_sub(MARK))).unwrap_or_default();
    // FNV-1a: filters of later versions name the test too.
    let number = text.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |number, byte| {
        (number ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    format!("{kept}…{number:016x}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_names_stay_different_and_whole_letters() {
        assert_eq!(shortened("é", 2), "é");
        for most in 30..40 {
            let [one, other] = ["a", "b"].map(|end| shortened(&("é".repeat(40) + end), most));
            assert!(one.len() <= most && one.starts_with("ééé") && one.contains('…'), "{one}");
            assert_ne!(one, other);
            assert_eq!(one, shortened(&("é".repeat(40) + "a"), most));
        }
    }
}
