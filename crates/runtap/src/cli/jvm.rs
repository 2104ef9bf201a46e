//! The options of `runtap jvm`, which traces the calls of Java programs over the Bytefrog protocol.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand, ValueEnum, ValueHint};

use super::jvm_agents::JVM_EXAMPLES;
use super::{AnyFormat, JvmAgents, JvmReplay, JvmReport, ResultFormat, TextOrJson};
use runtap_text::units::{parse_duration, parse_interval};

/// The default address, with the port of the original collectors.
const DEFAULT_ADDRESS: &str = "127.0.0.1:8765";

#[derive(Debug, Args)]
#[command(after_help = JVM_EXAMPLES)]
pub(crate) struct Jvm {
    #[command(subcommand)]
    pub(crate) verb: JvmVerb,
}

#[derive(Debug, Subcommand)]
pub(crate) enum JvmVerb {
    /// Collect calls from Bytefrog agents: callers, counts and durations
    Hq(Box<JvmHq>),
    #[command(flatten)]
    Agents(JvmAgents),
    /// Report on a recording: methods, call tree, exceptions, coverage, differences
    Report(Box<JvmReport>),
    /// Replay a recording through the collector and print the report
    Replay(JvmReplay),
}

impl Default for JvmHq {
    /// Returns the values of the options if none is given.
    fn default() -> Self {
        Self {
            listen: DEFAULT_ADDRESS.to_owned(),
            insecure: false,
            allow_user: Vec::new(),
            tracing: JvmTracing {
                include: Vec::new(),
                exclude: Vec::new(),
                senders: 1,
                mode: JvmMode::Full,
                clock: JvmClock::Ns,
                when_slow: None,
            },
            no_start: false,
            once: false,
            duration: None,
            slow: Duration::from_millis(100),
            interval: Duration::from_secs(10),
            plain: false,
            limit: 20,
            record: None,
            control: None,
            send: None,
            format: ResultFormat { format: TextOrJson::Text },
        }
    }
}

impl Jvm {
    /// Returns the format of the result.
    pub(super) fn format(&self) -> TextOrJson {
        match &self.verb {
            JvmVerb::Hq(options) => options.format.format,
            JvmVerb::Agents(verb) => verb.format(),
            JvmVerb::Report(options) => AnyFormat::of_result(options.format),
            JvmVerb::Replay(options) => options.format.format,
        }
    }
}

/// What agents record. Only runtap's agents support all modes; the original agents send every call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum JvmMode {
    /// Every call
    Full,
    /// Number of calls of each method: no times, callers, threads or exceptions
    Counts,
    /// Which methods and lines ran
    Coverage,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum JvmClock {
    /// Milliseconds, with less overhead in the program
    Ms,
    /// Nanoseconds
    Ns,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum WhenSlow {
    /// Block the program's threads until the collector catches up
    Block,
    /// Drop events and report their number
    Drop,
    /// Continue with counts only
    Counts,
}

/// The options that select what to trace.
#[derive(Debug, Args, Clone)]
#[command(next_help_heading = "Tracing")]
pub(crate) struct JvmTracing {
    /// Trace only classes that match; takes precedence over --exclude; repeatable. A Java regular expression for class names
    /// with slashes, anchored at the start. 'run' and 'attach' also trace JDK classes that match, such as '^java/util/'
    #[arg(long, value_name = "REGEX")]
    pub(crate) include: Vec<String>,
    /// Do not trace classes that match; repeatable
    #[arg(long, value_name = "REGEX")]
    pub(crate) exclude: Vec<String>,
    /// Number of data connections of each agent
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u8).range(1..=64))]
    pub(crate) senders: u8,
    /// What to record (runtap's agent only; the original agents record all calls)
    #[arg(long, value_name = "MODE", default_value = "full")]
    pub(crate) mode: JvmMode,
    /// Resolution of times (runtap's agent only; the original agents send milliseconds)
    #[arg(long, value_name = "UNIT", default_value = "ns")]
    pub(crate) clock: JvmClock,
    /// What to do if the collector is slower than the program (runtap's agent only; the original agents block)
    /// [default: block; for 'jvm attach': counts, so that a running program is never blocked]
    #[arg(long, value_name = "WHAT")]
    pub(crate) when_slow: Option<WhenSlow>,
}

