//! `runtap trace`: turns options into a specification, and events and results into output and an exit code.
//! [`runtap_record`] makes the recording.

#[cfg_attr(windows, path = "keyboard_windows.rs")]
mod keyboard;
mod show;
mod spec;
mod summary;
#[cfg_attr(not(target_os = "linux"), path = "no_user_events.rs")]
mod user_events;

use std::io::{self, IsTerminal};
use std::path::Path;

use runtap_convert::FileFormat;
use runtap_diag::ports::Port;
use runtap_os::exit_code;
use runtap_record::providers::{Request, Requested, messages};
use runtap_record::{
    Command, Io, Prepared, RecordingOutcome, Reporter, Specification, StopEvent, Stops, Target,
};
use runtap_target::messages::PICK_OR_ALL;
use runtap_target::{ManagedTarget, PortSpec, ResolvedTarget, Role, TargetSpec, UserFilter};
use runtap_text::Output;

use self::keyboard::stop_on_enter;
use self::show::EventPrinter;
pub(super) use self::show::guard_arguments;
use super::failure::recording_error;
use super::interrupt::unless;
use super::named_port::note_listening;
use super::target::{DotnetVerb, choose_managed, reject_stuck, resolve, target_error, target_spec};
use crate::cli::{self, StoppingEvent, Trace};
use crate::exit::{self, expected};

pub(super) async fn run(options: Trace, output: Output) -> anyhow::Result<u8> {
    let formats = spec::formats(&options);
    spec::check(&options, &formats)?;
    let request = spec::request(&options)?;
    if !options.user_events.user_events.is_empty() {
        print_request(&request, output);
        return user_events::run(&options, &request, output).await;
    }
    let mut spec = spec::specification(&options.recording, &formats, &request)?;
    if spec.content.is_given() && formats.iter().all(|format| *format == FileFormat::Nettrace) {
        output.note("--view, --evented, --merge-threads and --compat have no effect on a nettrace file, which contains all recorded data");
    }
    (spec.children, spec.merge) = (options.several.children, options.several.merge);
    let StoppingEvent { provider, name, payload } = &options.stopping;
    spec.stop_event = StopEvent::from_options(provider.as_deref(), name.as_deref(), payload.as_deref())
        .map_err(|error| exit::usage(error.to_string()))?;
    spec.connect_timeout = options.dial_in;
    if let Some(event) = &spec.stop_event
        && let Some(unreachable) = event.unreachable(&request.providers)
    {
        output.warning(messages::unreachable(event, &unreachable));
    }
    print_request(&request, output);
    if !options.command.is_empty() {
        let to_stdout = options.recording.output.as_deref() == Some(Path::new("-"));
        let io = child_io(options.show_child_io, to_stdout || output.json());
        let command = Command { words: options.command, io, kill: options.recording.kill_command };
        return launch(spec, command, summary(output), output).await;
    }
    let (target, all) = (&options.target, options.several.all);
    let check = |count| if count > 1 { spec::check_several(&options) } else { Ok(()) };
    record_target(spec, target, all, DotnetVerb::TRACE, check, summary(output), output).await
}

/// Prints the result of a recording and returns the exit code.
pub(super) type Conclude = Box<dyn FnOnce(RecordingOutcome, &Stops) -> anyhow::Result<u8>>;

fn summary(output: Output) -> Conclude {
    Box::new(move |outcome, stops| summary::conclude(outcome, stops, output))
}

/// Returns what happens to the output of a command.
pub(super) fn child_io(show: bool, stdout_is_taken: bool) -> Io {
    match (show, stdout_is_taken) {
        (false, _) => Io::Hidden,
        (true, false) => Io::Shown,
        (true, true) => Io::ShownOnStderr,
    }
}

/// Records the processes that the options select. `check` may reject a number of processes.
async fn record_target(
    spec: Specification,
    target: &cli::Target,
    all: bool,
    verb: DotnetVerb,
    check: impl FnOnce(usize) -> anyhow::Result<()>,
    conclude: Conclude,
    output: Output,
) -> anyhow::Result<u8> {
    let resume = spec.resume;
    let recorder = Recorder::open(spec, false, conclude, output).await?;
    let target = match target_spec(target)? {
        TargetSpec::Port(port) => return recorder.record_at_port(port).await,
        target => target,
    };
    let chosen = unless(&recorder.stops, resolve(&target, all, verb, output)).await?;
    check(chosen.len())?;
    if resume {
        reject_stuck(&chosen, &recorder.stops).await?;
    }
    recorder.record_running(chosen).await
}

/// Records the processes that the options select, and reads the counters of Java programs among them. With `wait`, processes with the
/// name are awaited.
pub(super) async fn record_managed(
    spec: Specification,
    target: &cli::Target,
    (all, wait): (bool, bool),
    conclude: Conclude,
    output: Output,
) -> anyhow::Result<u8> {
    let children = spec.children;
    let named = target_spec(target)?;
    if let (true, TargetSpec::Name { user, .. }) = (wait, &named)
        && let Err(error) = UserFilter(user.as_deref()).check()
    {
        return Err(target_error(error, PICK_OR_ALL, output).await);
    }
    let recorder = Recorder::open(spec, false, conclude, output).await?;
    match named {
        TargetSpec::Port(port) => return recorder.record_at_port(port).await,
        spec if wait => return recorder.record(Target::Named { spec, all }).await,
        _ => {}
    }
    let chosen = unless(&recorder.stops, choose_managed(target, all, output)).await?;
    let (dotnet, jvms) = ManagedTarget::split(chosen);
    if children && let Some(java) = jvms.first() {
        return Err(exit::usage(format!(
            "--children reads .NET programs only, and {java} is a Java program"
        )));
    }
    reject_stuck(&dotnet, &recorder.stops).await?;
    recorder.record(Target::Managed(dotnet, jvms)).await
}

