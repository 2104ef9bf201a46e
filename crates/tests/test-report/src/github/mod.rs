//! GitHub Actions: [`annotations`] at lines of code, and the [`summary`] of a job.
//!
//! | GitHub | from |
//! |---|---|
//! | `::error` | a failed test that counts; a broken module or run |
//! | `::warning` | a flaky test; a failure in quarantine |
//! | `::notice` | the number of omitted annotations |
//! | `file`, `line` | the topmost stack frame in a file below the root, or else the declaration of the test |
//! | `title` | the test's display name |
//! | summary | totals, modules, broken modules, failures with their details, flaky tests, the slowest tests |
//!
//! Limits of GitHub: 10 errors and 10 warnings of a step are shown, and a summary of more than 1 MiB is rejected.

mod annotations;
mod frames;
mod summary;

pub use annotations::{Options, annotations};
pub use summary::{MAX_BYTES, summary};
