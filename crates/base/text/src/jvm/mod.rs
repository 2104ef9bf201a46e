//! Java traces: reports and differences of recordings, coverage, and what is missing from them; the agents of a
//! collector, its answers to commands, its result, and its live view.

mod agents;
mod collection;
mod control;
mod coverage;
mod difference;
mod document;
#[cfg(all(unix, feature = "tui"))]
mod live;
mod log;
mod never;
mod report;
mod sets;
mod summary;
mod warnings;

use runtap_bytefrog::{Detail, fitted};

use crate::units::{Count, Nanoseconds};
use crate::{Clean, TextOptions};

pub use self::agents::{agent_title, notice_messages};
pub use self::collection::{CollectionText, collection_document, collection_warnings};
pub use self::control::answer_line;
pub use self::coverage::{CoverageDocument, coverage_notes};
pub use self::difference::DifferenceDocument;
pub use self::document::{AgentDocument, JvmDocument};
#[cfg(all(unix, feature = "tui"))]
pub use self::live::LiveView;
pub use self::log::AgentLog;
pub use self::report::RowsDocument;
pub use self::sets::{OperandRow, SetsDocument};
pub use self::summary::{AgentReports, ReportText};
pub use self::warnings::warnings;

/// The minimum width of a name.
const MIN_NAME_WIDTH: usize = 20;

/// Shortens a name to fit beside other columns of this width.
fn fitted_name(name: &str, options: &TextOptions<'_>, other_columns: usize) -> String {
    let name = Clean(name).to_string();
    match options.width {
        Some(width) => fitted(&name, width.saturating_sub(other_columns).max(MIN_NAME_WIDTH)),
        None => name,
    }
}

/// Formats a time in a suitable unit, with three or four digits.
fn time(nanoseconds: u64) -> String {
    const SECOND: u64 = 1_000_000_000;
    if nanoseconds < SECOND {
        return Nanoseconds(nanoseconds).to_string();
    }
    let hundredths = nanoseconds / (SECOND / 100);
    format!("{}.{:02} s", Count(hundredths / 100), hundredths % 100)
}

/// Formats a time: `-` if unknown, and with a leading `>` if the end of a call was not received.
fn took(known: Option<u64>, is_more: bool) -> String {
    match known {
        None => "-".to_owned(),
        Some(known) if is_more => format!(">{}", time(known)),
        Some(known) => time(known),
    }
}

/// Returns the explanation for a trace without calls, and how to record calls; `None` if the trace has calls.
pub fn missing_calls_hint(detail: Detail) -> Option<&'static str> {
    match detail {
        Detail::Calls => None,
        Detail::Counts => Some(
            "the agent has sent counts only: 'methods' has the calls; times, callers, threads and exceptions need --mode full",
        ),
        Detail::Coverage => Some(
            "the agent has sent coverage only: 'methods' lists what ran, --coverage and --never-called use it; calls need --mode full",
        ),
        Detail::Unsent => Some(
            "nothing is known of calls: the agent ended before it had sent any, as when the program is killed",
        ),
    }
}
