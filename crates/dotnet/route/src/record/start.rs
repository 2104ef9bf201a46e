//! The beginning of a recording: its header, and the environment and arguments of its command.

use std::ffi::{OsStr, OsString};
use std::path::Path;

use runtap_transport::naming::{PORTS, port_address};
use serde_json::Value;

use super::{Command, Header, RecorderSocket, Way};

/// Creates the header of a recording by this program. `process` is the id of the target in its own namespace and its start
/// time.
pub fn recorder_header(
    command: &[OsString],
    way: &Way,
    place: &RecorderSocket,
    process: Option<(u32, u64)>,
    started: String,
    recorder: &str,
) -> Header {
    let mut header = Header { role: Some("recorder".to_owned()), ..Header::default() };
    let words = command.iter().map(|word| word.to_string_lossy().into_owned());
    header.cmd = Some(words.collect()).filter(|words: &Vec<String>| !words.is_empty());
    let mut add = |key: &str, value: Value| {
        header.more.insert(key.to_owned(), value);
    };
    add("started", started.into());
    add("recorder", recorder.into());
    add("listen", place.path().display().to_string().into());
    let (key, endpoint) = match way {
        Way::ToRuntime(endpoint) => ("runtime", endpoint),
        Way::ToTool(endpoint) => ("tool", endpoint),
    };
    add(key, endpoint.to_string().into());
    if let Some((pid, start)) = process {
        add("process_id", pid.into());
        add("start_time", start.into());
    }
    header
}

/// Replaces `{socket}` in the words of a command by the path of the socket.
fn with_socket(words: &[OsString], socket: &Path) -> Vec<OsString> {
    let socket = socket.to_string_lossy();
    let replaced = |word: &OsStr| word.to_str().map(|word| OsString::from(word.replace("{socket}", &socket)));
    words.iter().map(|word| replaced(word).unwrap_or_else(|| word.clone())).collect()
}

impl Command {
    /// Creates a command with the environment of this process.
    pub fn new(words: Vec<OsString>, stdout_on_stderr: bool) -> Self {
        Self { words, environment: Vec::new(), stdout_on_stderr }
    }

    /// Creates a command that connects to the recorder. `ports` are the ports to which a runtime connects already; without
    /// `ports`, the command is a tool, which finds the socket in its temporary directory.
    pub fn connecting_to(
        place: &RecorderSocket,
        words: &[OsString],
        ports: Option<OsString>,
        stdout_on_stderr: bool,
    ) -> Self {
        let mut environment = Vec::new();
        if let Some(mut ports) = ports {
            if !ports.is_empty() {
                ports.push(";");
            }
            ports.push(port_address(place.path()));
            ports.push(",suspend,connect");
            environment.push((OsString::from(PORTS), ports));
        } else if let Some(directory) = place.directory() {
            environment.push((OsString::from("TMPDIR"), directory.as_os_str().to_owned()));
        }
        Self { words: with_socket(words, place.path()), environment, stdout_on_stderr }
    }
}
