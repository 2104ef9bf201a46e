//! The outcome of a test.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The outcome of a test, or of one attempt to run it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TestOutcome {
    /// The test passed.
    #[default]
    Passed,
    /// An assertion failed.
    Failed,
    /// The test was skipped.
    Skipped,
    /// The test could not be executed, or threw an unexpected exception.
    Error,
    /// The test timed out.
    Timeout,
    /// The test was canceled.
    Cancelled,
}

impl TestOutcome {
    /// All outcomes.
    pub const ALL: [Self; 6] =
        [Self::Passed, Self::Failed, Self::Skipped, Self::Error, Self::Timeout, Self::Cancelled];

    /// Returns the name of the outcome, in results and in reports whose format does not define names.
    pub fn name(self) -> &'static str {
        match self {
            Self::Passed => "passed",
            Self::Failed => "failed",
            Self::Skipped => "skipped",
            Self::Error => "error",
            Self::Timeout => "timeout",
            Self::Cancelled => "cancelled",
        }
    }

    /// Returns the text for a sentence: `timed out`, or the name for all other outcomes.
    pub fn words(self) -> &'static str {
        if self == Self::Timeout { "timed out" } else { self.name() }
    }

    /// Returns whether the outcome makes a run fail: neither passed nor skipped.
    pub fn is_failure(self) -> bool {
        !matches!(self, Self::Passed | Self::Skipped)
    }
}

impl fmt::Display for TestOutcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
