//! What people read, and what their scripts read: reports, differences, counts, process tables and summaries as text and
//! as JSON documents.
//!
//! ```
//! use runtap_clr::report::{ThreadLoss, LossReport};
//! use runtap_text::{Print, TextOptions};
//!
//! let report = LossReport { received_count: 990, lost_count: 10, ..LossReport::default() };
//! let mut text = Vec::new();
//! report.print(&mut text, &TextOptions::default())?;
//! assert!(text.starts_with(b"990 events received, at least 10 lost (1.0%)\n"));
//! # Ok::<(), std::io::Error>(())
//! ```
//!
//! - [`Print`] writes a value as text to an [`io::Write`]. How wide, with or without styles, how many rows, and what is said
//!   about rows that are not shown, are the caller's choice: [`TextOptions`]. What comes from a traced program is [cleaned](Clean).
//! - [`Table`] aligns columns, cuts lines and counts the rows that it does not show.
//! - [`document`] has the JSON documents. Their members are a contract (docs/report.md, docs/diff.md, docs/recordings.md);
//!   the name and version of each is its member `schema`. [`json`] writes them so that they are harmless on a terminal.
//! - [`units`] has durations, sizes and counts as people write and read them.
//!
//! Refuses to look at a terminal, to read recordings, to know sessions, and to name commands or options: what to do about an
//! empty table is data ([`Missing`]), and the caller has the words.

mod counts;
mod cut;
mod diff;
pub mod document;
mod dump;
mod findings;
mod info;
pub mod json;
mod layout;
mod options;
mod perf_map;
mod process;
mod profiles;
mod program;
mod repair;
mod report;
mod router;
mod table;
mod trace;
mod tracepoints;
mod transcript;
pub mod units;

use std::io;

pub use runtap_model::text::{Clean, acts_unseen, one_line};

pub use self::cut::cut;
pub use self::diff::DiffText;
pub use self::layout::{layout_heading, layout_row};
pub use self::options::{DIM, HEADING, Missing, TextOptions};
pub use self::process::{ChangeRow, ProcessRow, ProcessTable};
pub use self::table::{Column, Table};
pub use self::transcript::{TranscriptRow, TranscriptText, transcript_heading};

/// What can be shown to people.
pub trait Print {
    /// Writes it as text, which may change from version to version.
    fn print(&self, out: &mut dyn io::Write, options: &TextOptions<'_>) -> io::Result<()>;
}
