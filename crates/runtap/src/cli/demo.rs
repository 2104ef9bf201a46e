//! The options of `runtap demo`.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand, ValueEnum, ValueHint};

use super::{ResultFormat, TextOrJson};
use runtap_text::units::parse_duration;

#[derive(Debug, Args)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "\
Examples:
  runtap demo                       record the program, make a flame graph
  runtap demo jvm                   trace an imitated Java program, live
  runtap demo serve --seconds 60    a target for any .NET diagnostics tool"
)]
pub(crate) struct Demo {
    #[command(subcommand)]
    pub(crate) verb: Option<DemoVerb>,
    #[command(flatten)]
    pub(crate) trace: DemoTrace,
}

#[derive(Debug, Subcommand)]
pub(crate) enum DemoVerb {
    /// Record the built-in program and make a flame graph (default)
    Trace(DemoTrace),
    /// Run the built-in program as a target for diagnostics tools
    Serve(DemoServe),
    /// Trace a built-in program that imitates a Java program with an agent
    Jvm(DemoJvm),
    /// Run the program that 'demo jvm' traces
    #[command(hide = true)]
    JvmAgent(DemoJvmAgent),
}

/// A version of the Bytefrog protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum AgentVersion {
    /// bytefrog
    #[value(name = "1")]
    One,
    /// Code Pulse 2.0
    #[value(name = "2")]
    Two,
    /// Code Pulse 2.5
    #[value(name = "3")]
    Three,
    /// Code Pulse 2.7
    #[value(name = "4")]
    Four,
    /// runtap
    #[value(name = "f1", alias = "F1")]
    F1,
}

#[derive(Debug, Args)]
pub(crate) struct DemoJvm {
    /// How long the program runs
    #[arg(long, value_name = "TIME", value_parser = parse_duration, default_value = "10s")]
    pub(crate) duration: Duration,
    /// Protocol version of the imitated agent
    #[arg(long, value_name = "VERSION", default_value = "f1")]
    pub(crate) version: AgentVersion,
    /// Print lines instead of the live view, even on a terminal
    #[arg(long)]
    pub(crate) plain: bool,
    #[command(flatten)]
    pub(crate) format: ResultFormat,
}

#[derive(Debug, Args)]
pub(crate) struct DemoJvmAgent {
    /// Where the collector listens
    #[arg(long, value_name = "ADDR:PORT")]
    pub(crate) connect: SocketAddr,
    /// How long to run
    #[arg(long, value_name = "TIME", value_parser = parse_duration, default_value = "60s")]
    pub(crate) seconds: Duration,
    /// The version of the protocol
    #[arg(long, value_name = "VERSION", default_value = "f1")]
    pub(crate) version: AgentVersion,
}

impl Demo {
    /// Returns the format of the result.
    pub(super) fn format(&self) -> TextOrJson {
        match &self.verb {
            Some(DemoVerb::Jvm(options)) => options.format.format,
            _ => TextOrJson::Text,
        }
    }
}

#[derive(Debug, Args)]
pub(crate) struct DemoTrace {
    /// How long to record
    #[arg(long, value_name = "TIME", value_parser = parse_duration, default_value = "3s")]
    pub(crate) duration: Duration,
    /// Output file; the extension of each format is appended [default: runtap-demo]
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) output: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct DemoServe {
    /// How long to run
    #[arg(long, value_name = "TIME", value_parser = parse_duration, default_value = "60s")]
    pub(crate) seconds: Duration,
}
