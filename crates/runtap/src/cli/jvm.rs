//! `runtap jvm`: what Java programs call, by the Bytefrog protocol, as clap sees it.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand, ValueEnum, ValueHint};

use super::jvm_agents::JVM_EXAMPLES;
use super::{AnyFormat, JvmAgents, JvmReplay, JvmReport, ResultFormat, TextOrJson};
use crate::units::{parse_duration, parse_interval};

/// The port of the original collectors.
const DEFAULT_ADDRESS: &str = "127.0.0.1:8765";

#[derive(Debug, Args)]
#[command(after_help = JVM_EXAMPLES)]
pub(crate) struct Jvm {
    #[command(subcommand)]
    pub(crate) verb: JvmVerb,
}

#[derive(Debug, Subcommand)]
pub(crate) enum JvmVerb {
    /// Collect what Bytefrog agents trace: who calls whom, how often, for how long
    Hq(Box<JvmHq>),
    #[command(flatten)]
    Agents(JvmAgents),
    /// Answer from a recording: methods, call tree, exceptions, differences, files for viewers
    Report(Box<JvmReport>),
    /// Play a recording back through the collector, and print what it comes to
    Replay(JvmReplay),
}

impl Default for JvmHq {
    /// As if no word was given.
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
    /// How the result is printed.
    pub(super) fn format(&self) -> TextOrJson {
        match &self.verb {
            JvmVerb::Hq(options) => options.format.format,
            JvmVerb::Agents(verb) => verb.format(),
            JvmVerb::Report(options) => AnyFormat::of_result(options.format),
            JvmVerb::Replay(options) => options.format.format,
        }
    }
}

/// What agents are told to record. Only agents of runtap can choose; the original ones send every call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum JvmMode {
    /// Every call
    Full,
    /// How often each method is called: no times, callers, threads or exceptions
    Counts,
    /// Which methods and lines have run at all
    Coverage,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum JvmClock {
    /// Milliseconds: costs the program less
    Ms,
    /// Nanoseconds
    Ns,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum WhenSlow {
    /// The program waits
    Block,
    /// Events are dropped, and their number is told
    Drop,
    /// Go on with counts only
    Counts,
}

/// What to trace.
#[derive(Debug, Args, Clone)]
#[command(next_help_heading = "Tracing")]
pub(crate) struct JvmTracing {
    /// Trace these classes only; with --exclude, these in spite of it. A Java regular expression for names with slashes,
    /// anchored at the beginning; repeatable. 'run' and 'attach' trace classes of the JDK if one names them: '^java/util/'
    #[arg(long, value_name = "REGEX")]
    pub(crate) include: Vec<String>,
    /// Leave these classes alone; repeatable
    #[arg(long, value_name = "REGEX")]
    pub(crate) exclude: Vec<String>,
    /// Data connections of each agent
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u8).range(1..=64))]
    pub(crate) senders: u8,
    /// What agents of runtap record
    #[arg(long, value_name = "MODE", default_value = "full")]
    pub(crate) mode: JvmMode,
    /// The clock of runtap's agents; the original ones have milliseconds
    #[arg(long, value_name = "UNIT", default_value = "ns")]
    pub(crate) clock: JvmClock,
    /// What runtap's agents do when this side takes less than they have; with the original ones, programs wait
    /// [default: block; for 'jvm attach': counts, so that a program that runs already never waits]
    #[arg(long, value_name = "WHAT")]
    pub(crate) when_slow: Option<WhenSlow>,
}

#[derive(Debug, Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a switch of the command line")]
#[command(after_help = "\
Agents dial in: 'runtap jvm attach PID --hq ADDR:PORT' loads one into a program that runs, 'runtap jvm
agent' writes it for java -agentpath:, and the original ones are java -javaagent:bytefrog-tracer.jar=ADDR:PORT.
'runtap jvm run' and 'runtap jvm attach' need no collector.
The protocol has no password. On a loopback address only agents of your own user and root are accepted
(on Linux; --allow-user adds others); beyond it, whoever reaches the address is taken for an agent.

On a terminal there is a live view: '?' shows its keys. Ctrl-C stops the agents, waits for what
they still have and prints the report; once more: at once.
--send takes: status, quit; report, snapshot, start, stop, pause, unpause, suspend, unsuspend with
the number of an agent, or without for all; begin NAME and end NAME for a part of the recording;
configure [AGENT] {\"include\": […], \"exclude\": […]} before start.

Examples:
  runtap jvm hq --include '^com/example/'
  runtap jvm hq --exclude '^(java|sun|jdk)/' --exclude '.*/generated/.*'
  runtap jvm hq --once --format json > calls.json
  runtap jvm hq --no-start --control /tmp/hq.sock
  runtap jvm hq --control /tmp/hq.sock --send 'suspend 0'")]
pub(crate) struct JvmHq {
    /// Where agents dial
    #[arg(long, value_name = "ADDR:PORT", default_value = DEFAULT_ADDRESS)]
    pub(crate) listen: String,
    /// Listen beyond this machine: unencrypted, and open to whoever reaches the address
    #[arg(long)]
    pub(crate) insecure: bool,
    /// On a loopback address: also accept agents of this user, or of 'all' users [default: only yours and root's]; repeatable
    #[arg(long, value_name = "NAME|UID")]
    pub(crate) allow_user: Vec<String>,
    #[command(flatten)]
    pub(crate) tracing: JvmTracing,
    /// Do not start programs: they wait for the live view or the control socket
    #[arg(long)]
    pub(crate) no_start: bool,
    /// End with the first agent
    #[arg(long)]
    pub(crate) once: bool,
    /// End after this time
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    pub(crate) duration: Option<Duration>,
    /// Log calls that take this long
    #[arg(long, value_name = "TIME", value_parser = parse_duration, default_value = "100ms")]
    pub(crate) slow: Duration,
    /// Print a summary this often; 0: never
    #[arg(long, value_name = "TIME", value_parser = parse_interval, default_value = "10s")]
    pub(crate) interval: Duration,
    /// Lines instead of the live view, also on a terminal
    #[arg(long)]
    pub(crate) plain: bool,
    /// Rows of each table of the report; 0 for all
    #[arg(long, alias = "number", value_name = "N", default_value_t = 20)]
    pub(crate) limit: usize,
    /// Write what is received to this directory, for 'jvm replay' and 'jvm report'
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) record: Option<PathBuf>,
    /// Listen for commands on this socket
    #[arg(long, value_name = "PATH", value_hint = ValueHint::FilePath)]
    pub(crate) control: Option<PathBuf>,
    /// Send a command to the collector at --control, print its answer and end
    #[arg(long, value_name = "COMMAND", requires = "control")]
    pub(crate) send: Option<String>,
    #[command(flatten)]
    pub(crate) format: ResultFormat,
}
