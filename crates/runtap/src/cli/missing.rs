//! The verbs that are not there on Windows: each takes whatever it is given, and says why. Not in the help.

use std::ffi::OsString;

use clap::{Args, Subcommand};

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

/// Anything.
#[derive(Debug, Args)]
#[command(disable_help_flag = true)]
pub(crate) struct Words {
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    pub(crate) words: Vec<OsString>,
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
