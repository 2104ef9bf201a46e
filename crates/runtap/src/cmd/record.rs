//! `runtap record`: turns options into a recording of the connections between tools and runtimes, and events and results
//! into output. [`runtap_route::record`] makes the recording.

use std::ffi::{OsStr, OsString};
use std::io::{self, Write};
use std::path::Path;
use std::process::ExitStatus;
use std::sync::Arc;

use runtap_os::shell;
use runtap_record::{PORTS, StopRequest, Stops};
use runtap_route::record::{
    Command, DiagnosticIpc, Event, Header, Journal, Outcome, RecorderSocket, Recording, Reporter, Stop,
    Streams, Way, create,
};
use runtap_target::{PortSpec, ResolvedTarget, Role, TargetSpec};
use runtap_text::document::RecordDocument;
use runtap_transport::Endpoint;
use runtap_transport::naming::{SocketName, port_address};
use tokio::sync::watch;

use super::interrupt::unless;
use super::target::{DotnetVerb, resolve, target_spec};
use super::trace::signal_of;
use crate::cli::{Record, target_of};
use crate::exit::{self, expected, usage};
use crate::output::Output;
use crate::units::Things;

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
        print_instructions(&sides, &place, output);
    }
    let recording = Recording {
        listener,
        way: sides.way.clone(),
        streams,
        command,
        target: sides.process,
        duration: options.duration,
    };
    let reporter: Reporter = Arc::new(move |event| show(&event, output));
    let launches = recording.command.is_some();
    let outcome = recording.run(&journal, stop_requests(&stops), reporter).await;
    let outcome = outcome.map_err(|error| {
        if launches { expected(exit::OURS, error.to_string(), None) } else { error.into() }
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
                    "--forward needs the port that runtimes dial (--diagnostic-port PATH,listen), or a command",
                ));
            }
            None => None,
            Some(_) => match target_spec(&target)? {
                TargetSpec::Port(PortSpec { path, role: Role::Listen | Role::Either }) => Some(path),
                _ => return Err(usage("with --forward, runtimes dial in: --diagnostic-port PATH,listen")),
            },
        };
        return Ok(Sides { way, listen: port, pid: None, process: None, label, _target: None });
    }
    let target_process = match target_spec(&target)? {
        TargetSpec::Port(PortSpec { role: Role::Listen, .. }) => {
            return Err(usage("a port at which runtimes dial in needs the tool's: --forward PORT"));
        }
        TargetSpec::Port(PortSpec { path, .. }) => ResolvedTarget::at_port(&path),
        target => {
            let mut targets = resolve(&target, false, DotnetVerb::RECORD, output).await?;
            targets.pop().ok_or_else(|| usage("no process was chosen"))?
        }
    };
    let pid = target_process.process.as_ref().map(|process| (process.ns_pid, process.start_time));
    let process = target_process.process.as_ref().map(|process| process.pid);
    let way = Way::ToRuntime(target_process.client.endpoint().clone());
    let label = target_process.label();
    Ok(Sides { way, listen: None, pid, process, label, _target: Some(target_process) })
}

fn header(options: &Record, sides: &Sides, place: &RecorderSocket) -> Header {
    let mut header = Header { role: Some("recorder".to_owned()), ..Header::default() };
    let words = options.command.iter().map(|word| word.to_string_lossy().into_owned());
    header.cmd = Some(words.collect()).filter(|words: &Vec<String>| !words.is_empty());
    let mut add = |key: &str, value: serde_json::Value| {
        header.more.insert(key.to_owned(), value);
    };
    add("started", jiff::Timestamp::now().to_string().into());
    add("recorder", concat!("runtap ", env!("CARGO_PKG_VERSION")).into());
    add("listen", place.path().display().to_string().into());
    let (key, endpoint) = match &sides.way {
        Way::ToRuntime(endpoint) => ("runtime", endpoint),
        Way::ToTool(endpoint) => ("tool", endpoint),
    };
    add(key, endpoint.to_string().into());
    if let Some((pid, start)) = sides.pid {
        add("process_id", pid.into());
        add("start_time", start.into());
    }
    header
}

