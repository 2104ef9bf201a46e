//! The options of the verbs that read the blocks of a recording and not its events.

use std::path::PathBuf;

use clap::{Args, ValueHint};
use clap_complete::engine::ArgValueCompleter;

use super::{InputSize, ResultFormat, input_file};
use crate::cmd::complete;

#[derive(Debug, Args)]
#[command(after_help = "\
Copies intact blocks unchanged. Of a truncated or damaged block, the part before the damage is kept. \
The recording itself is not modified.

Examples:
  runtap repair cut.nettrace                  to cut.repaired.nettrace
  runtap repair cut.nettrace -o whole.nettrace
  runtap repair cut.nettrace --format json | jq .partial")]
pub(crate) struct Repair {
    /// The recording; '-' is stdin
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath, value_parser = input_file(),
        add = ArgValueCompleter::new(complete::recordings))]
    pub(crate) file: PathBuf,
    /// Output file; '-' is stdout
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) output: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) format: ResultFormat,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  runtap inspect trace.nettrace | head -30
  runtap inspect trace.nettrace --format json | jq '.blocks[] | select(.damage)'
  runtap inspect talk.jsonl                    a transcript of 'runtap record'
  runtap inspect run.dir                       a recording of 'runtap jvm hq --record'
  runtap inspect talk.jsonl --format json | jq '.rows[].name'")]
pub(crate) struct Inspect {
    /// The recording (of a .NET or Java program) or transcript; '-' is stdin
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath, value_parser = input_file(),
        add = ArgValueCompleter::new(complete::recordings))]
    pub(crate) file: PathBuf,
    /// For transcripts: show the values of environment variables, which may contain secrets
    #[arg(long)]
    pub(crate) show_values: bool,
    #[command(flatten)]
    pub(crate) max_size: InputSize,
    #[command(flatten)]
    pub(crate) format: ResultFormat,
}
