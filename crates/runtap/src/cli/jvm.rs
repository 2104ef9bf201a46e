//! `runtap jvm`: what Java programs call, by the Bytefrog protocol, as clap sees it.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand, ValueEnum, ValueHint};

use super::{AnyFormat, JvmReplay, JvmReport, ResultFormat, TextOrJson};
use crate::units::{parse_duration, parse_interval, parse_pid};

/// The port of the original collectors.
const DEFAULT_ADDRESS: &str = "127.0.0.1:8765";

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  runtap demo jvm
  runtap jvm run --include '^com/example/' -- java -jar service.jar
  runtap jvm attach 1234 --include '^com/example/' --duration 10s
  runtap jvm hq --once --include '^com/example/'
  runtap jvm hq --format json > calls.json")]
pub(crate) struct Jvm {
    #[command(subcommand)]
    pub(crate) verb: JvmVerb,
}

#[derive(Debug, Subcommand)]
pub(crate) enum JvmVerb {
    /// Collect what Bytefrog agents trace: who calls whom, how often, for how long
    Hq(Box<JvmHq>),
    /// Run a Java program with the agent, and print what it called
    Run(Box<JvmRun>),
    /// Trace a Java program that runs: load the agent, and unload it at the end
    Attach(Box<JvmAttach>),
    /// Write the agent's library to a file, for java -agentpath:
    Agent(JvmAgent),
    /// Unload an agent that was left in a program
    Detach(JvmDetach),
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
            tracing: JvmTracing {
                include: Vec::new(),
                exclude: Vec::new(),
                senders: 1,
                mode: JvmMode::Full,
                clock: JvmClock::Ns,
                when_slow: WhenSlow::Block,
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
            JvmVerb::Run(options) => options.shown.format.format,
            JvmVerb::Attach(options) => options.shown.format.format,
            JvmVerb::Detach(_) | JvmVerb::Agent(_) => TextOrJson::Text,
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
    /// anchored at the beginning; repeatable
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
    #[arg(long, value_name = "WHAT", default_value = "block")]
    pub(crate) when_slow: WhenSlow,
}

#[derive(Debug, Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a switch of the command line")]
#[command(after_help = "\
Agents dial in: 'runtap jvm attach PID --hq ADDR:PORT' loads one into a program that runs, 'runtap jvm
agent' writes it for java -agentpath:, and the original ones are java -javaagent:bytefrog-tracer.jar=ADDR:PORT.
'runtap jvm run' and 'runtap jvm attach' need no collector.
The protocol has no password: whoever reaches the address is taken for an agent.

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

/// What is said of calls, at the end and meanwhile.
#[derive(Debug, Args, Clone)]
pub(crate) struct JvmShown {
    /// Log calls that take this long
    #[arg(long, value_name = "TIME", value_parser = parse_duration, default_value = "100ms")]
    pub(crate) slow: Duration,
    /// Rows of each table of the report; 0 for all
    #[arg(long, alias = "number", value_name = "N", default_value_t = 20)]
    pub(crate) limit: usize,
    /// Write what is received to this directory, for 'jvm replay' and 'jvm report'
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) record: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) format: ResultFormat,
}

#[derive(Debug, Args)]
#[command(after_help = "\
A command called 'java' gets -agentpath: as its first argument. With any other one the option goes into
JAVA_TOOL_OPTIONS: every JVM that it starts is traced, and prints a line that says so.
Exits with the command's exit code.

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

/// Which Java program.
#[derive(Debug, Args, Clone, Default)]
#[command(next_help_heading = "Target")]
pub(crate) struct JvmTarget {
    /// Process id, or the name of a Java program: its main class, or its archive with .jar
    #[arg(value_name = "TARGET", conflicts_with_all = ["process_id", "name"], required_unless_present_any = ["process_id", "name"])]
    pub(crate) word: Option<String>,
    /// Process id
    #[arg(short, long, value_name = "PID", value_parser = parse_pid, conflicts_with = "name")]
    pub(crate) process_id: Option<u32>,
    /// Exact name of the program; only your own processes, even as root
    #[arg(short, long, value_name = "NAME")]
    pub(crate) name: Option<String>,
}

#[derive(Debug, Args)]
#[command(after_help = "\
The agent is loaded over the JVM's attach socket, with no JDK. At the end (Ctrl-C, --duration) the
agent leaves, the classes are as they were, and the report is printed.

Examples:
  runtap jvm attach 1234 --include '^com/example/' --duration 10s
  runtap jvm attach -n com.example.Main --mode coverage --format json
  runtap jvm attach 1234 --hq 127.0.0.1:8765      for a collector that runs already")]
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
    /// Have the agent dial a collector that runs ('jvm hq'), which says what is traced, and leave it in the program
    #[arg(long, value_name = "HOST:PORT", conflicts_with_all = ["include", "exclude", "senders", "mode", "clock", "when_slow", "slow", "limit", "record", "format"])]
    pub(crate) hq: Option<String>,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Its options are key=value, separated by commas: host, port, include, exclude, mode, clock, when-slow, wait, boot.
It asks the collector ('jvm hq') at host and port what to trace; without an expression on either side, that is
all classes but the JDK's own.

Examples:
  runtap jvm agent
  runtap jvm agent -o /opt/lib/agent.so
  java -agentpath:/opt/lib/agent.so=host=127.0.0.1,port=8765,include=^com/example/ -jar service.jar")]
pub(crate) struct JvmAgent {
    /// Where to write it; by default `libruntap_jvm_agent.so` in this directory
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
