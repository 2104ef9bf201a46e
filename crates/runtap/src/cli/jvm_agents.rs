//! The options of the verbs of `runtap jvm` that load or write the agent.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand, ValueHint};

use super::{JvmTracing, ResultFormat, TextOrJson};
use runtap_target::messages::parse_pid;
use runtap_text::units::parse_duration;

pub(super) const JVM_EXAMPLES: &str = "\
Examples:
  runtap demo jvm
  runtap jvm run --include '^com/example/' -- java -jar service.jar
  runtap jvm attach 1234 --include '^com/example/' --duration 10s
  runtap jvm hq --once --include '^com/example/'
  runtap jvm hq --format json > calls.json";

#[derive(Debug, Subcommand)]
pub(crate) enum JvmAgents {
    /// Run a Java program with the agent and report its calls
    Run(Box<JvmRun>),
    /// Trace a running Java program: load the agent, unload it at the end
    Attach(Box<JvmAttach>),
    /// Write the agent library to a file, for java -agentpath:
    Agent(JvmAgent),
    /// Unload an agent from a running program
    Detach(JvmDetach),
}

impl JvmAgents {
    /// Returns the format of the result.
    pub(super) fn format(&self) -> TextOrJson {
        match self {
            Self::Run(options) => options.shown.format.format,
            Self::Attach(options) => options.shown.format.format,
            Self::Detach(_) | Self::Agent(_) => TextOrJson::Text,
        }
    }
}

/// The options for the printed calls, while the program runs and at the end.
#[derive(Debug, Args, Clone)]
pub(crate) struct JvmShown {
    /// Log calls that take at least this long
    #[arg(long, value_name = "TIME", value_parser = parse_duration, default_value = "100ms")]
    pub(crate) slow: Duration,
    /// Maximum number of rows of each table; 0 for all
    #[arg(long, alias = "number", value_name = "N", default_value_t = 20)]
    pub(crate) limit: usize,
    /// Record all data to this directory, for 'jvm report' and 'jvm replay'
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) record: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) format: ResultFormat,
}

#[derive(Debug, Args)]
#[command(after_help = "\
If the command is named 'java', -agentpath: is added as its first argument. For any other command, \
the option is added to JAVA_TOOL_OPTIONS: every JVM that the command starts is traced, and prints a \
line about that variable. Exits with the command's exit code.

Examples:
  runtap jvm run --include '^com/example/' -- java -jar service.jar
  runtap jvm run --mode counts -- mvn -q test")]
pub(crate) struct JvmRun {
    #[command(flatten)]
    pub(crate) tracing: JvmTracing,
    #[command(flatten)]
    pub(crate) shown: JvmShown,
    /// The command and its arguments
    #[arg(last = true, required = true, value_name = "COMMAND", value_hint = ValueHint::CommandWithArguments)]
    pub(crate) command: Vec<OsString>,
}

/// The options that select a Java program.
#[derive(Debug, Args, Clone, Default)]
#[command(next_help_heading = "Target")]
pub(crate) struct JvmTarget {
    /// Process id, or name of a Java program: its main class or jar file
    #[arg(value_name = "TARGET", conflicts_with_all = ["process_id", "name"], required_unless_present_any = ["process_id", "name"])]
    pub(crate) word: Option<String>,
    /// Process id
    #[arg(short, long, value_name = "PID", value_parser = parse_pid, conflicts_with = "name")]
    pub(crate) process_id: Option<u32>,
    /// Exact name of the program; matches only your own processes (as root: only root's)
    #[arg(short, long, value_name = "NAME")]
    pub(crate) name: Option<String>,
}

#[derive(Debug, Args)]
#[command(after_help = "\
The agent is loaded through the JVM's attach socket; no JDK is required. At the end (Ctrl-C or \
--duration) the agent restores all classes and is unloaded, and the report is printed.

Examples:
  runtap jvm attach 1234 --include '^com/example/' --duration 10s
  runtap jvm attach -n com.example.Main --mode coverage --format json
  runtap jvm attach 1234 --hq 127.0.0.1:8765    send to a running collector")]
pub(crate) struct JvmAttach {
    #[command(flatten)]
    pub(crate) target: JvmTarget,
    #[command(flatten)]
    pub(crate) tracing: JvmTracing,
    #[command(flatten)]
    pub(crate) shown: JvmShown,
    /// Detach after this time
    #[arg(long, value_name = "TIME", value_parser = parse_duration, conflicts_with = "hq")]
    pub(crate) duration: Option<Duration>,
    /// Connect the agent to a running collector ('jvm hq'), which selects what to trace, and leave the agent loaded
    #[arg(long, value_name = "HOST:PORT", conflicts_with_all = ["include", "exclude", "senders", "mode", "clock", "when_slow", "slow", "limit", "record", "format"])]
    pub(crate) hq: Option<String>,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Agent options are key=value, separated by commas: host, port, include, exclude, mode, clock, \
when-slow, wait, boot. The agent requests from the collector ('jvm hq') at host and port what to \
trace. Without expressions on either side, it traces all classes except those of the JDK.

Examples:
  runtap jvm agent
  runtap jvm agent -o /opt/lib/agent.so
  java -agentpath:/opt/lib/agent.so=host=127.0.0.1,port=8765 -jar service.jar")]
pub(crate) struct JvmAgent {
    /// Output file [default: `libruntap_jvm_agent.so`]
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) output: Option<PathBuf>,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  runtap jvm detach 1234")]
pub(crate) struct JvmDetach {
    #[command(flatten)]
    pub(crate) target: JvmTarget,
}
