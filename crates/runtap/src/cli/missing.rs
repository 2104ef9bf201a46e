//! The verbs that are not there on Windows: each takes whatever it is given, and says why. Not in the help.

use clap::Subcommand;

use super::words::Words;

/// A verb that other systems have.
#[derive(Debug, Subcommand)]
pub(crate) enum Missing {
    /// Write a core dump of a process
    #[command(hide = true)]
    Dump(Words),
    /// Write perf maps for code that the JIT compiles
    #[command(hide = true, name = "perfmap")]
    PerfMap(Words),
}

impl Missing {
    /// What it is called, and why it is not there.
    pub(crate) fn reason(&self) -> (&'static str, &'static str) {
        match self {
            Self::Dump(_) => {
                ("dump", "where a process may write, and who can read it, is not looked at on Windows yet")
            }
            Self::PerfMap(_) => ("perfmap", "runtimes write perf maps on Linux alone"),
        }
    }
}
