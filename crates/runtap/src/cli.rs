//! The command line, as clap sees it. Nothing below `cmd/` knows clap.

mod actions;
mod session;

use std::path::PathBuf;
use std::time::Duration;

use clap::{ArgGroup, Args, Parser, Subcommand, ValueEnum, ValueHint};
use clap_complete::engine::ArgValueCompleter;

pub(crate) use self::actions::{
    AttachProfiler, DisablePerfMap, Dump, DumpKind, EnablePerfMap, PerfMap, PerfMapKind, PerfMapVerb,
    Profiler, ProfilerLibrary, ProfilerVerb, Resume, SetEnv, StartupHook, StartupProfiler,
};
pub(crate) use self::session::{BufferingMode, SessionDetails, UserEvents};
use crate::cmd::complete;
use crate::units::{parse_duration, parse_megabytes};

const AFTER_HELP: &str = "\
Examples:
  runtap demo                                      try everything on a built-in program
  runtap ps                                        what can be tapped
  runtap trace -p 1234 --duration 5s --to speedscope
  runtap trace -n MyService --profile gc-verbose
  runtap convert trace.nettrace --to flamegraph

Exit codes: 0 done, 1 failed, 2 usage, 3 no such target, 4 refused by the target, 5 partial result,
6 command unknown to the target's runtime, 125 or the command's own with '-- COMMAND', 130 interrupted.";

/// Taps into running .NET programs: profiles and events, without an SDK.
#[derive(Debug, Parser)]
#[command(name = "runtap", version, after_help = AFTER_HELP, max_term_width = 100, subcommand_required = true,
    arg_required_else_help = true, disable_help_subcommand = false, infer_long_args = false)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) global: Global,
    #[command(subcommand)]
    pub(crate) verb: Verb,
}

