//! The verbs that read recordings, as clap sees them.

use std::path::PathBuf;

use clap::{Args, ValueHint};
use clap_complete::engine::ArgValueCompleter;
use runtap_clr::lines::Style;
use runtap_clr::report::ReportKind;
use runtap_convert::FileFormat;
use runtap_model::View;

use super::choices::choice;
use super::{AnyFormat, Content, ResultFormat, input_file};
use crate::cmd::complete;
use crate::units::parse_rows;

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  runtap convert trace.nettrace --to speedscope        writes trace.speedscope.json beside it
  runtap convert trace.nettrace -o trace.svg           the extension selects the format
  runtap convert trace.nettrace --to folded -o - | head
  zcat trace.nettrace.gz | runtap convert - --to folded -o -
  runtap convert old.netperf --to nettrace             for tools that no longer read the oldest format")]
pub(crate) struct Convert {
    /// The recording; '-' is stdin
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath, value_parser = input_file(),
        add = ArgValueCompleter::new(complete::recordings))]
    pub(crate) file: PathBuf,
    /// Format to write; repeat it for several
    #[arg(long, value_name = "FORMAT", ignore_case = true, value_delimiter = ',', value_parser = choice::<FileFormat>())]
    pub(crate) to: Vec<FileFormat>,
    /// Output file; '-' is stdout
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) output: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) content: Content,
    /// A file format, as in dotnet-trace: the same as --to
    #[arg(long, value_name = "FORMAT")]
    pub(crate) format: Option<AnyFormat>,
}

#[derive(Debug, Args)]
#[command(after_help = "\
It compares shares of each recording's total, so the recordings need not be equally long.

Examples:
  runtap diff old.nettrace new.nettrace
  runtap diff old.nettrace new.nettrace --inclusive -n 10
  runtap diff old.nettrace new.nettrace --to flamegraph    writes new.diff.svg
  runtap diff old.nettrace new.nettrace --format json | jq '.frames[] | select(.self_share.significant)'")]
pub(crate) struct Diff {
    /// The baseline recording
    #[arg(value_name = "BEFORE", value_hint = ValueHint::FilePath, value_parser = input_file(),
        add = ArgValueCompleter::new(complete::recordings))]
    pub(crate) before: PathBuf,
    /// The recording to compare with the baseline
    #[arg(value_name = "AFTER", value_hint = ValueHint::FilePath, value_parser = input_file(),
        add = ArgValueCompleter::new(complete::recordings))]
    pub(crate) after: PathBuf,
    /// Which samples to compare [default: cpu]
    #[arg(long, value_name = "VIEW", value_parser = choice::<View>())]
    pub(crate) view: Option<View>,
    /// Compare absolute times (or bytes, or counts) instead of shares
    #[arg(long)]
    pub(crate) absolute: bool,
    /// Sort by total (inclusive) instead of self (exclusive)
    #[arg(long)]
    pub(crate) inclusive: bool,
    /// How many frames to show [default: 30 in a table, all in JSON]
    #[arg(short, long, value_name = "N", value_parser = parse_rows)]
    pub(crate) number: Option<usize>,
    /// Also write the stacks: folded (with two numbers) or flamegraph (red for more, blue for less)
    #[arg(long, value_name = "FORMAT", ignore_case = true, value_delimiter = ',', value_parser = choice::<FileFormat>())]
    pub(crate) to: Vec<FileFormat>,
    /// Output file for --to; '-' is stdout
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) output: Option<PathBuf>,
    /// Format of the result, text or json; a file format is taken as --to
    #[arg(long, value_name = "FORMAT")]
    pub(crate) format: Option<AnyFormat>,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  runtap report trace.nettrace cpu
  runtap report trace.nettrace cpu --inclusive -n 10
  runtap report trace.nettrace gc
  runtap report trace.nettrace exceptions --format json | jq '.types[] | {type, thrown_count}'")]
pub(crate) struct Report {
    /// The recording; '-' is stdin
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath, value_parser = input_file(),
        add = ArgValueCompleter::new(complete::recordings))]
    pub(crate) file: PathBuf,
    /// What to report
    #[arg(value_name = "KIND", value_parser = choice::<ReportKind>())]
    pub(crate) kind: ReportKind,
    /// How many rows of each list to show [default: 30 in a table, all in JSON]
    #[arg(short, long, value_name = "N", value_parser = parse_rows)]
    pub(crate) number: Option<usize>,
    /// cpu: sort by total (inclusive) instead of self (exclusive)
    #[arg(long)]
    pub(crate) inclusive: bool,
    /// cpu: which samples to count [default: cpu]
    #[arg(long, value_name = "VIEW", value_parser = choice::<View>())]
    pub(crate) view: Option<View>,
    #[command(flatten)]
    pub(crate) format: ResultFormat,
}

#[derive(Debug, Args)]
#[command(after_help = "\
A filter compares fields: FIELD OP VALUE, joined by and, or, not and parentheses. OP is = != < <= > >= or ~ (regular
expression). FIELD is a member of the JSON line (provider, name, id, level, thread, ts_ns, time …), payload.NAME for a
field of the event, or stack for the names on its stack.

Examples:
  runtap events trace.nettrace | jq 'select(.name == \"GC/Start\")'
  runtap events trace.nettrace --filter 'name = Exception/Start and payload.ExceptionType ~ Timeout' --stacks
  runtap events trace.nettrace --provider Microsoft-Extensions-Logging --format text
  runtap events trace.nettrace --count
  runtap events trace.nettrace --count --format json | jq '.lost'")]
pub(crate) struct Events {
    /// The recording; '-' is stdin
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath, value_parser = input_file(),
        add = ArgValueCompleter::new(complete::recordings))]
    pub(crate) file: PathBuf,
    /// Count the events of each kind
    #[arg(long)]
    pub(crate) count: bool,
    /// Show only events that match this condition
    #[arg(long, value_name = "EXPR")]
    pub(crate) filter: Option<String>,
    /// Show only events of this provider; repeat it for several
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    pub(crate) provider: Vec<String>,
    /// Include the stack of each event, innermost frame first
    #[arg(long)]
    pub(crate) stacks: bool,
    /// Format of the lines: json (the default), csv or text; of the counts: text (the default) or json
    #[arg(long, value_name = "FORMAT", hide_possible_values = true, value_parser = choice::<Style>())]
    pub(crate) format: Option<Style>,
}
