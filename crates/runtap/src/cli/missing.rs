//! The verbs that are not there on Windows: each takes whatever it is given, and says why. Not in the help.

use clap::Subcommand;

use super::words::Words;

/// A verb that other systems have.
#[derive(Debug, Subcommand)]
pub(crate) enum Missing {
    /// Write perf maps for code that the JIT compiles
    #[command(hide = true, name = "perfmap")]
    PerfMap(Words),
}

impl Missing {
    /// What it is called, and why it is not there.
    pub(crate) fn reason(&self) -> (&'static str, &'static str) {
        match self {
            Self::PerfMap(_) => ("perfmap", "runtimes write perf maps on Linux alone"),
        }
    }
}