/// Options of every verb.
#[derive(Debug, Args)]
pub(crate) struct Global {
    /// Say less: no notes, no progress
    #[arg(short, long, global = true, conflicts_with = "verbose")]
    pub(crate) quiet: bool,
    /// Say more; repeat for still more
    #[arg(short, long, global = true, action = clap::ArgAction::Count)]
    pub(crate) verbose: u8,
    /// When to use colour (`NO_COLOR` and `CLICOLOR_FORCE` are honoured)
    #[arg(long, global = true, value_name = "WHEN", default_value = "auto")]
    pub(crate) color: Color,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum Color {
    Auto,
    Always,
    Never,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Verb {
    /// List .NET and JVM processes
    Ps(Ps),
    /// Show what a process says about itself
    Info(Info),
    /// Show the environment of a process, as it is now
    Env(Info),
    /// Say why a process can't be reached, and what mends it
    Doctor(Doctor),
    /// Set or remove environment variables of a process
    SetEnv(SetEnv),
    /// Let a process go on that waits at its start
    Resume(Resume),
    /// Have a process write a core dump of itself
    Dump(Dump),
    /// Have a process load a profiler
    Profiler(Profiler),
    /// Have a process tell the addresses of its compiled methods to perf
    #[command(name = "perfmap")]
    PerfMap(PerfMap),
    /// Have a process load an assembly and run its startup hook
    StartupHook(StartupHook),
    /// Record events and CPU samples of a process to a file
    #[command(visible_alias = "collect")]
    Trace(Box<Trace>),
    /// Show the events of a running process while they happen
    Tail(Box<Tail>),
    /// Convert a recording to other formats
    Convert(Convert),
    /// Compare two recordings: what takes more, what takes less
    Diff(Diff),
    /// Answer a question from a recording: where the time went, what was allocated, thrown, waited for …
    Report(Report),
    /// Show the events of a recording, or count them
    Events(Events),
    /// Do the main job on a built-in program
    Demo(Demo),
    /// Print a completion script for a shell
    Completions(Completions),
    /// Print the manual page, or write one for each verb into a folder
    Man(Man),
    /// Let everybody go on who dials in on a port, until nobody is left who could
    #[command(hide = true)]
    GuardPort(GuardPort),
    /// Show version, commit and target
    #[command(after_help = "\
Examples:
  runtap version
  runtap version --format json | jq -r .commit")]
    Version(ResultFormat),
}

/// The format of a printed result.
#[derive(Debug, Args, Clone)]
pub(crate) struct ResultFormat {
    /// Format of the result
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    pub(crate) format: TextOrJson,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum TextOrJson {
    Text,
    Json,
}

/// Which process.
#[derive(Debug, Args, Clone, Default)]
#[command(next_help_heading = "Target")]
pub(crate) struct Target {
    /// Process id, or the exact name of a process or its entry assembly
    #[arg(value_name = "TARGET", conflicts_with_all = ["process_id", "name", "diagnostic_port"], add = ArgValueCompleter::new(complete::targets))]
    pub(crate) word: Option<String>,
    #[command(flatten)]
    pub(crate) options: TargetOptions,
}

/// Which process, by options alone.
#[derive(Debug, Args, Clone, Default)]
#[command(next_help_heading = "Target")]
pub(crate) struct TargetOptions {
    /// Process id
    #[arg(short, long, value_name = "PID", conflicts_with = "name", add = ArgValueCompleter::new(complete::pids))]
    pub(crate) process_id: Option<u32>,
    /// Exact name of the process or of its entry assembly
    #[arg(short, long, value_name = "NAME", add = ArgValueCompleter::new(complete::names))]
    pub(crate) name: Option<String>,
    /// A diagnostic port: the path of a socket on which a runtime listens (`,connect`), or on which we do (`,listen`)
    #[arg(long, visible_alias = "dport", value_name = "ADDR[,MODE]", conflicts_with_all = ["process_id", "name"])]
    pub(crate) diagnostic_port: Option<String>,
}

impl Target {
    /// A process by its id.
    pub(crate) fn process(pid: u32) -> Self {
        Self { word: None, options: TargetOptions { process_id: Some(pid), ..TargetOptions::default() } }
    }
}

impl TargetOptions {
    /// Whether one of them is given.
    pub(crate) fn any(&self) -> bool {
        self.process_id.is_some() || self.name.is_some() || self.diagnostic_port.is_some()
    }
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  runtap ps
  runtap ps --watch
  runtap ps --format json | jq '.processes[] | select(.reachable)'")]
pub(crate) struct Ps {
    /// Processes of all users, also those that can't be reached
    #[arg(long)]
    pub(crate) all_users: bool,
    /// Go on until Ctrl-C, and tell what starts, ends and changes; JSON is then one process a line
    #[arg(short, long)]
    pub(crate) watch: bool,
    #[command(flatten)]
    pub(crate) format: ResultFormat,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  runtap info 1234
  runtap env -n MyService --format json")]
pub(crate) struct Info {
    #[command(flatten)]
    pub(crate) target: Target,
    /// All processes of that name; JSON is then one document a line
    #[arg(long, help_heading = "Target")]
    pub(crate) all: bool,
    #[command(flatten)]
    pub(crate) format: ResultFormat,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Without a process it looks at every process that looks like .NET, and at the machine.
It changes nothing. Exit code 3: the process can't be reached.

Examples:
  runtap doctor
  runtap doctor 1234
  sudo runtap doctor MyService --format json | jq -r '.findings[] | .code + \": \" + .fix'")]
pub(crate) struct Doctor {
    /// Process id, or the exact name of a process or its entry assembly
    #[arg(value_name = "TARGET", add = ArgValueCompleter::new(complete::targets))]
    pub(crate) word: Option<String>,
    /// Process id
    #[arg(short, long, value_name = "PID", conflicts_with_all = ["word", "name"], add = ArgValueCompleter::new(complete::pids))]
    pub(crate) process_id: Option<u32>,
    /// Exact name of the process or of its entry assembly
    #[arg(short, long, value_name = "NAME", conflicts_with = "word", add = ArgValueCompleter::new(complete::names))]
    pub(crate) name: Option<String>,
    #[command(flatten)]
    pub(crate) format: ResultFormat,
}

/// The file formats of this program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum FileFormat {
    /// The stream as the runtime sent it
    #[value(alias = "NetTrace")]
    Nettrace,
    /// For <https://www.speedscope.app>: a profile with a time axis
    #[value(alias = "Speedscope")]
    Speedscope,
    /// One line a stack, for scripts and flame graph tools
    #[value(alias = "collapsed")]
    Folded,
    /// An interactive SVG picture
    #[value(alias = "svg")]
    Flamegraph,
    /// For `chrome://tracing` and <https://ui.perfetto.dev>: trace events as JSON
    #[value(aliases = ["Chromium", "chromium"])]
    Chrome,
    /// For <https://ui.perfetto.dev>: the same in its own, smaller format
    Perfetto,
    /// For <https://profiler.firefox.com>: samples on a time axis
    Firefox,
    /// For `go tool pprof` and services that keep profiles
    Pprof,
}

/// `--format` where there is a file format too: dotnet-trace's use of the word is taken as `--to`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AnyFormat {
    Result(TextOrJson),
    File(FileFormat),
}

impl std::str::FromStr for AnyFormat {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let result = TextOrJson::from_str(text, true).map(Self::Result);
        result.or_else(|_| FileFormat::from_str(text, true).map(Self::File)).map_err(|_neither| {
            "write text or json (for the summary), or a file format as --to takes it".to_owned()
        })
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum View {
    /// Every sample of a thread, running or waiting
    ThreadTime,
    /// Samples of threads that ran managed code
    Cpu,
    /// Bytes allocated, by type
    Alloc,
    /// Exceptions thrown, by type
    Exceptions,
    /// Time waiting for locks
    Contention,
    /// Pauses of the garbage collector
    Gc,
    /// Time in the compiler, by method
    Jit,
    /// Time of asynchronous operations, by who awaits whom
    Async,
}

impl From<View> for runtap_model::View {
    fn from(view: View) -> Self {
        match view {
            View::ThreadTime => Self::ThreadTime,
            View::Cpu => Self::Cpu,
            View::Alloc => Self::Alloc,
            View::Exceptions => Self::Exceptions,
            View::Contention => Self::Contention,
            View::Gc => Self::Gc,
            View::Jit => Self::Jit,
            View::Async => Self::Async,
        }
    }
}

/// What a converted file holds.
#[derive(Debug, Args, Clone, Copy, Default)]
pub(crate) struct Content {
    /// What a converted file shows
    #[arg(long, value_name = "VIEW", help_heading = "Output")]
    pub(crate) view: Option<View>,
    /// Write speedscope files as frames that open and close, instead of samples
    #[arg(long, help_heading = "Output")]
    pub(crate) evented: bool,
    /// Convert as another program does, to compare with its files: its frames, its rounding, its losses
    #[arg(long, value_name = "PROGRAM", conflicts_with_all = ["view", "evented"], help_heading = "Output")]
    pub(crate) compat: Option<Compat>,
}

impl Content {
    /// Whether a file of this format can hold it: some can't show a thread that does two things at a time.
    pub(crate) fn fits(self, format: FileFormat) -> bool {
        let overlaps = self.compat == Some(Compat::DotnetTrace);
        !overlaps || !matches!(format, FileFormat::Chrome | FileFormat::Perfetto | FileFormat::Firefox)
    }
}

/// A program whose conversion is known in all detail.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Compat {
    /// `dotnet-trace convert`
    DotnetTrace,
}

/// How to record, and where to.
#[derive(Debug, Args, Clone)]
pub(crate) struct Recording {
    /// Stop after this time: 30s, 250ms, 1m30s, plain seconds, dd:hh:mm:ss
    #[arg(long, value_name = "TIME", value_parser = parse_duration, help_heading = "Recording")]
    pub(crate) duration: Option<Duration>,
    /// Size of the buffer in the target, in MB
    #[arg(long, value_name = "MB", value_parser = parse_megabytes, default_value = "256", help_heading = "Recording")]
    pub(crate) buffersize: u32,
    /// Ask for the names of all loaded methods at the end
    #[arg(long, value_name = "BOOL", num_args = 0..=1, default_missing_value = "true", help_heading = "Recording")]
    pub(crate) rundown: Option<bool>,
    /// Resume the runtime if it is suspended at its start, also when another tool has suspended it
    #[arg(long, value_name = "BOOL", num_args = 0..=1, default_value = "true", default_missing_value = "true",
        action = clap::ArgAction::Set, help_heading = "Recording")]
    pub(crate) resume_runtime: bool,
    /// With a command: end it when the recording is over (SIGTERM, 5 s later SIGKILL)
    #[arg(long, help_heading = "Recording")]
    pub(crate) kill_command: bool,

    /// Output file; '-' is stdout
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath, help_heading = "Output")]
    pub(crate) output: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) content: Content,
    #[command(flatten)]
    pub(crate) session: SessionDetails,
}

