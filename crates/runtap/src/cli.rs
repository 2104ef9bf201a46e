//! The definition of the command line, for clap.

mod actions;
mod choices;
mod counters;
mod defer;
mod demo;
mod dump;
#[cfg(all(test, unix))]
mod examples;
mod formats;
mod heap;
mod jvm;
#[cfg_attr(not(target_os = "linux"), path = "cli/no_jvm_agents.rs")]
mod jvm_agents;
mod jvm_coverage;
mod jvm_report;
mod middle;
#[cfg(not(unix))]
mod missing;
mod mtp;
#[cfg(unix)]
mod perf_map;
mod reading;
mod router;
mod session;
mod stack;
mod streams;
mod target;
mod test;
mod top;
mod trace;
#[cfg(not(target_os = "linux"))]
mod words;

use std::ffi::OsString;
use std::path::PathBuf;

use clap::builder::{PathBufValueParser, TypedValueParser};
use clap::{
    Args, Command, CommandFactory as _, FromArgMatches as _, Parser, Subcommand, ValueEnum, ValueHint,
};
use clap_complete::engine::ArgValueCompleter;
use runtap_clr::lines::Style;
use runtap_convert::source::MaxSize;
use runtap_text::Output;

pub(crate) use self::actions::{
    AttachProfiler, Profiler, ProfilerLibrary, Resume, SetEnv, StartupHook, StartupProfiler,
};
pub(crate) use self::choices::report_kind;
pub(crate) use self::counters::{CollectCounters, CounterOptions, Counters, CountersVerb, MonitorCounters};
pub(crate) use self::defer::Deferred;
pub(crate) use self::demo::{AgentVersion, Demo, DemoJvm, DemoJvmAgent, DemoServe, DemoTrace, DemoVerb};
pub(crate) use self::dump::Dump;
pub(crate) use self::formats::{AnyFormat, Content};
pub(crate) use self::heap::Heap;
pub(crate) use self::jvm::{Jvm, JvmClock, JvmHq, JvmMode, JvmTracing, JvmVerb, WhenSlow};
pub(crate) use self::jvm_agents::JvmAgents;
#[cfg(target_os = "linux")]
pub(crate) use self::jvm_agents::{JvmAgent, JvmAttach, JvmDetach, JvmRun, JvmShown, JvmTarget};
pub(crate) use self::jvm_coverage::JvmCoverage;
pub(crate) use self::jvm_report::{JvmReplay, JvmReport};
pub(crate) use self::middle::{PlayedSide, Record, Replay, target_of};
#[cfg(not(unix))]
pub(crate) use self::missing::Missing;
pub(crate) use self::mtp::{Mtp, MtpHost, MtpInspect, MtpKeep, MtpLint, MtpRecord, MtpReplay, MtpVerb};
#[cfg(unix)]
pub(crate) use self::perf_map::{EnablePerfMap, PerfMap};
pub(crate) use self::reading::{Convert, Diff, Events, Report};
pub(crate) use self::router::{
    IpcServer, Listen as RouterListen, ModeOptions, Router, RuntimeConnects, RuntimeListens,
};
pub(crate) use self::session::{SessionDetails, UserEvents};
pub(crate) use self::stack::Stack;
pub(crate) use self::streams::{Inspect, Repair};
pub(crate) use self::target::{All, Target, TargetOptions};
pub(crate) use self::test::{FlakyResult, ListFormat, NoTests, Rerun, Test, TestTransport};
pub(crate) use self::top::Top;
pub(crate) use self::trace::{Recording, StoppingEvent, Tail, Trace};
use crate::cmd::complete;
use runtap_text::units::parse_megabytes;

