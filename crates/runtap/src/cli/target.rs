//! The options that select a process.

use std::path::PathBuf;

use clap::{Args, ValueHint};
use clap_complete::engine::ArgValueCompleter;

use crate::cmd::complete;
use runtap_target::messages::parse_pid;

/// A target, selected by a word or by options.
#[derive(Debug, Args, Clone, Default)]
#[command(next_help_heading = "Target")]
pub(crate) struct Target {
    /// Process id, exact name of a process or its entry assembly, or a remote process: `runtap://HOST:PORT[/PID|NAME]`
    #[arg(value_name = "TARGET", conflicts_with_all = ["process_id", "name", "diagnostic_port"], add = ArgValueCompleter::new(complete::targets))]
    pub(crate) word: Option<String>,
    #[command(flatten)]
    pub(crate) options: TargetOptions,
}

/// The options that select a target.
#[derive(Debug, Args, Clone, Default)]
#[command(next_help_heading = "Target")]
pub(crate) struct TargetOptions {
    /// Process id
    #[arg(short, long, value_name = "PID", value_parser = parse_pid, conflicts_with = "name", add = ArgValueCompleter::new(complete::pids))]
    pub(crate) process_id: Option<u32>,
    /// Exact name of the process or its entry assembly; matches only your own processes (as root: only root's)
    #[arg(short, long, value_name = "NAME", add = ArgValueCompleter::new(complete::names))]
    pub(crate) name: Option<String>,
    /// With a name: select processes of this user
    #[arg(long, value_name = "NAME|UID", conflicts_with_all = ["process_id", "diagnostic_port"], add = ArgValueCompleter::new(complete::users))]
    pub(crate) user: Option<String>,
    /// Diagnostic port: PATH, uds:PATH or `file://PATH`, followed by `,connect` to connect to a runtime or `,listen` to
    /// wait for one; or a remote process, `runtap://HOST:PORT[/PID|NAME]`
    #[arg(long, visible_alias = "dport", value_name = "ADDR[,MODE]", conflicts_with_all = ["process_id", "name"])]
    pub(crate) diagnostic_port: Option<String>,
    /// File with the router's access token (must not be readable by others). Only for `runtap://` targets [default: the
    /// value of `$RUNTAP_TOKEN`]
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) token_file: Option<PathBuf>,
}

/// The option that selects several processes.
#[derive(Debug, Args, Clone, Copy, Default)]
#[command(next_help_heading = "Target")]
pub(crate) struct All {
    /// Select all processes with this name (of a single user). JSON output is one document per line
    #[arg(long)]
    pub(crate) all: bool,
}

impl TargetOptions {
    /// Whether any of the options that select a target is given.
    pub(crate) fn any(&self) -> bool {
        self.process_id.is_some() || self.name.is_some() || self.diagnostic_port.is_some()
    }
}
