//! The verbs that read recordings, as clap sees them.

use std::path::PathBuf;

use clap::{Args, ValueEnum, ValueHint};
use clap_complete::engine::ArgValueCompleter;

use super::{AnyFormat, Content, FileFormat, ResultFormat, View, input_file};
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
    #[arg(long, value_name = "FORMAT", ignore_case = true, value_delimiter = ',')]
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
    /// What to compare; cpu if nothing is said
    #[arg(long, value_name = "VIEW")]
    pub(crate) view: Option<View>,
    /// Compare times (or bytes, or numbers) as they were recorded, not shares
    #[arg(long)]
    pub(crate) absolute: bool,
    /// Sort by the time of a frame and all that it called
    #[arg(long)]
    pub(crate) inclusive: bool,
    /// How many frames to show; 30 of a table and all of a document if nothing is said
    #[arg(short, long, value_name = "N", value_parser = parse_rows)]
    pub(crate) number: Option<usize>,
    /// Write the stacks too: folded (with two numbers) or flamegraph (red for more, blue for less)
    #[arg(long, value_name = "FORMAT", ignore_case = true, value_delimiter = ',')]
    pub(crate) to: Vec<FileFormat>,
    /// File for --to; '-' is stdout
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
    #[arg(value_name = "KIND")]
    pub(crate) kind: ReportKind,
    /// How many rows of each list to show; 30 of a table and all of a document if nothing is said
    #[arg(short, long, value_name = "N", value_parser = parse_rows)]
    pub(crate) number: Option<usize>,
    /// cpu: sort by the time of a frame and all that it called
    #[arg(long)]
    pub(crate) inclusive: bool,
    /// cpu: what to count
    #[arg(long, value_name = "VIEW")]
    pub(crate) view: Option<View>,
    #[command(flatten)]
    pub(crate) format: ResultFormat,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ReportKind {
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

impl ReportKind {
    /// Its name on the command line and in the schema.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Cpu => "cpu",
            Self::Gc => "gc",
            Self::Alloc => "alloc",
            Self::Exceptions => "exceptions",
            Self::Contention => "contention",
            Self::Jit => "jit",
            Self::Threadpool => "threadpool",
            Self::Http => "http",
            Self::Events => "events",
            Self::Loss => "loss",
            Self::Counters => "counters",
            Self::Logs => "logs",
        }
    }

    /// What the report tells of, as it stands in a sentence.
    pub(crate) fn subject(self) -> &'static str {
        match self {
            Self::Cpu => "samples",
            Self::Gc => "collections",
            Self::Alloc => "allocations",
            Self::Exceptions => "exceptions",
            Self::Contention => "waits for locks",
            Self::Jit => "compiled methods",
            Self::Threadpool => "events of the thread pool",
            Self::Http => "HTTP requests",
            Self::Events | Self::Loss => "events",
            Self::Counters => "counters",
            Self::Logs => "log messages",
        }
    }
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
    #[arg(long, value_name = "FORMAT", hide_possible_values = true)]
    pub(crate) format: Option<LineFormat>,
}

/// The format of a stream of lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum LineFormat {
    Text,
    #[value(alias = "jsonl")]
    Json,
    Csv,
}
