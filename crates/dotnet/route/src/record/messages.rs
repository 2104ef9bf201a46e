//! Messages about a recording.

use runtap_model::Message;
use runtap_model::units::Things;
use runtap_os::shell;
use runtap_transport::naming::{PORTS, port_address};

use super::{Event, RecorderSocket, Way};

/// Returns how tools or runtimes connect to the recorder. `label` and `pid` describe the process to which the recorder
/// connects; the id is that in the namespace of the process.
pub fn instructions(way: &Way, label: &str, pid: Option<u32>, socket: &RecorderSocket) -> Vec<Message> {
    if let Way::ToTool(_) = way {
        let path = shell::word(port_address(socket.path()));
        return vec![Message::Note(format!("Waiting for programs that are started with {PORTS}={path}"))];
    }
    let path = shell::word(socket.path());
    let by_socket = format!("Connect tools to {label} with: --diagnostic-port {path},connect");
    let by_pid = pid.zip(socket.directory());
    let by_pid = by_pid.map(|(pid, folder)| format!("or: TMPDIR={} TOOL -p {pid}", shell::word(folder)));
    let stop = "Ctrl-C stops the recording".to_owned();
    [Some(by_socket), by_pid, Some(stop)].into_iter().flatten().map(Message::Note).collect()
}

/// Returns the warning that nothing has connected while the command ran; `is_program` is whether the command is the program
/// and not a tool.
pub fn no_connections(is_program: bool) -> Message {
    let text = if is_program {
        "no .NET runtime has connected: only programs of .NET 5 and later do; 'runtap jvm run -- java …' traces a Java program"
    } else {
        "no tool has connected: with a process id, a tool uses the process's own socket if the process has a TMPDIR; \
         pass the recorder's socket to the tool instead: --diagnostic-port {socket},connect"
    };
    Message::Warning(text.to_owned())
}

/// Returns the message for an event.
pub fn event(event: &Event<'_>) -> Option<Message> {
    Some(match event {
        Event::Opened { conn, peer } => {
            let peer =
                peer.pid.map_or_else(|| "an unknown process".to_owned(), |pid| format!("process {pid}"));
            Message::Detail(format!("{conn}: {peer} connected"))
        }
        Event::Closing { open } => {
            let open = Things(*open as u64, "open connection");
            Message::Note(format!("waiting for {open} to close; Ctrl-C again closes all connections"))
        }
        Event::Unreachable { conn, error } => Message::Warning(format!("{conn}: {error}")),
        Event::NotWritten(error) => Message::Warning(format!(
            "the transcript ends here, but connections continue to be forwarded: {error}"
        )),
        Event::Closed { conn, stream } => {
            let stream = stream.as_ref().map(|path| format!("; its stream is in {}", path.display()));
            Message::Detail(format!("{conn}: closed{}", stream.unwrap_or_default()))
        }
    })
}
