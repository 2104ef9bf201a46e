//! The built-in program, as clap sees it.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand, ValueEnum, ValueHint};

use super::{ResultFormat, TextOrJson};
use crate::units::parse_duration;

#[derive(Debug, Args)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "\
Examples:
  runtap demo                        record the built-in program, end with a flame graph
  runtap demo jvm                    trace a built-in Java-like program, with the live view
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
    /// Collect what a built-in program calls that acts as a Java program with an agent
    Jvm(DemoJvm),
    /// Be that program
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
    /// The version of the protocol that its agent speaks
    #[arg(long, value_name = "VERSION", default_value = "f1")]
    pub(crate) version: AgentVersion,
    /// Lines instead of the live view, also on a terminal
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
    /// How the result is printed.
    pub(super) fn format(&self) -> TextOrJson {
        match &self.what {
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
