//! The options of the verbs that record or show the events of running programs.

use std::path::PathBuf;
use std::time::Duration;

use clap::{ArgGroup, Args, ValueHint};
use clap_complete::engine::ArgValueCompleter;
use runtap_clr::lines::Style;
use runtap_convert::FileFormat;
use runtap_record::providers::Selection;

use super::choices::choice;
use super::{AnyFormat, Content, SessionDetails, Target, UserEvents};
use crate::cmd::complete;
use runtap_text::units::{parse_duration, parse_megabytes, parse_time_limit};

/// The options for the recording and its output.
#[derive(Debug, Args, Clone)]
pub(crate) struct Recording {
    /// Stop after this time: 30s, 250ms, 1m30s, plain seconds, dd:hh:mm:ss
    #[arg(long, value_name = "TIME", value_parser = parse_time_limit, help_heading = "Recording")]
    pub(crate) duration: Option<Duration>,
    /// Size of the buffer in the target, in MB
    #[arg(long, value_name = "MB", value_parser = parse_megabytes, default_value = "256", help_heading = "Recording")]
    pub(crate) buffersize: u32,
    /// Request the names of all loaded methods when the recording stops
    #[arg(long, value_name = "BOOL", num_args = 0..=1, default_missing_value = "true", help_heading = "Recording")]
    pub(crate) rundown: Option<bool>,
    /// Resume the runtime if it is suspended at startup. This resumes only the port used for the session; 'runtap resume'
    /// resumes all ports
    #[arg(long, value_name = "BOOL", num_args = 0..=1, default_value = "true", default_missing_value = "true",
        action = clap::ArgAction::Set, help_heading = "Recording")]
    pub(crate) resume_runtime: bool,
    /// With a command: terminate it when the recording stops (SIGTERM, after 5 s SIGKILL)
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

/// The options that select events.
#[derive(Debug, Args, Clone, Default)]
pub(crate) struct EventOptions {
    /// Comma-separated providers: `Name[:Keywords[:Level[:Arguments]]]`
    #[arg(long, value_name = "LIST", help_heading = "Events")]
    pub(crate) providers: Vec<String>,
    /// Comma-separated sets of providers: dotnet-common, dotnet-sampled-thread-time, cpu-sampling, gc-verbose, gc-collect,
    /// database
    #[arg(long, value_name = "NAMES", help_heading = "Events", add = ArgValueCompleter::new(complete::profiles))]
    pub(crate) profile: Vec<String>,
    /// Kinds of runtime events, separated by '+' (gc+jit+exception)
    #[arg(long, value_name = "KINDS", help_heading = "Events", add = ArgValueCompleter::new(complete::clr_events))]
    pub(crate) clrevents: Option<String>,
    /// Level of --clrevents: 0 to 5, or a name such as informational
    #[arg(long, value_name = "LEVEL", help_heading = "Events")]
    pub(crate) clreventlevel: Option<String>,
}

impl EventOptions {
    /// Whether no events are selected.
    pub(crate) fn is_empty(&self) -> bool {
        self.providers.is_empty() && self.profile.is_empty() && self.clrevents.is_none()
    }

    /// Returns the selection of events.
    pub(crate) fn selection(&self) -> Selection<'_> {
        Selection {
            providers: &self.providers,
            profiles: &self.profile,
            clr_events: self.clrevents.as_deref(),
            clr_event_level: self.clreventlevel.as_deref(),
            event_filters: &[],
        }
    }
}

/// The options for an event that stops the recording.
#[derive(Debug, Args, Clone, Default)]
#[command(next_help_heading = "Recording")]
pub(crate) struct StoppingEvent {
    /// Stop at the first event of this provider
    #[arg(id = "stopping_event_provider", long = "stopping-event-provider-name", value_name = "NAME")]
    pub(crate) provider: Option<String>,
    /// Only if the stopping event has this name: as shown in recordings, or Task/Opcode
    #[arg(id = "stopping_event_name", long = "stopping-event-event-name", value_name = "NAME")]
    pub(crate) name: Option<String>,
    /// Only if the stopping event has these values: FIELD:VALUE, separated by commas
    #[arg(id = "stopping_event_payload", long = "stopping-event-payload-filter", value_name = "PAIRS")]
    pub(crate) payload: Option<String>,
}

