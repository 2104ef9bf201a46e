//! The options of `runtap dump`.

use std::path::PathBuf;

use clap::{Args, ValueHint};
use runtap_record::dump::DumpKind;

use super::choices::choice;
use super::{All, ResultFormat, Target};

#[derive(Debug, Args)]
#[command(after_help = "\
The target's runtime runs createdump, which pauses the process while it writes. FILE is a path as \
you see it: if the target can't write there, it writes to its own temporary directory and runtap \
copies the file. createdump prints its progress to the target's stdout; if that is a full pipe \
that no process reads, createdump and the target block.

Examples:
  runtap dump 1234                              to core_DATE_TIME
  runtap dump -n MyService --type heap -o /var/dumps/my.core
  runtap dump 1234 --type mini --crashreport    also all stacks, as JSON")]
pub(crate) struct Dump {
    #[command(flatten)]
    pub(crate) target: Target,
    #[command(flatten)]
    pub(crate) all: All,
    /// What to include
    #[arg(long, value_name = "TYPE", default_value = "full", ignore_case = true, value_parser = choice::<DumpKind>())]
    pub(crate) r#type: DumpKind,
    /// Enable createdump's verbose output (written to the target's stdout)
    #[arg(long)]
    pub(crate) diag: bool,
    /// Also write FILE.crashreport.json: all threads with their native and managed frames
    #[arg(long)]
    pub(crate) crashreport: bool,
    /// Output file, or a directory for it [default: `core_yyyyMMdd_HHmmss`]
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::AnyPath)]
    pub(crate) output: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) format: ResultFormat,
}
