//! The verbs that have a process do something, as clap sees them.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand, ValueHint};

use super::{All, Target, TargetOptions};
use crate::units::parse_duration;

#[derive(Debug, Args)]
#[command(after_help = "\
The runtime has its own copy of the environment: child processes get the new value, and so does managed code unless
it has read the variable already; native getenv does not see it. Needs .NET 6 or later.

Examples:
  runtap set-env 1234 LOG_LEVEL=debug
  runtap set-env -n MyService A=1 B= C          sets A, empties B, removes C")]
pub(crate) struct SetEnv {
    #[command(flatten)]
    pub(crate) target: TargetOptions,
    #[command(flatten)]
    pub(crate) all: All,
    /// The process, where no option names it; then what to set: NAME=VALUE, or NAME to remove it
    #[arg(value_name = "TARGET|NAME[=VALUE]", required = true)]
    pub(crate) words: Vec<String>,
}

#[derive(Debug, Args)]
#[command(after_help = "\
A runtime waits at startup for every diagnostic port that it was given without 'nosuspend'. If the tool that listened
there is gone, runtap takes over the port and resumes every runtime that connects; ports still in use are left alone.
Resuming a running program has no effect.

Examples:
  runtap resume 1234
  runtap resume --diagnostic-port /run/my/p,listen   every runtime that connects there, for --duration")]
pub(crate) struct Resume {
    #[command(flatten)]
    pub(crate) target: Target,
    #[command(flatten)]
    pub(crate) all: All,
    /// With a port: how long to wait for runtimes that connect
    #[arg(long, value_name = "TIME", value_parser = parse_duration, default_value = "3s")]
    pub(crate) duration: Duration,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Profiler {
    /// Load a profiler into a running process
    Attach(AttachProfiler),
    /// Set a profiler that a suspended process loads when it is resumed
    Startup(StartupProfiler),
}

/// Which profiler.
#[derive(Debug, Args)]
pub(crate) struct ProfilerLibrary {
    /// Class id of the profiler: 00000000-0000-0000-0000-000000000000, with or without braces
    #[arg(long, value_name = "GUID")]
    pub(crate) clsid: String,
    /// Absolute path of its library, as seen by the target
    #[arg(long, value_name = "PATH", value_hint = ValueHint::FilePath)]
    pub(crate) path: PathBuf,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  runtap profiler attach 1234 --clsid 12345678-9abc-def0-1234-56789abcdef0 --path /opt/prof/libprof.so
  runtap profiler attach -n MyService --clsid … --path … --data 'mode=fast' --timeout 30s")]
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
Start the program suspended (DOTNET_DefaultDiagnosticPortSuspend=1), set the profiler, then 'runtap resume' it.
A program that is already running would ignore the command, so it is refused.

Examples:
  runtap profiler startup 1234 --clsid 12345678-9abc-def0-1234-56789abcdef0 --path /opt/prof/libprof.so
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
The assembly has a class StartupHook (in no namespace) with a static void Initialize(). It runs at once, or before
Main if the program is suspended at startup. Since a hook that can't be loaded ends .NET 9 and later, the file is
checked first. A hook that throws, or lacks an assembly that it needs, ends them all the same.

Examples:
  runtap startup-hook 1234 /opt/hooks/Hook.dll
  runtap startup-hook -n MyService /opt/hooks/Hook.dll")]
pub(crate) struct StartupHook {
    #[command(flatten)]
    pub(crate) target: TargetOptions,
    #[command(flatten)]
    pub(crate) all: All,
    /// The process, where no option names it; then the path of the assembly, as seen by the target; a relative path counts from this directory
    #[arg(value_name = "TARGET|PATH", required = true, num_args = 1..=2)]
    pub(crate) words: Vec<String>,
}
