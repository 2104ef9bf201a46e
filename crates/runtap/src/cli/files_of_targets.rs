//! The verbs that have a process write files of its own, as clap sees them: dumps and perf maps.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueHint};
use runtap_diag::PerfMapType;
use runtap_dump::Kind;

use super::choices::choice;
use super::{All, Processes, ResultFormat, Target};

#[derive(Debug, Args)]
#[command(after_help = "\
The process writes the dump itself (by createdump) and is paused meanwhile. FILE is a path on your side: if the process
cannot reach it, it writes to its own temporary directory and runtap fetches the file. createdump reports its progress
on the target's standard output, with --diag in detail: if that is a full pipe that is not read, createdump and
the target block.

Examples:
  runtap dump 1234                              core_DATE_TIME in this directory
  runtap dump -n MyService --type heap -o /var/dumps/my.core
  runtap dump 1234 --type mini --crashreport    also a JSON file with all stacks")]
pub(crate) struct Dump {
    #[command(flatten)]
    pub(crate) target: Target,
    #[command(flatten)]
    pub(crate) all: All,
    /// What to include
    #[arg(long, value_name = "TYPE", default_value = "full", ignore_case = true, value_parser = choice::<Kind>())]
    pub(crate) r#type: Kind,
    /// Have createdump report in detail, on the target's standard output
    #[arg(long)]
    pub(crate) diag: bool,
    /// Write FILE.crashreport.json too: all threads with their native and managed frames
    #[arg(long)]
    pub(crate) crashreport: bool,
    /// The file, or a directory for it
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::AnyPath)]
    pub(crate) output: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) format: ResultFormat,
}

#[derive(Debug, Subcommand)]
pub(crate) enum PerfMap {
    /// Write the addresses of compiled methods, including those compiled already
    Enable(EnablePerfMap),
    /// Stop writing; existing files are kept
    #[command(after_help = "\
Examples:
  runtap perfmap disable 1234")]
    Disable(Processes),
}

#[derive(Debug, Args)]
#[command(after_help = "\
The files are written into the target's /tmp, or where DOTNET_PerfMapJitDumpPath points. Needs .NET 8 or later on Linux;
.NET 8 and 9 can't be asked while they are suspended at startup (set DOTNET_PerfMapEnabled=1 for them).

Examples:
  runtap perfmap enable 1234 --type perfmap     then: perf record -g -p 1234
  runtap perfmap disable 1234")]
pub(crate) struct EnablePerfMap {
    #[command(flatten)]
    pub(crate) target: Target,
    #[command(flatten)]
    pub(crate) all: All,
    /// Which files
    #[arg(long, value_name = "TYPE", default_value = "all", ignore_case = true, value_parser = choice::<PerfMapType>())]
    pub(crate) r#type: PerfMapType,
    #[command(flatten)]
    pub(crate) format: ResultFormat,
}