impl Default for Recording {
    fn default() -> Self {
        Self {
            duration: None,
            buffersize: 256,
            rundown: None,
            resume_runtime: true,
            kill_command: false,
            output: None,
            content: Content::default(),
            session: SessionDetails::default(),
        }
    }
}

/// An event that ends the recording.
#[derive(Debug, Args, Clone, Default)]
#[command(next_help_heading = "Recording")]
pub(crate) struct StoppingEvent {
    /// Stop at the first event of this provider
    #[arg(id = "stopping_event_provider", long = "stopping-event-provider-name", value_name = "NAME")]
    pub(crate) provider: Option<String>,
    /// … that has this name: as in the recording, or Task/Opcode
    #[arg(id = "stopping_event_name", long = "stopping-event-event-name", value_name = "NAME")]
    pub(crate) name: Option<String>,
    /// … and these values: FIELD:VALUE, joined by commas
    #[arg(id = "stopping_event_payload", long = "stopping-event-payload-filter", value_name = "PAIRS")]
    pub(crate) payload: Option<String>,
}

/// Several processes in one recording.
#[derive(Debug, Args)]
#[command(next_help_heading = "Target", group(ArgGroup::new("several").multiple(true)))]
pub(crate) struct Several {
    /// All processes of that name: a file each
    #[arg(long, group = "several")]
    pub(crate) all: bool,
    /// Record all processes of the tree: of a command or a port from their first event on, else as they are found
    #[arg(long, group = "several")]
    pub(crate) children: bool,
    /// With --children or --all: one file for all processes (speedscope, folded, flamegraph, pprof)
    #[arg(long, requires = "several")]
    pub(crate) merge: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Without --providers, --profile and --clrevents it records CPU samples and lightweight runtime events.
A recording ends with --duration, a stopping event, Ctrl-C, SIGTERM, or the end of the program; Ctrl-C twice gives up the
names that the runtime tells at the end.

Examples:
  runtap trace -p 1234                                 until Ctrl-C, to NAME_PID_DATE.nettrace
  runtap trace -p 1234 --duration 5s --to speedscope
  runtap trace -n MyService --providers 'My-Source:0xff:5,Other-Source'
  runtap trace -p 1234 --clrevents gc+exception --clreventlevel informational
  runtap trace -p 1234 --duration 10s --to nettrace --to flamegraph -o slow.nettrace
  runtap trace -- dotnet app.dll                       from the first event on; ends with the code of the command
  runtap trace --children -o all.nettrace -- ./run.sh  every .NET process of the tree, a file each
  runtap trace --diagnostic-port /tmp/p,listen         a program started with DOTNET_DiagnosticPorts=/tmp/p
  runtap trace -p 1234 --clrevents gc --event-filter Microsoft-Windows-DotNETRuntime=1,2
  runtap trace -p 1234 --clrevents gc --user-events 'dotnet_{pid}'
                                                       into tracepoints of the kernel, for perf and eBPF")]
pub(crate) struct Trace {
    #[command(flatten)]
    pub(crate) target: Target,
    #[command(flatten)]
    pub(crate) several: Several,
    /// With a command: show what it writes
    #[arg(long, value_name = "BOOL", num_args = 0..=1, default_value = "false", default_missing_value = "true",
        action = clap::ArgAction::Set, help_heading = "Target")]
    pub(crate) show_child_io: bool,
    /// Start this command and record it from its first event on
    #[arg(last = true, value_name = "COMMAND", value_hint = ValueHint::CommandWithArguments,
        conflicts_with_all = ["word", "process_id", "name", "diagnostic_port"], help_heading = "Target")]
    pub(crate) command: Vec<std::ffi::OsString>,

    /// Providers: `Name[:Keywords[:Level[:Arguments]]]`, joined by commas
    #[arg(long, value_name = "LIST", help_heading = "Events")]
    pub(crate) providers: Vec<String>,
    /// Named sets of providers, joined by commas: dotnet-common, dotnet-sampled-thread-time, cpu-sampling, gc-verbose,
    /// gc-collect, database
    #[arg(long, value_name = "NAMES", help_heading = "Events", add = ArgValueCompleter::new(complete::profiles))]
    pub(crate) profile: Vec<String>,
    /// Kinds of runtime events, joined by '+' (gc+jit+exception)
    #[arg(long, value_name = "KINDS", help_heading = "Events")]
    pub(crate) clrevents: Option<String>,
    /// Level of --clrevents: 0 to 5 or a name
    #[arg(long, value_name = "LEVEL", help_heading = "Events")]
    pub(crate) clreventlevel: Option<String>,

    /// Only these events of a provider, or all but these: NAME=1,2,10-20 or NAME=!3; repeat it. Needs .NET 10. Most of
    /// the collector's events come only with its event 1 (GC/Start)
    #[arg(long, value_name = "NAME=[!]IDS", help_heading = "Events")]
    pub(crate) event_filter: Vec<String>,
    #[command(flatten)]
    pub(crate) user_events: UserEvents,

    #[command(flatten)]
    pub(crate) stopping: StoppingEvent,
    #[command(flatten)]
    pub(crate) recording: Recording,
    /// Format of the file; repeat it for several
    #[arg(long, value_name = "FORMAT", ignore_case = true, value_delimiter = ',', help_heading = "Output")]
    pub(crate) to: Vec<FileFormat>,
    /// Format of the summary, text or json; a file format is taken as --to
    #[arg(long, value_name = "FORMAT", help_heading = "Output")]
    pub(crate) format: Option<AnyFormat>,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  runtap convert trace.nettrace --to speedscope        writes trace.speedscope.json beside it
  runtap convert trace.nettrace --to folded -o - | head")]
