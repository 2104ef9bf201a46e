//! GitHub Actions: [`annotations`] at lines of code, and the [`summary`] of a job.
//!
//! | GitHub | from |
//! |---|---|
//! | `::error` | a failed test that counts; a module or a run that did not end well |
//! | `::warning` | a flaky test; a failure in quarantine |
//! | `::notice` | how many more there are than may be annotated |
//! | `file`, `line` | the topmost frame of the stacks in a file below the root; else where the test is declared |
//! | `title` | the test's display name |
//! | summary | totals, modules, those that did not end well, failures with their details, flaky tests, the slowest tests |
//!
//! Limits of GitHub's: 10 errors and 10 warnings of a step are shown, and a summary of more than 1 MiB is refused.

mod annotations;
mod frames;
mod summary;

pub use annotations::{Options, annotations};
pub use summary::{MAX_BYTES, summary};
