//! The options of the verbs that change a process.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand, ValueHint};

use super::{All, Target, TargetOptions};
use runtap_text::units::parse_duration;

#[derive(Debug, Args)]
#[command(after_help = "\
Changes the runtime's copy of the environment: child processes and managed code that has not read \
the variable yet see the new value; native getenv does not. Requires .NET 6 or later.

Examples:
  runtap set-env 1234 LOG_LEVEL=debug
  runtap set-env -n MyService A=1 B= C    set A, empty B, remove C")]
pub(crate) struct SetEnv {
    #[command(flatten)]
    pub(crate) target: TargetOptions,
    #[command(flatten)]
    pub(crate) all: All,
    /// The process (unless selected by an option), then the variables: NAME=VALUE sets one, NAME removes it
    #[arg(value_name = "TARGET|NAME[=VALUE]", required = true)]
    pub(crate) words: Vec<String>,
}

#[derive(Debug, Args)]
#[command(after_help = "\
At startup, a runtime waits for a tool on each of its diagnostic ports that is not marked \
'nosuspend'. If the tool of such a port has exited, runtap takes over the port and resumes every \
runtime that connects; ports still in use are left alone. Resuming a running program has no effect.

Examples:
  runtap resume 1234
  runtap resume --diagnostic-port /run/my/p,listen    all that connect in 3 s")]
pub(crate) struct Resume {
    #[command(flatten)]
    pub(crate) target: Target,
    #[command(flatten)]
    pub(crate) all: All,
    /// With a port: how long to wait for runtimes to connect
    #[arg(long, value_name = "TIME", value_parser = parse_duration, default_value = "3s")]
    pub(crate) duration: Duration,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Profiler {
    /// Load a profiler into a running process
    Attach(AttachProfiler),
    /// Set the profiler that a suspended process loads when it resumes
    Startup(StartupProfiler),
}

/// The options that select a profiler.
#[derive(Debug, Args)]
pub(crate) struct ProfilerLibrary {
    /// Class id of the profiler: 00000000-0000-0000-0000-000000000000, with or without braces
    #[arg(long, value_name = "GUID")]
    pub(crate) clsid: String,
    /// Absolute path of the profiler's library, as seen by the target
    #[arg(long, value_name = "PATH", value_hint = ValueHint::FilePath)]
    pub(crate) path: PathBuf,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  runtap profiler attach 1234 --clsid GUID --path /opt/prof/libprof.so
  runtap profiler attach -n MyService --clsid GUID --path … --data 'mode=fast'")]
pub(crate) struct AttachProfiler {
    #[command(flatten)]
    pub(crate) target: Target,
    #[command(flatten)]
    pub(crate) all: All,
    #[command(flatten)]
    pub(crate) library: ProfilerLibrary,
    /// How long the runtime waits for the profiler to initialize
    #[arg(long, value_name = "TIME", value_parser = parse_duration, default_value = "10s")]
    pub(crate) timeout: Duration,
    /// Data passed to the profiler: text, @FILE for the bytes of a file, or hex:0123… for bytes
    #[arg(long, value_name = "DATA")]
    pub(crate) data: Option<String>,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Start the program suspended (DOTNET_DefaultDiagnosticPortSuspend=1), set the profiler, then resume \
the program. For a program that is already running, the command is rejected, because its runtime \
would ignore it.

Examples:
  runtap profiler startup 1234 --clsid GUID --path /opt/prof/libprof.so
  runtap resume 1234")]
pub(crate) struct StartupProfiler {
    #[command(flatten)]
    pub(crate) target: Target,
    #[command(flatten)]
    pub(crate) all: All,
    #[command(flatten)]
    pub(crate) library: ProfilerLibrary,
}

#[derive(Debug, Args)]
#[command(after_help = "\
The assembly needs a class StartupHook (in no namespace) with a method static void Initialize(). The \
method runs immediately, or before Main if the program is suspended at startup. runtap checks the \
assembly first, because .NET 9 and later exit if a hook can't be loaded. They also exit if the hook \
throws or a dependency of the assembly is missing; runtap can't check that.

Examples:
  runtap startup-hook 1234 /opt/hooks/Hook.dll
  runtap startup-hook -n MyService /opt/hooks/Hook.dll")]
pub(crate) struct StartupHook {
    #[command(flatten)]
    pub(crate) target: TargetOptions,
    #[command(flatten)]
    pub(crate) all: All,
    /// The process (unless selected by an option), then the path of the assembly as seen by the target. Relative paths
    /// start at the current directory
    #[arg(value_name = "TARGET|PATH", required = true, num_args = 1..=2)]
    pub(crate) words: Vec<String>,
}
