//! Types that all formats share: a test and its outcome.

use std::sync::Arc;

use crate::TestOutcome;
use std::time::Duration;

/// The maximum size of a test's name, in bytes. A longer name is shortened, and ends with a mark that differs for each
/// name.
pub const MAX_NAME_BYTES: usize = 4 << 10;

/// The maximum size of a suite's name with its parents, in bytes. The name is part of the uid of each of its tests.
pub const MAX_SUITE_BYTES: usize = 1 << 10;

/// The maximum size of a name, or of the first line of a panic, that is quoted in other texts, in bytes.
pub(crate) const MAX_REASON_BYTES: usize = 256;

/// The name of unnamed tests in reports.
const UNNAMED: &str = "(unnamed)";

/// The reason why a test did not pass.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Detail {
    /// The message.
    pub message: String,
    /// The type of the exception or error; may be empty.
    pub kind: String,
    /// The stack trace as printed by the command; may be empty.
    pub stack: String,
}

/// A test that has ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Case {
    /// The id that filters use: the suite and the name. Unique among the tests of a [`Parser`](crate::formats::Parser).
    pub uid: String,
    /// The display name.
    pub name: String,
    /// The binary, package, class or file of the test; may be empty. Tests of one suite share the text.
    pub suite: Arc<str>,
    /// The outcome.
    pub outcome: TestOutcome,
    /// The duration, if the command reports it.
    pub duration: Option<Duration>,
    /// The reason for skipping; may be empty.
    pub reason: String,
    /// The reason for the failure; `None` if the test passed or was skipped.
    pub detail: Option<Detail>,
    /// The standard output of the test.
    pub stdout: String,
    /// The standard error of the test.
    pub stderr: String,
    /// The file and line, if the command reports them.
    pub place: Option<(String, u32)>,
    /// The paths of files that the test produced, as reported.
    pub artifacts: Vec<String>,
    /// Whether this is not a test but a suite, a package or a target that failed for a reason of its own, which failed
    /// tests do not explain.
    pub is_group: bool,
}

impl Case {
    /// Creates a test. `suite` must be created by [`suite`].
    pub(crate) fn new(suite: &Arc<str>, separator: &str, name: &str, outcome: TestOutcome) -> Self {
        let name = if name.trim().is_empty() { UNNAMED } else { name };
        let name = shortened(name, MAX_NAME_BYTES);
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

    /// Creates a failure of a suite, a package or a target.
    pub(crate) fn group(name: &str, detail: Detail) -> Self {
        let case = Self::new(&Arc::default(), "", name, TestOutcome::Error);
        Self { detail: Some(detail), is_group: true, ..case }
    }
}

/// An event in the output of a command.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Event {
    /// A test started.
    Started {
        /// The id; see [`Case::uid`].
        uid: String,
        /// The display name; see [`Case::name`].
        name: String,
    },
    /// A test ended.
    Ended(Box<Case>),
    /// An entry of a list of tests.
    Listed(Box<Case>),
    /// The run failed for a reason other than a test.
    Problem(String),
    /// A part of the output is unreadable; the run itself may be correct.
    Unreadable(String),
}

/// Converts seconds as printed by a command.
pub(crate) fn seconds(seconds: f64) -> Option<Duration> {
    Duration::try_from_secs_f64(seconds).ok()
}

/// Shortens the name of a suite for the uids of its tests.
pub(crate) fn suite(name: &str) -> Arc<str> {
    shortened(name, MAX_SUITE_BYTES).into()
}

/// Shortens a text to at most `most` bytes. A shortened text ends with an ellipsis and a hash of the whole text, so
/// that names with equal beginnings stay different, and a name is the same in each run.
pub(crate) fn shortened(text: &str, most: usize) -> String {
    const MARK: usize = "…".len() + 16;
    if text.len() <= most {
        return text.to_owned();
    }
    let kept = text.get(..text.floor_char_boundary(most.saturating_sub(MARK))).unwrap_or_default();
    // FNV-1a, a stable hash: filters may be used with later versions.
    let number = text.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |number, byte| {
        (number ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    format!("{kept}…{number:016x}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_names_stay_different_and_are_split_between_characters() {
        assert_eq!(shortened("é", 2), "é");
        for most in 30..40 {
            let [one, other] = ["a", "b"].map(|end| shortened(&("é".repeat(40) + end), most));
            assert!(one.len() <= most && one.starts_with("ééé") && one.contains('…'), "{one}");
            assert_ne!(one, other);
            assert_eq!(one, shortened(&("é".repeat(40) + "a"), most));
        }
    }
}