/// Creates the command, with environment variables and arguments that lead it to the recorder.
fn command(options: &Record, place: &RecorderSocket, stdout_on_stderr: bool) -> Option<Command> {
    if options.command.is_empty() {
        return None;
    }
    let mut environment = Vec::new();
    if options.forward.is_some() {
        let mut ports = std::env::var_os(PORTS).filter(|ports| !ports.is_empty()).unwrap_or_default();
        if !ports.is_empty() {
            ports.push(";");
        }
        ports.push(port_address(place.path()));
        ports.push(",suspend,connect");
        environment.push((OsString::from(PORTS), ports));
    } else if let Some(directory) = place.directory() {
        environment.push((OsString::from("TMPDIR"), directory.as_os_str().to_owned()));
    }
    Some(Command { words: with_socket(&options.command, place.path()), environment, stdout_on_stderr })
}

/// Replaces `{socket}` in the words of a command by the path of the socket.
pub(super) fn with_socket(words: &[OsString], socket: &Path) -> Vec<OsString> {
    let socket = socket.to_string_lossy();
    let replaced = |word: &OsStr| word.to_str().map(|word| OsString::from(word.replace("{socket}", &socket)));
    words.iter().map(|word| replaced(word).unwrap_or_else(|| word.clone())).collect()
}

/// Prints how tools or runtimes connect to the recorder.
fn print_instructions(sides: &Sides, place: &RecorderSocket, output: Output) {
    let path = shell::word(place.path());
    if let Way::ToTool(_) = sides.way {
        let path = shell::word(port_address(place.path()));
        output.note(format_args!("waiting for programs that are started with {PORTS}={path}"));
        return;
    }
    output.note(format_args!("tools reach {} here: --diagnostic-port {path},connect", sides.label));
    if let (Some((pid, _)), Some(directory)) = (sides.pid, place.directory()) {
        output.note(format_args!("or: TMPDIR={} TOOL -p {pid}", shell::word(directory)));
    }
    output.note("Ctrl-C ends the recording");
}

fn show(event: &Event<'_>, output: Output) {
    match event {
        Event::Opened { conn, peer } => {
            let who = peer.pid.map_or_else(|| "somebody".to_owned(), |pid| format!("process {pid}"));
            output.detail(format_args!("{conn}: {who} connects"));
        }
        Event::Closing { open } => output.note(format_args!(
            "it ends when the {} that are open have ended; Ctrl-C again breaks them off",
            Things(*open as u64, "connection")
        )),
        Event::Unreachable { conn, error } => output.warning(format_args!("{conn}: {error}")),
        Event::NotWritten(error) => {
            output.warning(format_args!("the transcript ends here, and connections still pass: {error}"));
        }
        Event::Closed { conn, stream } => {
            let stream = stream.as_ref().map(|path| format!("; its stream is in {}", path.display()));
            output.detail(format_args!("{conn}: over{}", stream.unwrap_or_default()));
        }
        _ => {}
    }
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

/// Returns the exit code of a command, or 128 + n if signal n terminated it.
pub(super) fn code_of(status: ExitStatus) -> u8 {
    let signal = || signal_of(status).map(|signal| signal.saturating_add(128));
    status.code().or_else(signal).and_then(|code| u8::try_from(code).ok()).unwrap_or(exit::FAILED)
}

fn conclude(options: &Record, outcome: Outcome, output: Output, to_stdout: bool) -> anyhow::Result<u8> {
    let Outcome { totals, status } = outcome;
    let streams = totals.streams.iter().map(|path| path.display().to_string()).collect();
    let mut document = RecordDocument::new(options.output.display().to_string(), streams);
    (document.connections, document.frames, document.bytes) =
        (totals.connections, totals.frames, totals.bytes);
    document.partial = totals.is_truncated;
    if output.json() {
        output.document_beside(&document, to_stdout)?;
    } else {
        output.note(document.remark());
    }
    if totals.connections == 0 && status.is_some() && options.forward.is_some() {
        output.warning(
            "no .NET runtime has connected: only programs of .NET 5 and later do; 'runtap jvm run -- java …' traces a Java program",
        );
    } else if totals.connections == 0 && status.is_some() {
        output.warning(
            "nobody has connected: a tool that is given a process id finds the process's own socket if that has a TMPDIR; \
             give it the recorder's instead: --diagnostic-port {socket},connect",
        );
    }
    let code = status.map_or(exit::OK, code_of);
    Ok(if code == exit::OK && totals.is_truncated { exit::PARTIAL } else { code })
}