/// The options for recordings of several processes.
#[derive(Debug, Args)]
#[command(next_help_heading = "Target", group(ArgGroup::new("several").multiple(true)))]
pub(crate) struct Several {
    /// Record all processes with this name (of a single user), each to its own file
    #[arg(long, group = "several")]
    pub(crate) all: bool,
    /// Also record child processes: from startup with a command or a port, otherwise from when they are discovered
    #[arg(long, group = "several")]
    pub(crate) children: bool,
    /// With --children or --all: write one file for all processes, in any format except nettrace
    #[arg(long, requires = "several")]
    pub(crate) merge: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Without --providers, --profile and --clrevents, trace records CPU samples and lightweight runtime \
events. A recording stops after --duration, at a stopping event, on Ctrl-C or SIGTERM, or when the \
program exits. A second Ctrl-C skips the method names that the runtime sends last.

Examples:
  runtap trace -p 1234                          to NAME_PID_DATE.nettrace
  runtap trace -p 1234 --duration 5s --to speedscope
  runtap trace -n MyService --providers 'My-Source:0xff:5,Other-Source'
  runtap trace -p 1234 --clrevents gc+exception --clreventlevel informational
  runtap trace -p 1234 --duration 10s --to nettrace --to flamegraph
  runtap trace -- dotnet app.dll                record a command from startup
  runtap trace --children -- ./run.sh           and all its .NET child processes
  runtap trace --dport /run/my/p,listen         DOTNET_DiagnosticPorts=/run/my/p
  runtap trace -p 1234 --event-filter Microsoft-Windows-DotNETRuntime=1,2
  runtap trace -p 1234 --user-events 'dotnet_{pid}'    for perf and eBPF")]
pub(crate) struct Trace {
    #[command(flatten)]
    pub(crate) target: Target,
    #[command(flatten)]
    pub(crate) several: Several,
    /// With a command: show its output
    #[arg(long, value_name = "BOOL", num_args = 0..=1, default_value = "false", default_missing_value = "true",
        action = clap::ArgAction::Set, help_heading = "Target")]
    pub(crate) show_child_io: bool,
    /// With a command: how long to wait for its runtime to connect; after that, the command runs without being recorded
    #[arg(long, value_name = "TIME", value_parser = parse_duration, default_value = "10s", help_heading = "Target")]
    pub(crate) dial_in: Duration,
    /// Start this command and record it from startup
    #[arg(last = true, value_name = "COMMAND", value_hint = ValueHint::CommandWithArguments,
        conflicts_with_all = ["word", "process_id", "name", "user", "diagnostic_port"], help_heading = "Target")]
    pub(crate) command: Vec<std::ffi::OsString>,

    #[command(flatten)]
    pub(crate) events: EventOptions,

    /// Record method names as methods are compiled, so that interrupted recordings have names too. Sets the runtime's
    /// provider to level Verbose
    #[arg(long, help_heading = "Events")]
    pub(crate) method_names: bool,
    /// Record only these events of a provider (NAME=1,2,10-20), or all except these (NAME=!3); repeatable. Requires .NET 10
    /// or later. Runtimes write most GC events only if event 1 (GC/Start) is included
    #[arg(long, value_name = "NAME=[!]IDS", help_heading = "Events")]
    pub(crate) event_filter: Vec<String>,
    #[command(flatten)]
    pub(crate) user_events: UserEvents,

    #[command(flatten)]
    pub(crate) stopping: StoppingEvent,
    #[command(flatten)]
    pub(crate) recording: Recording,
    /// Format of the file; repeatable
    #[arg(long, value_name = "FORMAT", ignore_case = true, value_delimiter = ',', value_parser = choice::<FileFormat>(),
        help_heading = "Output")]
    pub(crate) to: Vec<FileFormat>,
    /// Format of the summary, text or json; a file format works as --to
    #[arg(long, value_name = "FORMAT", help_heading = "Output")]
    pub(crate) format: Option<AnyFormat>,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Prints text on a terminal and JSON otherwise. Filters are those of 'runtap events'.

Examples:
  runtap tail 1234 --clrevents gc+exception
  runtap tail --all -n MyService --clrevents exception    several processes
  runtap tail 1234 --providers Microsoft-Extensions-Logging:4:4
  runtap tail 1234 --clrevents exception | jq -r .payload.ExceptionType")]
pub(crate) struct Tail {
    #[command(flatten)]
    pub(crate) target: Target,
    /// Show all processes with this name (of a single user) in one stream; each line names its process
    #[arg(long, help_heading = "Target")]
    pub(crate) all: bool,
    #[command(flatten)]
    pub(crate) events: EventOptions,
    /// Show only events that match this condition
    #[arg(long, value_name = "EXPR", help_heading = "Events")]
    pub(crate) filter: Option<String>,
    /// Show only events of this provider; repeatable
    #[arg(long, value_name = "NAME", value_delimiter = ',', help_heading = "Events")]
    pub(crate) provider: Vec<String>,
    /// Stop after this time: 30s, 250ms, 1m30s, plain seconds, dd:hh:mm:ss
    #[arg(long, value_name = "TIME", value_parser = parse_time_limit, help_heading = "Recording")]
    pub(crate) duration: Option<Duration>,
    /// Size of the buffer in the target, in MB
    #[arg(long, value_name = "MB", value_parser = parse_megabytes, default_value = "256", help_heading = "Recording")]
    pub(crate) buffersize: u32,
    /// Format of the lines: json, csv or text
    #[arg(long, value_name = "FORMAT", hide_possible_values = true, value_parser = choice::<Style>())]
    pub(crate) format: Option<Style>,
}
