//! The built-in program, as clap sees it.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand, ValueHint};

use crate::units::parse_duration;

#[derive(Debug, Args)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "\
Examples:
  runtap demo                        record the built-in program, end with a flame graph
  runtap demo serve --seconds 60     be a diagnosable process that any .NET tool can tap"
)]
pub(crate) struct Demo {
    #[command(subcommand)]
    pub(crate) what: Option<DemoVerb>,
    #[command(flatten)]
    pub(crate) trace: DemoTrace,
}

#[derive(Debug, Subcommand)]
pub(crate) enum DemoVerb {
    /// Record the built-in program and make a flame graph of it (the default)
    Trace(DemoTrace),
    /// Run a diagnosable process
    Serve(DemoServe),
}

#[derive(Debug, Args)]
pub(crate) struct DemoTrace {
    /// How long to record
    #[arg(long, value_name = "TIME", value_parser = parse_duration, default_value = "3s")]
    pub(crate) duration: Duration,
    /// Where to write; the extensions of the formats are appended
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) output: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct DemoServe {
    /// How long to run
    #[arg(long, value_name = "TIME", value_parser = parse_duration, default_value = "60s")]
    pub(crate) seconds: Duration,
}