pub(crate) struct Convert {
    /// The recording
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) file: PathBuf,
    /// Format to write; repeat it for several
    #[arg(long, value_name = "FORMAT", ignore_case = true, value_delimiter = ',')]
    pub(crate) to: Vec<FileFormat>,
    /// Output file; '-' is stdout
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) output: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) content: Content,
    /// A file format, as dotnet-trace has it: the same as --to
    #[arg(long, value_name = "FORMAT")]
    pub(crate) format: Option<AnyFormat>,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Shares of each recording's total are compared, so that a longer recording is not a slower one.

Examples:
  runtap diff old.nettrace new.nettrace
  runtap diff old.nettrace new.nettrace --inclusive -n 10
  runtap diff old.nettrace new.nettrace --to flamegraph    writes new.diff.svg
  runtap diff old.nettrace new.nettrace --format json | jq '.frames[] | select(.self_share.significant)'")]
pub(crate) struct Diff {
    /// The recording to compare with
    #[arg(value_name = "BEFORE", value_hint = ValueHint::FilePath)]
    pub(crate) before: PathBuf,
    /// The recording that is compared
    #[arg(value_name = "AFTER", value_hint = ValueHint::FilePath)]
    pub(crate) after: PathBuf,
    /// What to compare; cpu if nothing is said
    #[arg(long, value_name = "VIEW")]
    pub(crate) view: Option<View>,
    /// Compare times (or bytes, or numbers) as they were recorded, not shares
    #[arg(long)]
    pub(crate) absolute: bool,
    /// Sort by the time of a frame and all that it called
    #[arg(long)]
    pub(crate) inclusive: bool,
    /// How many frames to show; 30 of a table and all of a document if nothing is said
    #[arg(short, long, value_name = "N")]
    pub(crate) number: Option<usize>,
    /// Write the stacks too: folded (with two numbers) or flamegraph (red for more, blue for less)
    #[arg(long, value_name = "FORMAT", ignore_case = true, value_delimiter = ',')]
    pub(crate) to: Vec<FileFormat>,
    /// File for --to; '-' is stdout
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) output: Option<PathBuf>,
    /// Format of the result, text or json; a file format is taken as --to
    #[arg(long, value_name = "FORMAT")]
    pub(crate) format: Option<AnyFormat>,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Lines are text on a terminal and JSON elsewhere; filters are those of 'runtap events'.

