//! The verbs that Windows does not support. They accept any arguments, fail with the reason, and are hidden in the help.

use clap::Subcommand;

use super::words::Words;

/// A verb that only other operating systems support.
#[derive(Debug, Subcommand)]
pub(crate) enum Missing {
    /// Write perf maps for code that the JIT compiles
    #[command(hide = true, name = "perfmap")]
    PerfMap(Words),
}

impl Missing {
    /// Returns the name of the verb and why it is not supported.
    pub(crate) fn reason(&self) -> (&'static str, &'static str) {
        match self {
            Self::PerfMap(_) => ("perfmap", "runtimes write perf maps on Linux alone"),
        }
    }
}