#[derive(Debug, Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a switch of the command line")]
#[command(after_help = "\
Agents connect to the collector. To load runtap's agent: 'runtap jvm attach PID --hq ADDR:PORT', or \
'runtap jvm agent' and java -agentpath:. To load the original agent: \
java -javaagent:bytefrog-tracer.jar=ADDR:PORT. 'runtap jvm run', and 'runtap jvm attach' without --hq, \
need no separate collector.

The protocol has no password. On a loopback address, only agents of your own user and root are \
accepted (on Linux; --allow-user adds users). On any other address, all connections are accepted.

On a terminal there is a live view; '?' shows its keys. Ctrl-C stops the agents, waits for their \
remaining data and prints the report; a second Ctrl-C skips the wait.

Commands for --send: status, quit; report, snapshot, start, stop, pause, unpause, suspend, unsuspend, \
each with the number of an agent or, for all agents, without; begin NAME and end NAME, which mark a \
part of the recording; and, before start, configure [AGENT] {\"include\": […], \"exclude\": […]}.

Examples:
  runtap jvm hq --include '^com/example/'
  runtap jvm hq --exclude '^(java|sun|jdk)/' --exclude '.*/generated/.*'
  runtap jvm hq --once --format json > calls.json
  runtap jvm hq --no-start --control /tmp/hq.sock
  runtap jvm hq --control /tmp/hq.sock --send 'suspend 0'")]
pub(crate) struct JvmHq {
    /// Address to listen on for agents
    #[arg(long, value_name = "ADDR:PORT", default_value = DEFAULT_ADDRESS)]
    pub(crate) listen: String,
    /// Allow a non-loopback address. Traffic is unencrypted and all connections are accepted
    #[arg(long)]
    pub(crate) insecure: bool,
    /// On a loopback address: also accept agents of this user, or of 'all' users, besides yours and root's; repeatable
    #[arg(long, value_name = "NAME|UID")]
    pub(crate) allow_user: Vec<String>,
    #[command(flatten)]
    pub(crate) tracing: JvmTracing,
    /// Do not start programs; start them in the live view or with --send start
    #[arg(long)]
    pub(crate) no_start: bool,
    /// Stop when the first agent stops
    #[arg(long)]
    pub(crate) once: bool,
    /// Stop after this time
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    pub(crate) duration: Option<Duration>,
    /// Log calls that take at least this long
    #[arg(long, value_name = "TIME", value_parser = parse_duration, default_value = "100ms")]
    pub(crate) slow: Duration,
    /// Interval of printed summaries; 0 for none
    #[arg(long, value_name = "TIME", value_parser = parse_interval, default_value = "10s")]
    pub(crate) interval: Duration,
    /// Print lines instead of the live view, even on a terminal
    #[arg(long)]
    pub(crate) plain: bool,
    /// Maximum number of rows of each table; 0 for all
    #[arg(long, alias = "number", value_name = "N", default_value_t = 20)]
    pub(crate) limit: usize,
    /// Record all data to this directory, for 'jvm report' and 'jvm replay'
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) record: Option<PathBuf>,
    /// Listen for commands on this socket
    #[arg(long, value_name = "PATH", value_hint = ValueHint::FilePath)]
    pub(crate) control: Option<PathBuf>,
    /// Send a command to the collector at --control and print the reply
    #[arg(long, value_name = "COMMAND", requires = "control")]
    pub(crate) send: Option<String>,
    #[command(flatten)]
    pub(crate) format: ResultFormat,
}
