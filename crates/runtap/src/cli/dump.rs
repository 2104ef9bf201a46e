//! `runtap dump`, as clap sees it.

use std::path::PathBuf;

use clap::{Args, ValueHint};
use runtap_record::dump::DumpKind;

use super::choices::choice;
use super::{All, ResultFormat, Target};

#[derive(Debug, Args)]
#[command(after_help = "\
The process writes the dump itself (by createdump) and is paused meanwhile. FILE is a path on your side: if the process
cannot reach it, it writes to its own temporary directory and runtap fetches the file. createdump reports its progress
on the target's standard output, with --diag in detail: if that is a full pipe that is not read, createdump and
the target block.

Examples:
  runtap dump 1234                              a new file in this directory
  runtap dump -n MyService --type heap -o /var/dumps/my.core
  runtap dump 1234 --type mini --crashreport    also a JSON file with all stacks")]
pub(crate) struct Dump {
    #[command(flatten)]
    pub(crate) target: Target,
    #[command(flatten)]
    pub(crate) all: All,
    /// What to include
    #[arg(long, value_name = "TYPE", default_value = "full", ignore_case = true, value_parser = choice::<DumpKind>())]
    pub(crate) r#type: DumpKind,
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
