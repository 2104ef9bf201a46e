//! How a text is to look, which the caller decides.

use anstyle::Style;

/// The titles of columns.
pub const HEADING: Style = Style::new().bold();
/// What is said about a table.
pub const DIM: Style = Style::new().dimmed();

/// How a text is to look.
#[derive(Debug, Clone, Copy, Default)]
pub struct TextOptions<'a> {
    /// Where lines have to end; `None` where they may be as long as they are.
    pub width: Option<usize>,
    /// Whether titles and remarks have ANSI styles.
    pub styled: bool,
    /// How many rows of each list are shown; `None` for all.
    pub rows: Option<usize>,
    /// How somebody gets to see more rows: it stands in brackets behind the number of those that are not shown.
    pub more: Option<&'a str>,
    /// How something that a recording lacks is recorded. Without it, only that it is missing is said.
    pub advice: Option<fn(Missing) -> &'static str>,
}

/// What a recording may lack although it has other things that a report is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Missing {
    /// Waits for locks; there are others.
    LockWaits,
    /// Waits for something else than locks: events, semaphores, tasks, threads.
    HandleWaits,
    /// Methods compiled at run time; there is precompiled code.
    CompiledMethods,
    /// Decisions on the number of worker threads.
    ThreadPoolAdjustments,
    /// Exceptions of log messages.
    LogExceptions,
    /// Activity ids of requests that ran at the same time.
    RequestIds,
    /// Events of the kinds that were chosen.
    Events,
}

impl Missing {
    /// That it is missing, in words.
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
    /// The style of titles.
    pub fn heading(&self) -> Style {
        if self.styled { HEADING } else { Style::new() }
    }

    /// The style of remarks.
    pub fn dim(&self) -> Style {
        if self.styled { DIM } else { Style::new() }
    }

    /// That something is missing, and what to do about it.
    pub(crate) fn missing(&self, what: Missing) -> String {
        match self.advice {
            Some(advice) => format!("{}: {}", what.text(), advice(what)),
            None => what.text().to_owned(),
        }
    }
}
