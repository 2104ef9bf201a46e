//! Whatever a verb is given that is not there on this system.

use std::ffi::OsString;

use clap::Args;

/// Anything.
#[derive(Debug, Args)]
#[command(disable_help_flag = true)]
pub(crate) struct Words {
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    pub(crate) words: Vec<OsString>,
}