Examples:
  runtap tail 1234 --clrevents gc+exception
  runtap tail -n MyService --providers Microsoft-Extensions-Logging:4:4 --filter 'payload.Level >= 3'
  runtap tail 1234 --clrevents exception --duration 1m | jq -r .payload.ExceptionType | sort | uniq -c")]
pub(crate) struct Tail {
    #[command(flatten)]
    pub(crate) target: Target,
    /// Providers: `Name[:Keywords[:Level[:Arguments]]]`, joined by commas
    #[arg(long, value_name = "LIST", help_heading = "Events")]
    pub(crate) providers: Vec<String>,
    /// Named sets of providers, joined by commas, as in 'runtap trace'
    #[arg(long, value_name = "NAMES", help_heading = "Events", add = ArgValueCompleter::new(complete::profiles))]
    pub(crate) profile: Vec<String>,
    /// Kinds of runtime events, joined by '+' (gc+jit+exception)
    #[arg(long, value_name = "KINDS", help_heading = "Events")]
    pub(crate) clrevents: Option<String>,
    /// Level of --clrevents: 0 to 5 or a name
    #[arg(long, value_name = "LEVEL", help_heading = "Events")]
    pub(crate) clreventlevel: Option<String>,
    /// Show only events that meet this condition
    #[arg(long, value_name = "EXPR", help_heading = "Events")]
    pub(crate) filter: Option<String>,
    /// Show only events of this provider; repeat it for several
    #[arg(long, value_name = "NAME", value_delimiter = ',', help_heading = "Events")]
    pub(crate) provider: Vec<String>,
    /// Stop after this time: 30s, 250ms, 1m30s, plain seconds, dd:hh:mm:ss
    #[arg(long, value_name = "TIME", value_parser = parse_duration, help_heading = "Recording")]
    pub(crate) duration: Option<Duration>,
    /// Size of the buffer in the target, in MB
    #[arg(long, value_name = "MB", value_parser = parse_megabytes, default_value = "256", help_heading = "Recording")]
    pub(crate) buffersize: u32,
    /// Format of the lines: json, csv or text
    #[arg(long, value_name = "FORMAT", hide_possible_values = true)]
    pub(crate) format: Option<LineFormat>,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  runtap report trace.nettrace cpu
  runtap report trace.nettrace cpu --inclusive -n 10
  runtap report trace.nettrace gc
  runtap report trace.nettrace exceptions --format json | jq '.types[] | {type, thrown_count}'")]
pub(crate) struct Report {
    /// The recording
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) file: PathBuf,
    /// The question
    #[arg(value_name = "KIND")]
    pub(crate) kind: ReportKind,
    /// How many rows of each list to show; 30 of a table and all of a document if nothing is said
    #[arg(short, long, value_name = "N")]
    pub(crate) number: Option<usize>,
    /// cpu: sort by the time of a frame and all that it called
    #[arg(long)]
    pub(crate) inclusive: bool,
    /// cpu: what to count
    #[arg(long, value_name = "VIEW")]
    pub(crate) view: Option<View>,
    #[command(flatten)]
    pub(crate) format: ResultFormat,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ReportKind {
    /// Where the time went: methods and threads
    Cpu,
    /// Collections, pauses and heap sizes
    Gc,
    /// Types that were allocated, and where
    Alloc,
    /// Exceptions by type
    Exceptions,
    /// Waits for locks, and where
    Contention,
    /// Methods compiled at run time
    Jit,
    /// Threads of the thread pool
    Threadpool,
    /// HTTP requests, answered and sent
    Http,
    /// How many events of which kind
    Events,
    /// Events that the target dropped
    Loss,
    /// Meters and event counters
    Counters,
    /// Log messages
    Logs,
}

impl ReportKind {
    /// Its name on the command line and in the schema.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Cpu => "cpu",
            Self::Gc => "gc",
            Self::Alloc => "alloc",
            Self::Exceptions => "exceptions",
            Self::Contention => "contention",
            Self::Jit => "jit",
            Self::Threadpool => "threadpool",
            Self::Http => "http",
            Self::Events => "events",
            Self::Loss => "loss",
            Self::Counters => "counters",
            Self::Logs => "logs",
        }
    }

    /// How to record what it is made of.
    pub(crate) fn hint(self) -> &'static str {
        match self {
            Self::Cpu => "CPU samples come with the default profiles of 'runtap trace'",
            Self::Gc => "collections come with 'runtap trace --clrevents gc'",
            Self::Alloc => "allocations come with 'runtap trace --profile gc-verbose'",
            Self::Exceptions => "exceptions come with 'runtap trace --clrevents exception'",
            Self::Contention => "locks come with 'runtap trace --clrevents contention'",
            Self::Jit => "compilations come with 'runtap trace --clrevents jit --clreventlevel verbose'",
            Self::Threadpool => "the thread pool's events come with 'runtap trace --clrevents threading'",
            Self::Http => {
                "requests come with 'runtap trace --providers Microsoft.AspNetCore.Hosting,System.Net.Http'"
            }
            Self::Events | Self::Loss => "it holds no event",
            Self::Counters => {
                "event counters come with 'runtap trace --providers System.Runtime:0:4:EventCounterIntervalSec=1'"
            }
            Self::Logs => {
                "log messages come with 'runtap trace --providers Microsoft-Extensions-Logging:4:4'"
            }
        }
    }
}

