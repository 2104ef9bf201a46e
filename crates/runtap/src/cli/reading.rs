//! The options of the verbs that read recordings.

use std::path::PathBuf;

use clap::{Args, ValueHint};
use clap_complete::engine::ArgValueCompleter;
use runtap_clr::lines::Style;
use runtap_convert::FileFormat;
use runtap_heap::TypeOrder;
use runtap_model::View;

use super::choices::{choice, choice_of, is_dotnet_view, report_kinds};
use super::{AnyFormat, Content, ResultFormat, input_file};
use crate::cmd::complete;
use runtap_text::units::parse_rows;

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  runtap convert trace.nettrace --to speedscope    to trace.speedscope.json
  runtap convert trace.nettrace -o trace.svg       format by extension
  runtap convert trace.nettrace --to folded -o - | head
  runtap convert run.dir --to speedscope           a recording of 'runtap jvm hq --record'
  zcat trace.nettrace.gz | runtap convert - --to folded -o -
  runtap convert old.netperf --to nettrace         for newer tools")]
#[command(mut_arg("view", |arg| arg.value_parser(choice::<View>())))]
pub(crate) struct Convert {
    /// The recording; '-' is stdin
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath, value_parser = input_file(),
        add = ArgValueCompleter::new(complete::recordings))]
    pub(crate) file: PathBuf,
    /// Format to write; repeatable
    #[arg(long, value_name = "FORMAT", ignore_case = true, value_delimiter = ',', value_parser = choice::<FileFormat>())]
    pub(crate) to: Vec<FileFormat>,
    /// Output file; '-' is stdout
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) output: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) content: Content,
    /// A file format, as in dotnet-trace; works as --to
    #[arg(long, value_name = "FORMAT")]
    pub(crate) format: Option<AnyFormat>,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Compares shares of each recording's total, so the recordings can have different lengths. Java recordings contain \
every call, so their methods are compared by calls and times.

Examples:
  runtap diff old.nettrace new.nettrace
  runtap diff old.nettrace new.nettrace --inclusive -n 10
  runtap diff old.nettrace new.nettrace --to flamegraph    to new.diff.svg
  runtap diff old.nettrace new.nettrace --format json | jq '.frames[:10]'")]
pub(crate) struct Diff {
    /// The baseline recording
    #[arg(value_name = "BEFORE", value_hint = ValueHint::FilePath, value_parser = input_file(),
        add = ArgValueCompleter::new(complete::recordings))]
    pub(crate) before: PathBuf,
    /// The recording to compare with the baseline
    #[arg(value_name = "AFTER", value_hint = ValueHint::FilePath, value_parser = input_file(),
        add = ArgValueCompleter::new(complete::recordings))]
    pub(crate) after: PathBuf,
    /// Samples to compare [default: cpu]
    #[arg(long, value_name = "VIEW", value_parser = choice::<View>())]
    pub(crate) view: Option<View>,
    /// Compare absolute times (or bytes, or counts) instead of shares
    #[arg(long)]
    pub(crate) absolute: bool,
    /// Sort by total (inclusive) instead of self (exclusive)
    #[arg(long)]
    pub(crate) inclusive: bool,
    /// Maximum number of frames to show [default: 30 in a table, all in JSON]
    #[arg(short, long, value_name = "N", value_parser = parse_rows)]
    pub(crate) number: Option<usize>,
    /// Also write the stacks: folded (with two values) or flamegraph (red: increased, blue: decreased)
    #[arg(long, value_name = "FORMAT", ignore_case = true, value_delimiter = ',', value_parser = choice::<FileFormat>())]
    pub(crate) to: Vec<FileFormat>,
    /// Output file for --to; '-' is stdout
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) output: Option<PathBuf>,
    /// Format of the result, text or json; a file format works as --to
    #[arg(long, value_name = "FORMAT")]
    pub(crate) format: Option<AnyFormat>,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  runtap report trace.nettrace cpu
  runtap report trace.nettrace cpu --inclusive -n 10
  runtap report trace.nettrace gc
  runtap report app.hprof -n 10   also of .gcdump files
  runtap report run.dir tree    a recording of 'runtap jvm hq --record'
  runtap report trace.nettrace exceptions --format json | jq '.types[].type'")]
pub(crate) struct Report {
    /// The recording; '-' is stdin
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath, value_parser = input_file(),
        add = ArgValueCompleter::new(complete::recordings))]
    pub(crate) file: PathBuf,
    /// What to report [default for heap dumps: heap]
    #[arg(value_name = "KIND", value_parser = report_kinds(), default_value = "", hide_default_value = true)]
    pub(crate) kind: String,
    /// Maximum number of rows of each list [default: 30 in a table, all in JSON]
    #[arg(short, long, value_name = "N", value_parser = parse_rows)]
    pub(crate) number: Option<usize>,
    /// For cpu: sort by total (inclusive) instead of self (exclusive)
    #[arg(long)]
    pub(crate) inclusive: bool,
    /// For cpu: samples to count [default: cpu]
    #[arg(long, value_name = "VIEW", value_parser = choice_of::<View>(is_dotnet_view))]
    pub(crate) view: Option<View>,
    /// For heap: the number by which types are sorted [default: bytes]
    #[arg(long, value_name = "WHAT", value_parser = choice::<TypeOrder>())]
    pub(crate) sort: Option<TypeOrder>,
    /// For heap: show a shortest path from a root to an object of this type, or at this address (0x…)
    #[arg(long, value_name = "TYPE")]
    pub(crate) path: Option<String>,
    #[command(flatten)]
    pub(crate) format: ResultFormat,
}

#[derive(Debug, Args)]
#[command(after_help = "\
A filter is FIELD OP VALUE, combined with and, or, not and parentheses. OP is = != < <= > >= or ~ \
(regular expression). FIELD is a member of the JSON line (provider, name, id, level, thread, ts_ns, \
time …), payload.NAME for a field of the event, or stack for the method names of its stack.

Examples:
  runtap events trace.nettrace | jq 'select(.name == \"GC/Start\")'
  runtap events trace.nettrace --stacks --filter 'payload.ExceptionType ~ Timeout'
  runtap events trace.nettrace --provider Microsoft-Extensions-Logging
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
    /// Show only events of this provider; repeatable
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    pub(crate) provider: Vec<String>,
    /// Include the stack of each event, innermost frame first
    #[arg(long)]
    pub(crate) stacks: bool,
    /// json (default), csv or text; with --count: text (default) or json
    #[arg(long, value_name = "FORMAT", hide_possible_values = true, value_parser = choice::<Style>())]
    pub(crate) format: Option<Style>,
}
