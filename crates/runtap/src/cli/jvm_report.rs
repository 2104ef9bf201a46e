//! `runtap jvm report` and `jvm replay`: recordings of Bytefrog connections, as clap sees them.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum, ValueHint};
use runtap_convert::FileFormat;
use runtap_jvm::recording::Order;

use super::choices::choice_of;
use super::{AnyFormat, JvmCoverage, ResultFormat, TextOrJson};
use crate::units::{parse_duration, parse_limit_megabytes, parse_rows};

/// What to report.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum JvmKind {
    /// Methods: calls, time with and without callees
    Methods,
    /// Who calls whom
    Tree,
    /// Exceptions: thrown, raised, swallowed and escaped where
    Exceptions,
    /// Segments between markers, and the parts that were marked
    Segments,
    /// The slowest calls, with their callers
    Slow,
    /// Threads
    Threads,
    /// Classes: transformed, ignored, failed
    Classes,
    /// What is missing, and the rules that were broken
    Losses,
}

/// What rows are sorted by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum JvmSort {
    /// Time without callees
    #[value(name = "self")]
    Own,
    /// Time with callees
    Total,
    /// Calls
    Calls,
}

impl From<JvmSort> for Order {
    fn from(sort: JvmSort) -> Self {
        match sort {
            JvmSort::Own => Self::Own,
            JvmSort::Total => Self::Total,
            JvmSort::Calls => Self::Calls,
        }
    }
}

/// What a profile counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum JvmView {
    /// Time
    Time,
    /// Calls: for folded, flamegraph, pprof and speedscope
    Calls,
}

#[derive(Debug, Args)]
#[command(after_help = "\
RECORDING is a directory of 'jvm hq --record', one of its .bin files, or DIR/AGENT for one agent.
RECORDING#PART is a part of it: NAME (marked while it was recorded), KEY=VALUE (segments that this
marker begins; KEY= for any value), or FROM..UNTIL (1.5s, 250ms or KEY=VALUE on either side).

--or, --and and --minus compare which methods ran, in that order: what ran in RECORDING or in one of
--or, and in each of --and, and in none of --minus. --diff compares how often and how long.

Examples:
  runtap jvm report run.dir
  runtap jvm report run.dir tree -n 50
  runtap jvm report run.dir methods --sort calls --format json | jq '.agents[].methods[:3]'
  runtap jvm report run.dir#checkout --minus run.dir#idle       what ran for this feature
  runtap jvm report new.dir --diff old.dir --sort total
  runtap jvm report run.dir#request=7 --to speedscope           writes run.dir.speedscope.json
  runtap jvm report run.dir --to pprof --view calls -o calls.pb.gz
  runtap jvm report run.dir --never-called app.jar              dead code, as far as this run shows it
  runtap jvm report run.dir --or night.dir --coverage lcov=app.info --classes app.jar --sources src")]
pub(crate) struct JvmReport {
    /// The recording, or a part of it
    #[arg(value_name = "RECORDING[#PART]", value_hint = ValueHint::AnyPath)]
    pub(crate) recording: String,
    /// What to report [default: all but the tree, shortly; in JSON runtap.jvm/1]
    #[arg(value_name = "KIND")]
    pub(crate) kind: Option<JvmKind>,
    /// Only this agent of the recording; repeat it for several
    #[arg(long, value_name = "NAME")]
    pub(crate) agent: Vec<String>,
    /// All agents of the recording as one, such as the JVMs that a test run has forked: what they have called is added up
    #[arg(long)]
    pub(crate) merge_agents: bool,
    /// Sort methods, or what --diff has found, by this [default: self; calls, where nothing is known of times]
    #[arg(long, value_name = "WHAT")]
    pub(crate) sort: Option<JvmSort>,
    /// Only the tree of the thread with this number
    #[arg(long, value_name = "ID")]
    pub(crate) thread: Option<u32>,
    /// How many rows of each list to show; 0 for all [default: 30 in a table, all in JSON]
    #[arg(short, long, alias = "limit", value_name = "N", value_parser = parse_rows)]
    pub(crate) number: Option<usize>,
    /// Calls that take this long are slow [default: 100ms]
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    pub(crate) slow: Option<Duration>,
    #[command(flatten)]
    pub(crate) sets: JvmSets,
    /// Compare with this earlier recording, method by method
    #[arg(long, value_name = "BEFORE[#PART]", value_hint = ValueHint::AnyPath,
        conflicts_with_all = ["kind", "or", "and", "minus", "to", "output"])]
    pub(crate) diff: Option<String>,
    #[command(flatten)]
    pub(crate) coverage: JvmCoverage,
    #[command(flatten)]
    pub(crate) files: JvmFiles,
    /// Format of the result, text or json; a file format is taken as --to
    #[arg(long, value_name = "FORMAT")]
    pub(crate) format: Option<AnyFormat>,
}