#[derive(Debug, Args)]
#[command(after_help = "\
A filter compares fields: FIELD OP VALUE, joined by and, or, not and parentheses. OP is = != < <= > >= or ~ (regular
expression). FIELD is a member of the JSON line (provider, name, id, level, thread, ts_ns, time …), payload.NAME for a
field of the event, or stack for the names on its stack.

Examples:
  runtap events trace.nettrace | jq 'select(.name == \"GC/Start\")'
  runtap events trace.nettrace --filter 'name = Exception/Start and payload.ExceptionType ~ Timeout' --stacks
  runtap events trace.nettrace --provider Microsoft-Extensions-Logging --format text
  runtap events trace.nettrace --count
  runtap events trace.nettrace --count --format json | jq '.lost'")]
pub(crate) struct Events {
    /// The recording
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) file: PathBuf,
    /// Count the events of each kind
    #[arg(long)]
    pub(crate) count: bool,
    /// Only events that meet this condition
    #[arg(long, value_name = "EXPR")]
    pub(crate) filter: Option<String>,
    /// Only events of this provider; repeat it for several
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    pub(crate) provider: Vec<String>,
    /// With the stack of each event, the innermost frame first
    #[arg(long)]
    pub(crate) stacks: bool,
    /// Format of the lines: json (the default), csv or text; of the counts: text (the default) or json
    #[arg(long, value_name = "FORMAT", hide_possible_values = true)]
    pub(crate) format: Option<LineFormat>,
}