fn print_request(request: &Request, output: Output) {
    for note in &request.notes {
        output.note(messages::note(note));
    }
    for Requested { provider, by } in &request.providers {
        let (name, level) = (&provider.name, provider.level);
        output.detail(format_args!(
            "{name}  {:#018x}  {level:?}({})  {}",
            provider.keywords,
            level.number(),
            messages::option(*by)
        ));
    }
}

/// Records running processes. Used by `demo`.
pub(super) async fn record(
    chosen: Vec<ResolvedTarget>,
    spec: Specification,
    output: Output,
) -> anyhow::Result<u8> {
    Recorder::open(spec, false, summary(output), output).await?.record_running(chosen).await
}

/// A recording whose outputs are open, with its stop requests and output.
struct Recorder {
    prepared: Prepared,
    stops: Stops,
    stops_on_enter: bool,
    conclude: Conclude,
    output: Output,
}

impl Recorder {
    async fn open(
        spec: Specification,
        launches: bool,
        conclude: Conclude,
        output: Output,
    ) -> anyhow::Result<Self> {
        // Like dotnet-trace, except that a launched command keeps the keyboard for itself.
        let stops_on_enter = !launches && output.progress() && io::stdin().is_terminal();
        let (show, stops) = (EventPrinter::new(&spec, stops_on_enter, output), Stops::listen()?);
        let reporter = Reporter::new(move |event| show.event(event));
        let prepared = Prepared::open(spec, stops.clone(), reporter).await.map_err(recording_error)?;
        let interrupted = || expected(stops.exit_code().unwrap_or(exit::INTERRUPTED), "interrupted", None);
        Ok(Self { prepared: prepared.ok_or_else(interrupted)?, stops, stops_on_enter, conclude, output })
    }

    async fn record_at_port(self, PortSpec { path, role }: PortSpec) -> anyhow::Result<u8> {
        match role {
            Role::Listen => self.listen(Port::bind(path)?).await,
            Role::Connect => self.record_running(vec![ResolvedTarget::at_port(&path)]).await,
            // Listen like dotnet-trace, or connect if the port already has a listener.
            Role::Either => match Port::bind(&path) {
                Ok(port) => self.listen(port).await,
                Err(_in_use) => self.record_running(vec![ResolvedTarget::at_port(&path)]).await,
            },
        }
    }

    /// Records runtimes that connect to a port named by the user.
    async fn listen(self, port: Port) -> anyhow::Result<u8> {
        note_listening(&port, self.output);
        self.record(Target::Port(port)).await
    }

    async fn record_running(self, chosen: Vec<ResolvedTarget>) -> anyhow::Result<u8> {
        self.record(Target::Running(chosen)).await
    }

    async fn record(self, target: Target) -> anyhow::Result<u8> {
        if self.stops_on_enter {
            stop_on_enter(&self.stops)?;
        }
        let Self { prepared, stops, conclude, .. } = self;
        let conclude = |outcome| conclude(outcome, &stops);
        prepared.record(target, conclude).await.map_err(recording_error)?.0
    }
}

/// Starts a command and records it from its first event on. Returns the command's exit code unless that is 0 and the recording
/// is incomplete or interrupted.
pub(super) async fn launch(
    spec: Specification,
    command: Command,
    conclude: Conclude,
    output: Output,
) -> anyhow::Result<u8> {
    let hides = command.io == Io::Hidden && !command.kill;
    let opened = Recorder::open(spec, true, conclude, output).await;
    let Recorder { prepared, stops, conclude, .. } = opened.map_err(|error| match exit::code_of(&error) {
        exit::FAILED => ours(error),
        _ => error,
    })?;
    let conclude = |outcome| conclude(outcome, &stops);
    let recorded = prepared.record(Target::Command(command), conclude).await;
    let (code, status) = recorded.map_err(recording_error).map_err(ours)?;
    let theirs = exit_code(status.ok_or_else(|| ours(anyhow::anyhow!("the command was not waited for")))?)
        .unwrap_or(u8::MAX);
    match code {
        Err(error) if exit::is_broken_pipe(&error) => Ok(theirs),
        Err(error) => Err(ours(error)),
        Ok(code) if theirs == 0 && (code == exit::PARTIAL || Some(code) == stops.exit_code()) => Ok(code),
        Ok(_) => {
            if theirs != 0 && hides {
                output.note(format_args!(
                    "the command exited with code {theirs}; --show-child-io shows its output"
                ));
            }
            Ok(theirs)
        }
    }
}

/// Gives an error the exit code of runtap's own failures, for verbs that otherwise return the code of a command.
#[expect(clippy::needless_pass_by_value, reason = "it stands in map_err")]
pub(super) fn ours(error: anyhow::Error) -> anyhow::Error {
    let hint = exit::hint_of(&error);
    expected(exit::RUNTAP_FAILED, format!("{error:#}"), hint)
}

/// `runtap guard-port`: resumes every runtime that connects to a port, until no process that inherited the port is left.
#[cfg(unix)]
pub(super) async fn guard_port(path: std::ffi::OsString, users: Vec<u32>) -> anyhow::Result<u8> {
    let path = Path::new(&path);
    match runtap_record::guard_port(path, &std::collections::BTreeSet::from_iter(users)).await {
        Ok(()) => Ok(exit::OK),
        Err(error) => {
            let hint = "runtap starts this verb itself, with the socket as stdin".to_owned();
            Err(expected(exit::USAGE, format!("guard {}: {error}", path.display()), hint))
        }
    }
}
