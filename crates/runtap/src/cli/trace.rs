//! The verbs that record or show a running program, as clap sees them.

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
use crate::units::{parse_duration, parse_megabytes, parse_time_limit};

/// How to record, and where to.
#[derive(Debug, Args, Clone)]
pub(crate) struct Recording {
    /// Stop after this time: 30s, 250ms, 1m30s, plain seconds, dd:hh:mm:ss
    #[arg(long, value_name = "TIME", value_parser = parse_time_limit, help_heading = "Recording")]
    pub(crate) duration: Option<Duration>,
    /// Size of the buffer in the target, in MB
    #[arg(long, value_name = "MB", value_parser = parse_megabytes, default_value = "256", help_heading = "Recording")]
    pub(crate) buffersize: u32,
    /// Request the names of all loaded methods at the end
    #[arg(long, value_name = "BOOL", num_args = 0..=1, default_missing_value = "true", help_heading = "Recording")]
    pub(crate) rundown: Option<bool>,
    /// Resume the runtime if it is suspended at startup, also by another tool. This resumes only the port used for the
    /// session; 'runtap resume' resumes all
    #[arg(long, value_name = "BOOL", num_args = 0..=1, default_value = "true", default_missing_value = "true",
        action = clap::ArgAction::Set, help_heading = "Recording")]
    pub(crate) resume_runtime: bool,
    /// With a command: end it when the recording ends (SIGTERM, 5 s later SIGKILL)
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

/// Which events a runtime is asked for.
#[derive(Debug, Args, Clone, Default)]
pub(crate) struct Asked {
    /// Providers: `Name[:Keywords[:Level[:Arguments]]]`, joined by commas
    #[arg(long, value_name = "LIST", help_heading = "Events")]
    pub(crate) providers: Vec<String>,
    /// Named sets of providers, joined by commas: dotnet-common, dotnet-sampled-thread-time, cpu-sampling, gc-verbose,
    /// gc-collect, database
    #[arg(long, value_name = "NAMES", help_heading = "Events", add = ArgValueCompleter::new(complete::profiles))]
    pub(crate) profile: Vec<String>,
    /// Kinds of runtime events, joined by '+' (gc+jit+exception)
    #[arg(long, value_name = "KINDS", help_heading = "Events", add = ArgValueCompleter::new(complete::clr_events))]
    pub(crate) clrevents: Option<String>,
    /// Level of --clrevents: 0 to 5 or a name
    #[arg(long, value_name = "LEVEL", help_heading = "Events")]
    pub(crate) clreventlevel: Option<String>,
}

impl Asked {
    /// Whether nothing is said.
    pub(crate) fn is_empty(&self) -> bool {
        self.providers.is_empty() && self.profile.is_empty() && self.clrevents.is_none()
    }

    /// As the library takes it.
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
    /// All processes of that name, of one user, one file each
    #[arg(long, group = "several")]
    pub(crate) all: bool,
    /// Record all processes of the tree: of a command or a port from startup, otherwise from when they are found
    #[arg(long, group = "several")]
    pub(crate) children: bool,
    /// With --children or --all: one file for all processes, in every format but nettrace
    #[arg(long, requires = "several")]
    pub(crate) merge: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Without --providers, --profile and --clrevents it records CPU samples and lightweight runtime events.
A recording ends with --duration, a stopping event, Ctrl-C, SIGTERM, or the end of the program; a second Ctrl-C skips
the method names that the runtime sends at the end.

Examples:
  runtap trace -p 1234                                 until Ctrl-C, to NAME_PID_DATE.nettrace
  runtap trace -p 1234 --duration 5s --to speedscope
  runtap trace -n MyService --providers 'My-Source:0xff:5,Other-Source'
  runtap trace -p 1234 --clrevents gc+exception --clreventlevel informational
  runtap trace -p 1234 --duration 10s --to nettrace --to flamegraph -o slow.nettrace
  runtap trace -- dotnet app.dll                       from startup; exits with the command's exit code
  runtap trace --children -o all.nettrace -- ./run.sh  every .NET process of the tree, one file each
  runtap trace --diagnostic-port /run/my/p,listen      a program started with DOTNET_DiagnosticPorts=/run/my/p
  runtap trace -p 1234 --clrevents gc --event-filter Microsoft-Windows-DotNETRuntime=1,2
  runtap trace -p 1234 --clrevents gc --user-events 'dotnet_{pid}'
                                                       into tracepoints of the kernel, for perf and eBPF")]
pub(crate) struct Trace {
    #[command(flatten)]
    pub(crate) target: Target,
    #[command(flatten)]
    pub(crate) several: Several,
    /// With a command: show its output
    #[arg(long, value_name = "BOOL", num_args = 0..=1, default_value = "false", default_missing_value = "true",
        action = clap::ArgAction::Set, help_heading = "Target")]
    pub(crate) show_child_io: bool,
    /// With a command: how long to wait for a .NET runtime to connect before it runs on unrecorded
    #[arg(long, value_name = "TIME", value_parser = parse_duration, default_value = "10s", help_heading = "Target")]
    pub(crate) dial_in: Duration,
    /// Start this command and record it from startup
    #[arg(last = true, value_name = "COMMAND", value_hint = ValueHint::CommandWithArguments,
        conflicts_with_all = ["word", "process_id", "name", "user", "diagnostic_port"], help_heading = "Target")]
    pub(crate) command: Vec<std::ffi::OsString>,

    #[command(flatten)]
    pub(crate) asked: Asked,

    /// Record method names as methods are compiled, so that interrupted recordings have names too (implies the level Verbose
    /// for the runtime)
    #[arg(long, help_heading = "Events")]
    pub(crate) method_names: bool,
    /// Only these events of a provider, or all but these: NAME=1,2,10-20 or NAME=!3; repeat it. Needs .NET 10. Most
    /// GC events are only written if event 1 (GC/Start) is included
    #[arg(long, value_name = "NAME=[!]IDS", help_heading = "Events")]
    pub(crate) event_filter: Vec<String>,
    #[command(flatten)]
    pub(crate) user_events: UserEvents,

    #[command(flatten)]
    pub(crate) stopping: StoppingEvent,
    #[command(flatten)]
    pub(crate) recording: Recording,
    /// Format of the file; repeat it for several
    #[arg(long, value_name = "FORMAT", ignore_case = true, value_delimiter = ',', value_parser = choice::<FileFormat>(),
        help_heading = "Output")]
    pub(crate) to: Vec<FileFormat>,
    /// Format of the summary, text or json; a file format is taken as --to
    #[arg(long, value_name = "FORMAT", help_heading = "Output")]
    pub(crate) format: Option<AnyFormat>,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Lines are text on a terminal and JSON elsewhere; filters are those of 'runtap events'.

Examples:
  runtap tail 1234 --clrevents gc+exception
  runtap tail --all -n MyService --clrevents exception      several processes, in one stream
  runtap tail -n MyService --providers Microsoft-Extensions-Logging:4:4 --filter 'payload.Level >= 3'
  runtap tail 1234 --clrevents exception --duration 1m | jq -r .payload.ExceptionType | sort | uniq -c")]
pub(crate) struct Tail {
    #[command(flatten)]
    pub(crate) target: Target,
    /// All processes of that name, of one user: their lines come together, each names its process
    #[arg(long, help_heading = "Target")]
    pub(crate) all: bool,
    #[command(flatten)]
    pub(crate) asked: Asked,
    /// Show only events that match this condition
    #[arg(long, value_name = "EXPR", help_heading = "Events")]
    pub(crate) filter: Option<String>,
    /// Show only events of this provider; repeat it for several
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