impl JvmReport {
    /// How long a slow call takes.
    pub(crate) fn slow(&self) -> Duration {
        self.slow.unwrap_or(Duration::from_millis(100))
    }

    /// Whether the result is JSON.
    pub(crate) fn is_json(&self) -> bool {
        AnyFormat::of_result(self.format) == TextOrJson::Json
    }
}

/// Which methods ran in one recording and not in another.
#[derive(Debug, Args)]
#[command(next_help_heading = "Which methods ran")]
pub(crate) struct JvmSets {
    /// Add what ran in this one, to coverage too; repeatable
    #[arg(long, value_name = "RECORDING[#PART]", value_hint = ValueHint::AnyPath, conflicts_with_all = ["kind", "to", "output"])]
    pub(crate) or: Vec<String>,
    /// Keep what ran in this one too; repeatable
    #[arg(long, value_name = "RECORDING[#PART]", value_hint = ValueHint::AnyPath, conflicts_with_all = ["kind", "to", "output"])]
    pub(crate) and: Vec<String>,
    /// Leave out what ran in this one; repeatable
    #[arg(long, value_name = "RECORDING[#PART]", value_hint = ValueHint::AnyPath, conflicts_with_all = ["kind", "to", "output"])]
    pub(crate) minus: Vec<String>,
}

/// Files for viewers.
#[derive(Debug, Args)]
#[command(next_help_heading = "Output")]
pub(crate) struct JvmFiles {
    /// Write a profile in this format instead of a report; repeat it for several
    #[arg(long, value_name = "FORMAT", ignore_case = true, value_delimiter = ',', conflicts_with = "kind",
        value_parser = choice_of::<FileFormat>(|format| format.sink().is_some()))]
    pub(crate) to: Vec<FileFormat>,
    /// Output file; '-' is stdout
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath, conflicts_with = "kind")]
    pub(crate) output: Option<PathBuf>,
    /// What a profile counts [default: time]
    #[arg(long, value_name = "VIEW")]
    pub(crate) view: Option<JvmView>,
    /// Merge all threads in folded stacks and flame graphs
    #[arg(long)]
    pub(crate) merge_threads: bool,
    /// Maximum number of frames per stack; deeper stacks lose their middle; 0 for no limit [default: 1024]
    #[arg(long, value_name = "N")]
    pub(crate) max_depth: Option<usize>,
    /// Approximate maximum size of a file, which is cut there; 0 for no limit [default: 1GB, or 32 times the recording]
    #[arg(long, value_name = "MB", value_parser = parse_limit_megabytes)]
    pub(crate) max_size: Option<u32>,
}

#[derive(Debug, Args)]
#[command(after_help = "\
It gives the recorded bytes to the same machines that listen to agents, in the order of their times,
and prints what they come to: each time the same.

Examples:
  runtap jvm replay run.dir
  runtap jvm replay run.dir/agent0 other.dir --format json | jq '.agents[].entries'")]
pub(crate) struct JvmReplay {
    /// Recordings: directories of 'jvm hq --record', .bin files, or DIR/AGENT for one agent
    #[arg(value_name = "RECORDING", value_hint = ValueHint::AnyPath, required = true)]
    pub(crate) recordings: Vec<PathBuf>,
    /// How many rows of each list to show; 0 for all [default: 30 in a table, all in JSON]
    #[arg(short, long, alias = "limit", value_name = "N", value_parser = parse_rows)]
    pub(crate) number: Option<usize>,
    /// Log calls that take this long
    #[arg(long, value_name = "TIME", value_parser = parse_duration, default_value = "100ms")]
    pub(crate) slow: Duration,
    #[command(flatten)]
    pub(crate) format: ResultFormat,
}
