//! `runtap record`: turns options into a recording of the connections between tools and runtimes, and events and results
//! into output. [`runtap_route::record`] makes the recording.

use std::io::{self, Write};
use std::path::Path;
use std::sync::Arc;

use runtap_os::exit_code;
use runtap_record::{StopRequest, Stops};
use runtap_route::record::{
    Command, DiagnosticIpc, Header, Journal, RecordOutcome, RecorderSocket, Recording, Reporter, Stop,
    Streams, Way, create, messages, recorder_header,
};
use runtap_target::{PortSpec, ResolvedTarget, Role, TargetSpec};
use runtap_text::Output;
use runtap_text::document::RecordDocument;
use runtap_transport::Endpoint;
use runtap_transport::naming::{PORTS, SocketName};
use tokio::sync::watch;

use super::interrupt::unless;
use super::target::{DotnetVerb, connect_to_one, target_spec};
use crate::cli::{Record, target_of};
use crate::exit::{self, expected, usage};

pub(super) async fn run(options: Record, output: Output) -> anyhow::Result<u8> {
    let stops = Stops::listen()?;
    let to_stdout = options.output == Path::new("-");
    let sides = unless(&stops, resolve_sides(&options, output)).await?;
    let name = sides.pid.map(|(pid, key)| SocketName::runtime(pid, key));
    let (place, listener) = match &sides.listen {
        Some(port) => RecorderSocket::listen(Some(port), None)?,
        None => RecorderSocket::listen(options.listen.as_deref(), name)?,
    };
    let (out, streams): (Box<dyn Write + Send>, _) = if to_stdout {
        (Box::new(io::stdout()), Streams::Inline)
    } else {
        let (file, path) = create(&options.output)?;
        (Box::new(file), if options.inline { Streams::Inline } else { Streams::Beside(path) })
    };
    let journal = Arc::new(Journal::begin::<DiagnosticIpc>(out, header(&options, &sides, &place))?);
    let command = command(&options, &place, to_stdout || output.json());
    if command.is_none() {
        let pid = sides.pid.map(|(pid, _)| pid);
        output.messages(messages::instructions(&sides.way, &sides.label, pid, &place));
    }
    let recording = Recording {
        listener,
        way: sides.way.clone(),
        streams,
        command,
        target: sides.process,
        duration: options.duration,
    };
    let reporter: Reporter = Arc::new(move |event| output.messages(messages::event(&event)));
    let launches = recording.command.is_some();
    let outcome = recording.run(&journal, stop_requests(&stops), reporter).await;
    let outcome = outcome.map_err(|error| {
        if launches { expected(exit::RUNTAP_FAILED, error.to_string(), None) } else { error.into() }
    })?;
    conclude(&options, outcome, output, to_stdout)
}

/// The two sides whose connections are recorded.
struct Sides {
    way: Way,
    /// The port that runtimes connect to.
    listen: Option<std::path::PathBuf>,
    /// The id of the process in its own namespace and its start time, as in the name of its socket.
    pid: Option<(u32, u64)>,
    /// The id of the process in the namespace of runtap.
    process: Option<u32>,
    label: String,
    /// The target that is connected to. It is kept because its client depends on it.
    _target: Option<ResolvedTarget>,
}

async fn resolve_sides(options: &Record, output: Output) -> anyhow::Result<Sides> {
    let target = target_of(&options.target);
    if let Some(tool) = &options.forward {
        let (way, label) = (Way::ToTool(Endpoint::local(tool)), format!("the tool at {}", tool.display()));
        let port = match &options.target.diagnostic_port {
            None if options.command.is_empty() => {
                return Err(usage(
                    "--forward requires the port to which runtimes connect (--diagnostic-port PATH,listen), or a command",
                ));
            }
            None => None,
            Some(_) => match target_spec(&target)? {
                TargetSpec::Port(PortSpec { path, role: Role::Listen | Role::Either }) => Some(path),
                _ => {
                    return Err(usage(
                        "with --forward, runtimes connect to runtap: --diagnostic-port PATH,listen",
                    ));
                }
            },
        };
        return Ok(Sides { way, listen: port, pid: None, process: None, label, _target: None });
    }
    let no_port = "a port to which runtimes connect requires the tool's port: --forward PORT";
    let target_process = connect_to_one(&target, no_port, DotnetVerb::RECORD, output).await?;
    let pid = target_process.process.as_ref().map(|process| (process.ns_pid, process.start_time));
    let process = target_process.process.as_ref().map(|process| process.pid);
    let way = Way::ToRuntime(target_process.client.endpoint().clone());
    let label = target_process.label();
    Ok(Sides { way, listen: None, pid, process, label, _target: Some(target_process) })
}

fn header(options: &Record, sides: &Sides, place: &RecorderSocket) -> Header {
    let started = jiff::Timestamp::now().to_string();
    let recorder = concat!("runtap ", env!("CARGO_PKG_VERSION"));
    recorder_header(&options.command, &sides.way, place, sides.pid, started, recorder)
}

/// Creates the command, with environment variables and arguments that lead it to the recorder.
fn command(options: &Record, place: &RecorderSocket, stdout_on_stderr: bool) -> Option<Command> {
    let ports = options.forward.is_some().then(|| std::env::var_os(PORTS).unwrap_or_default());
    let command = || Command::connecting_to(place, &options.command, ports, stdout_on_stderr);
    (!options.command.is_empty()).then(command)
}

/// Converts signals to requests to stop the recording.
pub(super) fn stop_requests(stops: &Stops) -> watch::Receiver<Stop> {
    let (sender, receiver) = watch::channel(Stop::default());
    let (mut listener, stops) = (stops.listener(), stops.clone());
    tokio::spawn(async move {
        loop {
            let request = listener.next().await;
            let signal = stops.exit_code().map(|code| i32::from(code.saturating_sub(128)));
            sender.send_modify(|stop| {
                stop.times = stop.times.saturating_add(if request == StopRequest::Abandon { 2 } else { 1 });
                stop.signal = signal;
            });
        }
    });
    receiver
}

fn conclude(options: &Record, outcome: RecordOutcome, output: Output, to_stdout: bool) -> anyhow::Result<u8> {
    let RecordOutcome { totals, status } = outcome;
    let streams = totals.streams.iter().map(|path| path.display().to_string()).collect();
    let mut document = RecordDocument::new(options.output.display().to_string(), streams);
    (document.connections, document.frames, document.bytes) =
        (totals.connections, totals.frames, totals.bytes);
    document.partial = totals.is_truncated;
    if output.json() {
        output.document_on_free_stream(&document, to_stdout)?;
    } else {
        output.note(document.remark());
    }
    if totals.connections == 0 && status.is_some() {
        output.messages([messages::no_connections(options.forward.is_some())]);
    }
    let code = status.map_or(exit::OK, |status| exit_code(status).unwrap_or(exit::FAILED));
    Ok(if code == exit::OK && totals.is_truncated { exit::PARTIAL } else { code })
}
