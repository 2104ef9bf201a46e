//! The options of `runtap jvm report` and `runtap jvm replay`, which read recordings of Bytefrog connections.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueHint};
use runtap_convert::FileFormat;
use runtap_jvm::recording::{DEFAULT_SLOW, Order};
use runtap_jvm::report::ReportKind;
use runtap_model::View;

use super::choices::{choice, choice_of, is_dotnet_view};
use super::{AnyFormat, JvmCoverage, ResultFormat, TextOrJson};
use runtap_text::units::{parse_duration, parse_limit_megabytes, parse_rows};

#[derive(Debug, Args)]
#[command(after_help = "\
RECORDING is a directory written by --record, one of its .bin files, or DIR/AGENT for one agent. \
PART selects a part of it: NAME (marked during the recording), KEY=VALUE (the segments that start \
with this marker; KEY= for any value), or FROM..UNTIL (each 1.5s, 250ms or KEY=VALUE).

--or, --and and --minus list methods that ran in RECORDING or any --or recording, and in every --and \
recording, and in no --minus recording. --diff compares numbers of calls and times.

Examples:
  runtap jvm report run.dir
  runtap jvm report run.dir tree -n 50
  runtap jvm report run.dir methods --sort calls --format json | jq '.agents[]'
  runtap jvm report run.dir#checkout --minus run.dir#idle    code of a feature
  runtap jvm report new.dir --diff old.dir --sort total
  runtap jvm report run.dir#request=7 --to speedscope
  runtap jvm report run.dir --to pprof --view calls -o calls.pb.gz
  runtap jvm report run.dir --never-called app.jar
  runtap jvm report run.dir --coverage lcov=app.info --classes app.jar")]
pub(crate) struct JvmReport {
    /// The recording, or a part of the recording
    #[arg(value_name = "RECORDING[#PART]", value_hint = ValueHint::AnyPath)]
    pub(crate) recording: String,
    /// What to report [default: a summary of all kinds except the tree; in JSON runtap.jvm/1]
    #[arg(value_name = "KIND", value_parser = choice::<ReportKind>())]
    pub(crate) kind: Option<ReportKind>,
    /// Only this agent of the recording; repeatable
    #[arg(long, value_name = "NAME")]
    pub(crate) agent: Vec<String>,
    /// Add up all agents of the recording, such as the JVMs that a test run has started
    #[arg(long)]
    pub(crate) merge_agents: bool,
    /// Sort methods, or the rows of --diff, by this value [default: self; calls if times are unknown]
    #[arg(long, value_name = "WHAT", value_parser = choice::<Order>())]
    pub(crate) sort: Option<Order>,
    /// Only the call tree of this thread
    #[arg(long, value_name = "ID")]
    pub(crate) thread: Option<u32>,
    /// Maximum number of rows of each list; 0 for all [default: 30 in a table, all in JSON]
    #[arg(short, long, alias = "limit", value_name = "N", value_parser = parse_rows)]
    pub(crate) number: Option<usize>,
    /// Minimum duration of slow calls [default: 100ms]
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
    /// Format of the result, text or json; a file format works as --to
    #[arg(long, value_name = "FORMAT")]
    pub(crate) format: Option<AnyFormat>,
}

impl JvmReport {
    /// Returns the minimum duration of a slow call.
    pub(crate) fn slow(&self) -> Duration {
        self.slow.unwrap_or(DEFAULT_SLOW)
    }

    /// Whether the result is JSON.
    pub(crate) fn is_json(&self) -> bool {
        AnyFormat::of_result(self.format) == TextOrJson::Json
    }

    /// Returns the maximum number of rows of a JSON document; tables are limited when they are printed.
    pub(crate) fn document_rows(&self) -> Option<usize> {
        self.number.filter(|number| *number > 0 && self.is_json())
    }
}

/// The options that compare which methods ran in several recordings.
#[derive(Debug, Args)]
#[command(next_help_heading = "Which methods ran")]
pub(crate) struct JvmSets {
    /// Add methods that ran in this recording, also for coverage; repeatable
    #[arg(long, value_name = "RECORDING[#PART]", value_hint = ValueHint::AnyPath, conflicts_with_all = ["kind", "to", "output"])]
    pub(crate) or: Vec<String>,
    /// Keep only methods that also ran in this recording; repeatable
    #[arg(long, value_name = "RECORDING[#PART]", value_hint = ValueHint::AnyPath, conflicts_with_all = ["kind", "to", "output"])]
    pub(crate) and: Vec<String>,
    /// Remove methods that ran in this recording; repeatable
    #[arg(long, value_name = "RECORDING[#PART]", value_hint = ValueHint::AnyPath, conflicts_with_all = ["kind", "to", "output"])]
    pub(crate) minus: Vec<String>,
}

impl JvmSets {
    /// Whether recordings are compared.
    pub(crate) fn is_wanted(&self) -> bool {
        !(self.or.is_empty() && self.and.is_empty() && self.minus.is_empty())
    }
}

/// The options for files that viewers open.
#[derive(Debug, Args)]
#[command(next_help_heading = "Output")]
pub(crate) struct JvmFiles {
    /// Write a profile in this format instead of a report; repeatable
    #[arg(long, value_name = "FORMAT", ignore_case = true, value_delimiter = ',', conflicts_with = "kind",
        value_parser = choice_of::<FileFormat>(|format| format.sink().is_some()))]
    pub(crate) to: Vec<FileFormat>,
    /// Output file; '-' is stdout
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath, conflicts_with = "kind")]
    pub(crate) output: Option<PathBuf>,
    /// What a profile counts [default: time]
    #[arg(long, value_name = "VIEW", value_parser = choice_of::<View>(|view| !is_dotnet_view(view)))]
    pub(crate) view: Option<View>,
    /// Merge all threads in folded stacks and flame graphs
    #[arg(long)]
    pub(crate) merge_threads: bool,
    /// Maximum number of frames per stack; frames in the middle of deeper stacks are omitted; 0 for no limit [default: 1024]
    #[arg(long, value_name = "N")]
    pub(crate) max_depth: Option<usize>,
    /// Approximate size at which a file is truncated; 0 for no limit [default: 1GB, or 32 times the size of the recording]
    #[arg(long, value_name = "MB", value_parser = parse_limit_megabytes)]
    pub(crate) max_size: Option<u32>,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Processes the recorded bytes, in order of time, exactly as 'jvm hq' processes those of agents. The \
report is the same each time.

Examples:
  runtap jvm replay run.dir
  runtap jvm replay run.dir/agent0 --format json | jq '.agents[].entries'")]
pub(crate) struct JvmReplay {
    /// Recordings: directories written by --record, .bin files, or DIR/AGENT for one agent
    #[arg(value_name = "RECORDING", value_hint = ValueHint::AnyPath, required = true)]
    pub(crate) recordings: Vec<PathBuf>,
    /// Maximum number of rows of each list; 0 for all [default: 30 in a table, all in JSON]
    #[arg(short, long, alias = "limit", value_name = "N", value_parser = parse_rows)]
    pub(crate) number: Option<usize>,
    /// Log calls that take at least this long
    #[arg(long, value_name = "TIME", value_parser = parse_duration, default_value = "100ms")]
    pub(crate) slow: Duration,
    #[command(flatten)]
    pub(crate) format: ResultFormat,
}
