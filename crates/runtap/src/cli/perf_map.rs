//! The options of `runtap perfmap`.

use clap::{Args, Subcommand};
use runtap_diag::PerfMapType;

use super::choices::choice;
use super::{All, Processes, ResultFormat, Target};

#[derive(Debug, Subcommand)]
pub(crate) enum PerfMap {
    /// Write the addresses of compiled methods, including methods compiled earlier
    Enable(EnablePerfMap),
    /// Stop writing perf maps; existing files are kept
    #[command(after_help = "\
Examples:
  runtap perfmap disable 1234")]
    Disable(Processes),
}

#[derive(Debug, Args)]
#[command(after_help = "\
The files are written to the target's /tmp or to its DOTNET_PerfMapJitDumpPath. Requires .NET 8 or \
later on Linux. Rejected for .NET 8 and 9 while they are suspended at startup; set \
DOTNET_PerfMapEnabled=1 for them instead.

Examples:
  runtap perfmap enable 1234 --type perfmap    then: perf record -g -p 1234
  runtap perfmap disable 1234")]
pub(crate) struct EnablePerfMap {
    #[command(flatten)]
    pub(crate) target: Target,
    #[command(flatten)]
    pub(crate) all: All,
    /// Files to write
    #[arg(long, value_name = "TYPE", default_value = "all", ignore_case = true, value_parser = choice::<PerfMapType>())]
    pub(crate) r#type: PerfMapType,
    #[command(flatten)]
    pub(crate) format: ResultFormat,
}
