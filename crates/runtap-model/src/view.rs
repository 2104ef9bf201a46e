//! Which samples are looked at.

use crate::samples::SampleKind;
use std::fmt;

/// A choice of samples. The names are those of the command line's `--view`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum View {
    /// Every sample of a thread, whether it ran or waited.
    ThreadTime,
    /// The samples that found the thread in managed code.
    Cpu,
}

impl View {
    /// Every view there is.
    pub const ALL: [Self; 2] = [Self::ThreadTime, Self::Cpu];

    /// The name on the command line and in files.
    pub fn name(self) -> &'static str {
        match self {
            Self::ThreadTime => "thread-time",
            Self::Cpu => "cpu",
        }
    }

    /// Whether samples of `kind` are in this view.
    pub fn selects(self, kind: SampleKind) -> bool {
        match self {
            Self::ThreadTime => true,
            Self::Cpu => kind == SampleKind::Managed,
        }
    }
}

impl fmt::Display for View {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
