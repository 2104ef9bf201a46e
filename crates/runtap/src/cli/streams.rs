//! The verbs that look at the stream itself, not at its events, as clap sees them.

use std::path::PathBuf;

use clap::{Args, ValueHint};
use clap_complete::engine::ArgValueCompleter;

use super::{InputSize, ResultFormat, input_file};
use crate::cmd::complete;

#[derive(Debug, Args)]
#[command(after_help = "\
What is whole is copied as it is; a block that is cut or damaged keeps what comes before the damage. The recording itself
is not touched.

Examples:
  runtap repair cut.nettrace                           writes cut.repaired.nettrace beside it
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
  runtap inspect trace.nettrace --format json | jq '[.blocks[].definitions[]?] | length'
  runtap inspect talk.jsonl                            what 'runtap record' has written, decoded
  runtap inspect talk.jsonl --format json | jq '.rows[] | select(.what == \"request\") | .name'")]
pub(crate) struct Inspect {
    /// The recording or transcript; '-' is stdin
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath, value_parser = input_file(),
        add = ArgValueCompleter::new(complete::recordings))]
    pub(crate) file: PathBuf,
    /// Of a transcript: show the values of environment variables, which may be secrets
    #[arg(long)]
    pub(crate) show_values: bool,
    #[command(flatten)]
    pub(crate) max_size: InputSize,
    #[command(flatten)]
    pub(crate) format: ResultFormat,
}
