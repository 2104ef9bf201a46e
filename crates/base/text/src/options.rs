//! Options for the layout of texts.

use anstyle::{AnsiColor, Style};

/// Style of column headings.
pub const HEADING: Style = Style::new().bold();
/// Style of remarks about a table.
pub const DIM: Style = Style::new().dimmed();
/// Style of results without a problem.
pub const SUCCESS: Style = AnsiColor::Green.on_default();
/// Style of results and words that deserve attention.
pub const WARNING: Style = AnsiColor::Yellow.on_default();
/// Style of failures.
pub const ERROR: Style = AnsiColor::Red.on_default().bold();

/// Options for the layout of texts.
#[derive(Debug, Clone, Copy, Default)]
pub struct TextOptions<'a> {
    /// Maximum width of lines in columns; `None` for no limit.
    pub width: Option<usize>,
    /// Whether headings and remarks have ANSI styles.
    pub styled: bool,
    /// Maximum number of rows per list; `None` for all.
    pub rows: Option<usize>,
    /// How to see more rows, which is printed after the number of omitted rows.
    pub more: Option<&'a str>,
    /// Returns how to record missing data; `None` for no hints.
    pub advice: Option<fn(Missing) -> &'static str>,
}

/// Kinds of data that a recording may lack.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Missing {
    /// Waits for locks.
    LockWaits,
    /// Waits other than for locks: events, semaphores, tasks, threads.
    HandleWaits,
    /// Methods compiled at run time.
    CompiledMethods,
    /// Changes of the number of worker threads.
    ThreadPoolAdjustments,
    /// Exceptions of log messages.
    LogExceptions,
    /// Activity ids of concurrent requests.
    RequestIds,
    /// Events of the selected types.
    Events,
}

impl Missing {
    /// States that the data is missing.
    pub(crate) fn text(self) -> &'static str {
        match self {
            Self::LockWaits => "no lock contention was recorded",
            Self::HandleWaits => "no waits other than for locks were recorded",
            Self::CompiledMethods => "no method was compiled during the recording",
            Self::ThreadPoolAdjustments => "the thread pool did not adjust its number of threads",
            Self::LogExceptions => "exceptions were not recorded",
            Self::RequestIds => "no activity ids were recorded that tell them apart",
            Self::Events => "no events",
        }
    }
}

impl TextOptions<'_> {
    /// Returns the style of headings.
    pub fn heading(&self) -> Style {
        if self.styled { HEADING } else { Style::new() }
    }

    /// Returns the style of remarks.
    pub fn dim(&self) -> Style {
        if self.styled { DIM } else { Style::new() }
    }

    /// States that data is missing, and how to record it.
    pub(crate) fn missing(&self, what: Missing) -> String {
        match self.advice {
            Some(advice) => format!("{}: {}", what.text(), advice(what)),
            None => what.text().to_owned(),
        }
    }
}
