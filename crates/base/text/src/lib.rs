//! Formats results as text and as JSON documents: reports, differences, counts, process tables and summaries.
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
//! - [`Print`] writes a value as text to an [`io::Write`]. [`TextOptions`] determine the width, the styles, the number
//!   of rows and the hints. Untrusted texts are [cleaned](Clean).
//! - [`Output`] prints results, messages, errors and progress to the standard streams.
//! - [`Table`] aligns columns, truncates lines and counts omitted rows.
//! - [`document`] contains the JSON documents. Their members are a stable interface (docs/report.md, docs/diff.md,
//!   docs/recordings.md), with the name and version in the member `schema`. [`json`] writes documents that are harmless
//!   on a terminal.
//! - [`advice`] names the options that record missing data.
//! - [`jvm`] contains the texts and documents of Java traces.
//! - [`units`] parses and formats durations, sizes and counts.
//!
//! - `screen`, with the feature `tui`, contains full-screen interfaces.
//! - [`mod@test`] shows the events of a run of tests, with the progress redrawn in place.
//!
//! This crate does not read recordings or parse options. Hints about an empty table are requested from the caller
//! ([`Missing`]).

pub mod advice;
mod counter_display;
mod counters;
mod counts;
mod cut;
mod diff;
pub mod document;
mod dump;
mod findings;
mod heap_file;
mod held;
mod info;
pub mod json;
pub mod jvm;
mod layout;
mod notes;
mod options;
mod output;
mod perf_map;
mod process;
mod profiles;
mod program;
mod repair;
mod report;
mod router;
mod rows;
#[cfg(all(unix, feature = "tui"))]
pub mod screen;
mod stack;
mod table;
pub mod terminal_size;
pub mod test;
mod top;
mod top_display;
mod trace;
mod tracepoints;
mod transcript;
pub mod units;

use std::io;

pub use runtap_model::text::{Clean, acts_unseen, one_line};

pub use self::counter_display::CounterDisplay;
pub use self::counters::{CounterTable, counter_line};
pub use self::cut::cut;
pub use self::diff::DiffText;
pub use self::layout::BlockPrinter;
pub use self::notes::{NotePrinter, conversion_message, lost_events, unmet_messages, unsuitable};
pub use self::options::{DIM, ERROR, HEADING, Missing, SUCCESS, TextOptions, WARNING};
pub use self::output::{Output, with_causes};
pub use self::process::{ChangeRow, ProcessList, ProcessRow, ProcessTable};
pub use self::stack::StackList;
pub use self::table::{Column, Table};
pub use self::top::{TopData, TopLine, TopTable};
pub use self::top_display::TopDisplay;
pub use self::transcript::{TranscriptPrinter, TranscriptRow, TranscriptText};

/// Restores the terminal if a full-screen interface is shown, and prints the messages that were held back meanwhile.
pub fn close_screen() {
    #[cfg(all(unix, feature = "tui"))]
    screen::close();
}

/// A value that can be printed as text.
pub trait Print {
    /// Writes the value as text, whose layout may change between versions.
    fn print(&self, out: &mut dyn io::Write, options: &TextOptions<'_>) -> io::Result<()>;
}