/// The format of a stream of lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum LineFormat {
    Text,
    #[value(alias = "jsonl")]
    Json,
    Csv,
}

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
    /// Be a diagnosable process for some time
    Serve(DemoServe),
}

#[derive(Debug, Args)]
pub(crate) struct DemoTrace {
    /// How long to record
    #[arg(long, value_name = "TIME", value_parser = parse_duration, default_value = "3s")]
    pub(crate) duration: Duration,
    /// Where to write; the extensions of the formats are put behind it
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) output: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct DemoServe {
    /// How long to live
    #[arg(long, value_name = "TIME", value_parser = parse_duration, default_value = "60s")]
    pub(crate) seconds: Duration,
}

#[derive(Debug, Args)]
pub(crate) struct GuardPort {
    /// The socket
    pub(crate) path: std::ffi::OsString,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  source <(runtap completions bash)
  runtap completions fish > ~/.config/fish/completions/runtap.fish")]
pub(crate) struct Completions {
    /// bash, elvish, fish, powershell or zsh
    #[arg(value_name = "SHELL", value_parser = ["bash", "elvish", "fish", "powershell", "zsh"])]
    pub(crate) shell: String,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  runtap man | man -l -
  runtap man --out-dir ~/.local/share/man/man1")]
pub(crate) struct Man {
    /// Write runtap.1 and a page for each verb into this folder
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) out_dir: Option<PathBuf>,
}