/// The help of the program. It lists the verbs by topic, unlike the placeholder `{subcommands}`; a test compares the lists with
/// the verbs.
macro_rules! help_template {
    ($perfmap:literal) => {
        concat!(
            "{about-with-newline}\n{usage-heading} {usage}\n\n\
\x1b[1m\x1b[4mProcesses:\x1b[0m
  ps             List .NET and Java processes
  info           Show the runtime and command line of a process
  env            Show the environment variables of a process
  stack          Show the stacks of all threads
  doctor         Explain why a process can't be reached

\x1b[1m\x1b[4mRecord a .NET process:\x1b[0m
  trace          Record events and CPU samples to a file
  collect        Alias of 'trace', as in dotnet-trace
  tail           Show events as they happen
  counters       Show or save counters as they change
  top            Show the hottest methods and threads
  dump           Write a core dump
  heap           Write or show the objects in the heap (also Java)
  list-profiles  List the profiles for 'trace --profile'

\x1b[1m\x1b[4mChange a .NET process:\x1b[0m
  set-env        Set or remove environment variables
  resume         Resume a process suspended at startup
  profiler       Load a profiler
",
            $perfmap,
            "  startup-hook   Load an assembly and run its startup hook

\x1b[1m\x1b[4mRead recordings:\x1b[0m
  report         Summarize a recording: CPU, GC, HTTP …
  events         Show or count the events of a recording
  convert        Convert a recording to other formats
  diff           Compare two recordings
  repair         Repair a truncated or damaged recording
  inspect        Show a recording block by block

\x1b[1m\x1b[4mJava programs:\x1b[0m
  jvm            Trace the calls of a Java program

\x1b[1m\x1b[4mTests:\x1b[0m
  test           Run .NET test applications without an SDK
  mtp            Record and check what test applications send

\x1b[1m\x1b[4mConnect tools:\x1b[0m
  router         Connect tools and runtimes over TCP
  record         Record what tools and a runtime exchange
  replay         Play back what 'record' has recorded

\x1b[1m\x1b[4mMore:\x1b[0m
  demo           Try runtap on a built-in program
  completions    Print a completion script for a shell
  man            Print or write the manual pages
  licenses       Show the licenses of runtap's components
  version        Show version, commit and target
  help           Show the help of a command

\x1b[1m\x1b[4mOptions:\x1b[0m
{options}{after-help}"
        )
    };
}

#[cfg(unix)]
const HELP_TEMPLATE: &str = help_template!("  perfmap        Write perf maps of JIT-compiled code\n");
#[cfg(not(unix))]
const HELP_TEMPLATE: &str = help_template!("");

const AFTER_HELP: &str = "\
Examples:
  runtap demo                    record a built-in program
  runtap ps                      list .NET and Java processes
  runtap trace -p 1234 --duration 5s --to speedscope
  runtap trace -n MyService --profile gc-verbose
  runtap convert trace.nettrace --to flamegraph

Exit codes: 0 success, 1 failure, 2 wrong usage, 3 target not found or not reachable, \
4 rejected by the target, 5 partial result, 6 not supported by the target's runtime, \
130 interrupted. With '-- COMMAND': the command's own exit code, or 125 if runtap failed.";

const INFO_AND_ENV: &str = "\
Examples:
  runtap info 1234
  runtap env -n MyService --format json";

/// Diagnose running .NET and Java programs and run .NET tests, without an SDK or JDK
#[derive(Debug, Parser)]
#[command(name = "runtap", version, help_template = HELP_TEMPLATE, after_help = AFTER_HELP, max_term_width = 100, subcommand_required = true,
    arg_required_else_help = true, disable_help_subcommand = false, infer_long_args = false)]
pub(crate) struct CliOf<V: Subcommand> {
    #[command(flatten)]
    pub(crate) global: Global,
    #[command(subcommand)]
    pub(crate) verb: V,
}

pub(crate) type Cli = CliOf<Verb>;

/// For a command line whose verb is added by name.
#[derive(Debug, Subcommand)]
enum NoVerb {}

impl Cli {
    /// Parses a command line. The definition has only the verb that is used: clap copies the global options into every verb.
    pub(crate) fn try_parse_quickly(words: Vec<OsString>) -> Result<Self, clap::Error> {
        let verbs = Verb::augment_subcommands(Command::new("runtap"));
        let verb = words.get(1).and_then(|word| verbs.find_subcommand(word));
        let mut command = match verb {
            Some(verb) => CliOf::<NoVerb>::command().subcommand(verb.clone()),
            None => Self::command(),
        };
        let mut matches = command.try_get_matches_from_mut(words)?;
        Self::from_arg_matches_mut(&mut matches).map_err(|error| error.format(&mut command))
    }
}

/// Options of every verb.
#[derive(Debug, Args)]
pub(crate) struct Global {
    /// Suppress notes and progress
    #[arg(short, long, global = true, conflicts_with = "verbose")]
    pub(crate) quiet: bool,
    /// Print more detail; repeat for still more
    #[arg(short, long, global = true, action = clap::ArgAction::Count)]
    pub(crate) verbose: u8,
    /// When to use color (`NO_COLOR` and `CLICOLOR_FORCE` are honored)
    #[arg(long, global = true, value_name = "WHEN", default_value = "auto")]
    pub(crate) color: Color,
}

impl Global {
    /// Applies the choice of colors, and returns the output. `json` is whether results are JSON.
    pub(crate) fn output(&self, json: bool) -> Output {
        let choice = match self.color {
            Color::Auto => anstream::ColorChoice::Auto,
            Color::Always => anstream::ColorChoice::Always,
            Color::Never => anstream::ColorChoice::Never,
        };
        choice.write_global();
        Output::new(self.quiet, self.verbose, json)
    }
}

#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum Color {
    Auto,
    Always,
    Never,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Verb {
    /// List .NET and Java processes
    Ps(Deferred<Ps>),
    /// Show the runtime and command line of a process
    #[command(after_help = INFO_AND_ENV)]
    Info(Deferred<Processes>),
    /// Show the environment variables of a process
    #[command(after_help = INFO_AND_ENV)]
    Env(Deferred<Processes>),
    /// Explain why a process can't be reached
    #[command(after_help = "\
Reports the cause and a command that fixes it. Without a target, checks the machine and all \
processes that look like .NET or Java. Changes nothing. Exit code 3: the process can't be reached.

Examples:
  runtap doctor
  runtap doctor 1234
  sudo runtap doctor MyService --format json | jq -r '.findings[] | .code + \": \" + .fix'")]
    Doctor(Deferred<Processes>),
    /// Set or remove environment variables
    SetEnv(Deferred<SetEnv>),
    /// Resume a process suspended at startup
    Resume(Deferred<Resume>),
    /// Write a core dump
    Dump(Deferred<Dump>),
    /// Write or show the objects in the heap (also Java)
    #[command(visible_alias = "gcdump")]
    Heap(Deferred<Box<Heap>>),
    /// Load a profiler
    #[command(subcommand)]
    Profiler(Deferred<Profiler>),
    /// Write perf maps of JIT-compiled code
    #[cfg(unix)]
    #[command(subcommand, name = "perfmap")]
    PerfMap(Deferred<PerfMap>),
    /// Load an assembly and run its startup hook
    StartupHook(Deferred<StartupHook>),
    /// Record events and CPU samples to a file
    Trace(Deferred<Box<Trace>>),
    /// Alias of 'trace', as in dotnet-trace
    // A separate verb, because a clap alias would replace 'trace' in completions.
    Collect(Deferred<Box<Trace>>),
    /// Show events as they happen
    Tail(Deferred<Box<Tail>>),
    /// Show or save counters as they change
    Counters(Deferred<Counters>),
    /// Show the stacks of all threads
    Stack(Deferred<Stack>),
    /// Show the hottest methods and threads
    Top(Deferred<Top>),
    /// Convert a recording to other formats
    Convert(Deferred<Convert>),
    /// Compare two recordings
    Diff(Deferred<Diff>),
    /// Summarize a recording: CPU, GC, HTTP …
    Report(Deferred<Report>),
    /// Show or count the events of a recording
    Events(Deferred<Events>),
    /// Repair a truncated or damaged recording
    Repair(Deferred<Repair>),
    /// Show a recording block by block
    Inspect(Deferred<Inspect>),
    /// Connect tools and runtimes over TCP
    #[command(subcommand)]
    Router(Deferred<Router>),
    /// Record what tools and a runtime exchange
    Record(Deferred<Box<Record>>),
    /// Play back what 'record' has recorded
    Replay(Deferred<Box<Replay>>),
    /// Run .NET test applications without an SDK
    Test(Deferred<Box<Test>>),
    /// Record and check what test applications send
    Mtp(Deferred<Box<Mtp>>),
    /// Trace the calls of a Java program
    Jvm(Deferred<Jvm>),
    #[cfg(not(unix))]
    #[command(flatten)]
    Missing(Missing),
    /// Try runtap on a built-in program
    Demo(Deferred<Demo>),
    /// Print a completion script for a shell
    Completions(Deferred<Completions>),
    /// Print or write the manual pages
    Man(Deferred<Man>),
    /// Resume every runtime that connects to a port, until no process that inherited the port is left
    #[cfg(unix)]
    #[command(hide = true)]
    GuardPort(Deferred<GuardPort>),
    /// List the profiles for 'trace --profile'
    #[command(after_help = "\
Examples:
  runtap list-profiles
  runtap list-profiles --format json | jq -r '.profiles[].name'")]
    ListProfiles(Deferred<ResultFormat>),
    /// Show the licenses of runtap's components
    #[command(after_help = "\
Examples:
  runtap licenses | less
  runtap licenses --format json | jq -r '.packages[].name'")]
    Licenses(Deferred<ResultFormat>),
    /// Show version, commit and target
    #[command(after_help = "\
Examples:
  runtap version
  runtap version --format json | jq -r .commit")]
    Version(Deferred<ResultFormat>),
}

// The match has no wildcard, so that every new verb states its format.
impl Verb {
    /// Returns the format of the result. For streams of lines, it follows from the format of the lines.
    pub(crate) fn result_format(&self) -> TextOrJson {
        match self {
            Self::Ps(Deferred(Ps { format, .. }))
            | Self::Info(Deferred(Processes { format, .. }))
            | Self::Env(Deferred(Processes { format, .. }))
            | Self::Doctor(Deferred(Processes { format, .. }))
            | Self::Stack(Deferred(Stack { format, .. }))
            | Self::Report(Deferred(Report { format, .. }))
            | Self::Repair(Deferred(Repair { format, .. }))
            | Self::Inspect(Deferred(Inspect { format, .. }))
            | Self::Dump(Deferred(Dump { format, .. }))
            | Self::ListProfiles(Deferred(format))
            | Self::Licenses(Deferred(format))
            | Self::Version(Deferred(format)) => format.format,
            #[cfg(unix)]
            Self::PerfMap(Deferred(
                PerfMap::Enable(EnablePerfMap { format, .. }) | PerfMap::Disable(Processes { format, .. }),
            )) => format.format,
            Self::Trace(options) | Self::Collect(options) => AnyFormat::of_result(options.format),
            Self::Heap(options) => options.format.format,
            Self::Record(options) => options.format.format,
            Self::Replay(options) => options.format.format,
            Self::Test(options) => options.format.format,
            Self::Mtp(options) => options.format(),
            Self::Jvm(options) => options.format(),
            Self::Demo(options) => options.format(),
            Self::Convert(Deferred(Convert { format, .. })) | Self::Diff(Deferred(Diff { format, .. })) => {
                AnyFormat::of_result(*format)
            }
            Self::Events(Deferred(Events { format, .. })) => TextOrJson::of_lines(*format),
            Self::Tail(options) => TextOrJson::of_lines(options.format),
            Self::Top(options) => options.format.format,
            Self::Counters(options) => options.format(),
            Self::Router(mode) => mode.format().unwrap_or(TextOrJson::Text),
            Self::SetEnv(_)
            | Self::Resume(_)
            | Self::Profiler(_)
            | Self::StartupHook(_)
            | Self::Completions(_)
            | Self::Man(_) => TextOrJson::Text,
            #[cfg(unix)]
            Self::GuardPort(_) => TextOrJson::Text,
            #[cfg(not(unix))]
            Self::Missing(_) => TextOrJson::Text,
        }
    }
}

/// Returns a parser for the path of an input file, in which `-` is stdin.
fn input_file() -> impl TypedValueParser<Value = PathBuf> {
    PathBufValueParser::new().try_map(|path| match path.as_os_str() == "-" {
        true if cfg!(windows) => Err("standard input can't be read as a file on Windows; specify a file"),
        true => Ok(PathBuf::from(STDIN)),
        false => Ok(path),
    })
}

/// The path of stdin.
pub(crate) const STDIN: &str = "/dev/stdin";

/// The size limit for input.
#[derive(Debug, Args, Clone, Copy)]
pub(crate) struct InputSize {
    /// Maximum size to read, after decompression [default: no limit; for compressed files 1,000 times their size]
    #[arg(long, value_name = "MB", value_parser = parse_megabytes)]
    pub(crate) max_size: Option<u32>,
}

impl InputSize {
    /// Returns the limit for readers.
    pub(crate) fn of(self) -> MaxSize {
        self.max_size.map_or(MaxSize::BY_RATIO, |megabytes| MaxSize::bytes(u64::from(megabytes) << 20))
    }
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

impl TextOrJson {
    /// Returns the format of messages that go with lines of this style.
    fn of_lines(style: Option<Style>) -> Self {
        match style {
            Some(Style::Json) => Self::Json,
            Some(Style::Csv | Style::Text) | None => Self::Text,
        }
    }
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  runtap ps
  runtap ps MyService
  runtap ps --watch
  runtap ps --format json | jq '.processes[] | select(.reachable)'")]
pub(crate) struct Ps {
    /// Show only processes with this name or process id, or the processes behind a router: `runtap://HOST:PORT`
    #[arg(value_name = "NAME", add = ArgValueCompleter::new(complete::targets))]
    pub(crate) name: Option<String>,
    /// Also show parent, average CPU use since the start, memory and uptime, and do not truncate lines
    #[arg(long)]
    pub(crate) wide: bool,
    /// Show processes of all users, including those that can't be reached
    #[arg(long)]
    pub(crate) all_users: bool,
    /// Keep running and print processes that start, exit or change. JSON output is one process per line
    #[arg(short, long)]
    pub(crate) watch: bool,
    /// File with the router's access token (must not be readable by others). Only for `runtap://` targets [default: the
    /// value of `$RUNTAP_TOKEN`]
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) token_file: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) format: ResultFormat,
}

// The options of verbs that only select processes. clap would show a doc comment as the description of each of these verbs.
#[derive(Debug, Args)]
pub(crate) struct Processes {
    #[command(flatten)]
    pub(crate) target: Target,
    #[command(flatten)]
    pub(crate) all: All,
    #[command(flatten)]
    pub(crate) format: ResultFormat,
}

#[cfg(unix)]
#[derive(Debug, Args)]
pub(crate) struct GuardPort {
    /// The socket
    pub(crate) path: OsString,
    /// Users whose processes are resumed, besides the current user and root
    pub(crate) users: Vec<u32>,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  source <(runtap completions bash)
  runtap completions fish > ~/.config/fish/completions/runtap.fish")]
pub(crate) struct Completions {
    /// The shell
    #[arg(value_name = "SHELL", value_parser = ["bash", "elvish", "fish", "powershell", "zsh"])]
    pub(crate) shell: String,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  runtap man | man -l -
  runtap man --out-dir ~/.local/share/man/man1")]
pub(crate) struct Man {
    /// Write runtap.1 and a page for each verb into this directory
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) out_dir: Option<PathBuf>,
}
