//! The options of `runtap counters`.

use std::ffi::OsString;
use std::num::NonZeroU32;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand, ValueHint};
use runtap_sinks::counters::CounterFormat;

use super::choices::choice;
use super::{ResultFormat, Target, TextOrJson};
use runtap_text::units::{parse_duration, parse_time_limit};

#[derive(Debug, Args)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "\
Examples:
  runtap counters 1234                          the counters of the runtime
  runtap counters 1234 --counters 'System.Runtime[cpu-usage],My.Meter'
  runtap counters -n MyService --format json | jq .value
  runtap counters collect 1234 --duration 1m --to csv -o counters.csv"
)]
pub(crate) struct Counters {
    #[command(subcommand)]
    pub(crate) verb: Option<CountersVerb>,
    #[command(flatten)]
    pub(crate) monitor: MonitorCounters,
}

#[derive(Debug, Subcommand)]
pub(crate) enum CountersVerb {
    /// Show counters, in a table that is redrawn or as lines (the default)
    Monitor(Box<MonitorCounters>),
    /// Write counters to a file
    #[command(after_help = "\
Examples:
  runtap counters collect 1234 --counters My.Meter --to prometheus -o my.prom
  runtap counters collect --to jsonl -o - -- dotnet app.dll")]
    Collect(Box<CollectCounters>),
}

#[derive(Debug, Args)]
pub(crate) struct MonitorCounters {
    #[command(flatten)]
    pub(crate) options: CounterOptions,
    /// Also show the changes since the last reading
    #[arg(long = "showDeltas", alias = "show-deltas")]
    pub(crate) deltas: bool,
    #[command(flatten)]
    pub(crate) format: ResultFormat,
}

#[derive(Debug, Args)]
pub(crate) struct CollectCounters {
    #[command(flatten)]
    pub(crate) options: CounterOptions,
    /// Output file; '-' is stdout [default: `counter` with the extension of the format]
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) output: Option<PathBuf>,
    /// Format of the file [default: by the extension of -o, or csv]
    #[arg(long, visible_alias = "format", value_name = "FORMAT", ignore_case = true,
        value_parser = choice::<CounterFormat>())]
    pub(crate) to: Option<CounterFormat>,
}

/// The options of both modes.
#[derive(Debug, Args)]
#[expect(clippy::struct_excessive_bools, reason = "switches of a command line")]
pub(crate) struct CounterOptions {
    #[command(flatten)]
    pub(crate) target: Target,
    /// Select all processes with this name (of a single user)
    #[arg(long, help_heading = "Target")]
    pub(crate) all: bool,
    /// Wait for a process with this name, and continue with the next one when it exits
    #[arg(long, help_heading = "Target", conflicts_with_all = ["children", "command"])]
    pub(crate) wait: bool,
    /// Also read the counters of child processes
    #[arg(long, help_heading = "Target", conflicts_with = "all")]
    pub(crate) children: bool,
    /// With a command: show its output
    #[arg(long, help_heading = "Target")]
    pub(crate) show_child_io: bool,
    /// Start this command and read its counters from startup
    #[arg(last = true, value_name = "COMMAND", value_hint = ValueHint::CommandWithArguments,
        conflicts_with_all = ["word", "process_id", "name", "user", "diagnostic_port"], help_heading = "Target")]
    pub(crate) command: Vec<OsString>,
    /// Comma-separated meters and event sources: `Name[COUNTER,…]`, or `EventCounters\Name` for event counters only
    /// [default: System.Runtime]. Of Java programs: groups such as `jvm.gc` [default: all]
    #[arg(long, value_name = "LIST", help_heading = "Counters")]
    pub(crate) counters: Vec<String>,
    /// Time between two readings
    #[arg(long, value_name = "TIME", default_value = "1", value_parser = parse_duration, help_heading = "Counters")]
    pub(crate) refresh_interval: Duration,
    /// Maximum number of time series of meters
    #[arg(
        long = "maxTimeSeries",
        alias = "max-time-series",
        value_name = "N",
        default_value = "1000",
        help_heading = "Counters"
    )]
    pub(crate) max_series: NonZeroU32,
    /// Maximum number of histograms of meters
    #[arg(
        long = "maxHistograms",
        alias = "max-histograms",
        value_name = "N",
        default_value = "10",
        help_heading = "Counters"
    )]
    pub(crate) max_histograms: NonZeroU32,
    /// Stop after this time: 30s, 250ms, 1m30s, plain seconds, dd:hh:mm:ss
    #[arg(long, value_name = "TIME", value_parser = parse_time_limit, help_heading = "Counters")]
    pub(crate) duration: Option<Duration>,
}

impl Counters {
    /// Returns the format of the result.
    pub(crate) fn format(&self) -> TextOrJson {
        match &self.verb {
            None => self.monitor.format.format,
            Some(CountersVerb::Monitor(options)) => options.format.format,
            Some(CountersVerb::Collect(_)) => TextOrJson::Text,
        }
    }
}
