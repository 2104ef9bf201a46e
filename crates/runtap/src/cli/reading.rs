//! The verbs that read recordings, as clap sees them.

use std::path::PathBuf;

use clap::builder::{EnumValueParser, TypedValueParser};
use clap::{Args, ValueEnum, ValueHint};
use clap_complete::engine::ArgValueCompleter;
use runtap_clr::lines::Style;
use runtap_clr::report::Kind;
use runtap_convert::FileFormat;
use runtap_model::View;

use super::formats::{file_format, view};
use super::{AnyFormat, Content, ResultFormat, input_file};
use crate::cmd::complete;
use crate::units::parse_rows;

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  runtap convert trace.nettrace --to speedscope        writes trace.speedscope.json beside it
  runtap convert trace.nettrace -o trace.svg           the extension says the format
  runtap convert trace.nettrace --to folded -o - | head
  zcat trace.nettrace.gz | runtap convert - --to folded -o -
  runtap convert old.netperf --to nettrace             for tools that do not read the first format any more")]
pub(crate) struct Convert {
    /// The recording; '-' is stdin
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath, value_parser = input_file(),
        add = ArgValueCompleter::new(complete::recordings))]
    pub(crate) file: PathBuf,
    /// Format to write; repeat it for several
    #[arg(long, value_name = "FORMAT", ignore_case = true, value_delimiter = ',', value_parser = file_format())]
    pub(crate) to: Vec<FileFormat>,
    /// Output file; '-' is stdout
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) output: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) content: Content,
    /// A file format, as dotnet-trace has it: the same as --to
    #[arg(long, value_name = "FORMAT")]
    pub(crate) format: Option<AnyFormat>,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Shares of each recording's total are compared, so that a longer recording is not a slower one.

Examples:
  runtap diff old.nettrace new.nettrace
  runtap diff old.nettrace new.nettrace --inclusive -n 10
  runtap diff old.nettrace new.nettrace --to flamegraph    writes new.diff.svg
  runtap diff old.nettrace new.nettrace --format json | jq '.frames[] | select(.self_share.significant)'")]
pub(crate) struct Diff {
    /// The recording to compare with
    #[arg(value_name = "BEFORE", value_hint = ValueHint::FilePath, value_parser = input_file(),
        add = ArgValueCompleter::new(complete::recordings))]
    pub(crate) before: PathBuf,
    /// The recording that is compared
    #[arg(value_name = "AFTER", value_hint = ValueHint::FilePath, value_parser = input_file(),
        add = ArgValueCompleter::new(complete::recordings))]
    pub(crate) after: PathBuf,
    /// What to compare; cpu by default
    #[arg(long, value_name = "VIEW", value_parser = view())]
    pub(crate) view: Option<View>,
    /// Compare absolute times (or bytes, or counts) instead of shares
    #[arg(long)]
    pub(crate) absolute: bool,
    /// Sort by the time of a frame and its callees
    #[arg(long)]
    pub(crate) inclusive: bool,
    /// How many frames to show; by default 30 in a table and all in JSON
    #[arg(short, long, value_name = "N", value_parser = parse_rows)]
    pub(crate) number: Option<usize>,
    /// Write the stacks too: folded (with two numbers) or flamegraph (red for more, blue for less)
    #[arg(long, value_name = "FORMAT", ignore_case = true, value_delimiter = ',', value_parser = file_format())]
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
    /// The question
    #[arg(value_name = "KIND", value_parser = kind())]
    pub(crate) kind: Kind,
    /// How many rows of each list to show; by default 30 in a table and all in JSON
    #[arg(short, long, value_name = "N", value_parser = parse_rows)]
    pub(crate) number: Option<usize>,
    /// cpu: sort by the time of a frame and its callees
    #[arg(long)]
    pub(crate) inclusive: bool,
    /// cpu: what to count
    #[arg(long, value_name = "VIEW", value_parser = view())]
    pub(crate) view: Option<View>,
    #[command(flatten)]
    pub(crate) format: ResultFormat,
}

/// What questions are called.
#[derive(Debug, Clone, Copy, ValueEnum)]
enum KindName {
    /// Where the time went: methods and threads
    #[value(aliases = ["topN", "topn"])]
    Cpu,
    /// Collections, pauses and heap sizes
    Gc,
    /// Types that were allocated, and where
    Alloc,
    /// Exceptions by type
    Exceptions,
    /// Waits for locks, and where
    Contention,
    /// Methods compiled at run time
    Jit,
    /// Threads of the thread pool
    Threadpool,
    /// HTTP requests, answered and sent
    Http,
    /// How many events of which kind
    Events,
    /// Events that the target dropped
    Loss,
    /// Meters and event counters
    Counters,
    /// Log messages
    Logs,
}

impl From<KindName> for Kind {
    fn from(name: KindName) -> Self {
        match name {
            KindName::Cpu => Self::Cpu,
            KindName::Gc => Self::Gc,
            KindName::Alloc => Self::Alloc,
            KindName::Exceptions => Self::Exceptions,
            KindName::Contention => Self::Contention,
            KindName::Jit => Self::Jit,
            KindName::Threadpool => Self::Threadpool,
            KindName::Http => Self::Http,
            KindName::Events => Self::Events,
            KindName::Loss => Self::Loss,
            KindName::Counters => Self::Counters,
            KindName::Logs => Self::Logs,
        }
    }
}

/// Parses a question.
fn kind() -> impl TypedValueParser<Value = Kind> {
    EnumValueParser::<KindName>::new().map(Kind::from)
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
    /// Only events that meet this condition
    #[arg(long, value_name = "EXPR")]
    pub(crate) filter: Option<String>,
    /// Only events of this provider; repeat it for several
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    pub(crate) provider: Vec<String>,
    /// With the stack of each event, the innermost frame first
    #[arg(long)]
    pub(crate) stacks: bool,
    /// Format of the lines: json (the default), csv or text; of the counts: text (the default) or json
    #[arg(long, value_name = "FORMAT", hide_possible_values = true, value_parser = line_format())]
    pub(crate) format: Option<Style>,
}

/// What the formats of a stream of lines are called.
#[derive(Debug, Clone, Copy, ValueEnum)]
enum LineFormat {
    Text,
    #[value(alias = "jsonl")]
    Json,
    Csv,
}

impl From<LineFormat> for Style {
    fn from(format: LineFormat) -> Self {
        match format {
            LineFormat::Text => Self::Text,
            LineFormat::Json => Self::Json,
            LineFormat::Csv => Self::Csv,
        }
    }
}

/// Parses a format of lines.
pub(super) fn line_format() -> impl TypedValueParser<Value = Style> {
    EnumValueParser::<LineFormat>::new().map(Style::from)
}
