//! The `dotnet test` pipe as a recorded protocol.

use runtap_mtp_proto::render::Rendering;
use runtap_mtp_proto::server::{Mode, Pipe};
use runtap_mtp_proto::{Frame as Wire, Limits, Message, MessageId, Version, is_old_layout};
use runtap_transcript::{Close, Decoded, Direction, Frame, Header, Open, Protocol};
use serde_json::Value;

use super::fields::listed;
use super::summary::summary;

/// The option with the path of a server's socket.
pub(crate) const PIPE_OPTION: &str = "--dotnet-test-pipe";

/// The `dotnet test` pipe. The test application is the client.
#[derive(Debug, Clone, Copy, Default)]
pub struct TestPipe;

impl Protocol for TestPipe {
    const NAME: &'static str = "dotnet-test-pipe";
    /// From the test application ("host") to its server, and back.
    const DIRECTIONS: [&'static str; 2] = ["h2s", "s2h"];
    type Connection = ();

    /// Accepts headers without a protocol too, as in the oldest transcripts.
    fn is_of(header: &Header) -> bool {
        header.more.get("protocol").is_none_or(|name| name == Self::NAME)
    }

    fn decode(&self, (): &mut (), from: Direction, frame: &Frame) -> Vec<Decoded> {
        vec![decoded(from, frame)]
    }

    /// Leaves out the environment, which may contain secrets.
    fn summarize_header(header: &Header) -> String {
        let words = header.cmd.clone().unwrap_or_default();
        let mode = mode_of(words.iter().map(String::as_str));
        let role = header.role.as_deref().unwrap_or("recording");
        format!("{role}, {mode:?}: {}", words.join(" "))
    }

    fn summarize_open(open: &Open) -> String {
        format!("{:?} pipe", pipe_of(open)).to_lowercase()
    }

    fn summarize_close(close: &Close) -> String {
        let leftover = close.more.get("leftover").and_then(Value::as_u64).filter(|bytes| *bytes > 0);
        let mut parts = Vec::new();
        parts.extend(close.side.as_deref().and_then(Self::direction).map(|side| match side {
            Direction::FromClient => "by the application".to_owned(),
            Direction::FromServer => "by the server".to_owned(),
        }));
        parts.extend(leftover.map(|bytes| format!("{bytes} bytes of a truncated frame")));
        parts.join(", ")
    }
}

fn decoded(from: Direction, frame: &Frame) -> Decoded {
    let kind = kind_of(frame).to_owned();
    let bytes = frame.hex.as_deref().unwrap_or_default();
    let decoded = Decoded { kind, bytes: Some(bytes.len() as u64), ..Decoded::default() };
    if decoded.kind != "frame" {
        return Decoded { summary: "in no frame".to_owned(), is_undecoded: true, ..decoded };
    }
    let (wire, size) = match Wire::parse(bytes, Limits::default()) {
        Ok(parsed) => parsed,
        Err(error) => {
            let (error, name) = (Some(error.to_string()), frame.name.clone());
            return Decoded { error, name, is_undecoded: true, ..decoded };
        }
    };
    let rendering = Rendering::new(&wire, Limits::default());
    let (summary, mut error) = match Message::decode(&wire, Limits::default()) {
        Ok(message) => (summary(&message, from), None),
        Err(error) if is_old_layout(&wire) => {
            (format!("as Microsoft.Testing.Platform 1.6 and older write it: {error}"), None)
        }
        Err(error) => (String::new(), Some(error.to_string())),
    };
    if size < bytes.len() {
        let rest = format!("{} bytes follow the frame", bytes.len() - size);
        error = Some(error.map_or_else(|| rest.clone(), |error| format!("{error}; {rest}")));
    }
    Decoded {
        id: Some(wire.id.0.into()),
        name: Some(wire.id.to_string()),
        fields: listed(&rendering),
        summary,
        details: rendering.to_string().lines().map(str::to_owned).collect(),
        is_undecoded: error.is_some(),
        error,
        ..decoded
    }
}

/// Returns the pipe of a recorded connection. Older recordings tell the pipe only by the connection's name.
pub(crate) fn pipe_of(open: &Open) -> Pipe {
    let pipe = open.more.get("pipe").and_then(Value::as_str);
    if pipe.unwrap_or(&open.conn).starts_with("control") { Pipe::Control } else { Pipe::Data }
}

/// Returns the missing `open` line of a connection, whose first message determines the pipe.
pub(crate) fn missing_open(conn: &str, first: Option<MessageId>) -> Open {
    let mut open = Open { conn: conn.to_owned(), ..Open::default() };
    if first == Some(MessageId::WAIT_FOR_SERVER_CONTROL) {
        open.more.insert("pipe".to_owned(), "control".into());
    }
    open
}

/// Returns `frame`, or the kind of bytes that a line has instead.
pub(crate) fn kind_of(frame: &Frame) -> &str {
    frame.more.get("what").and_then(Value::as_str).unwrap_or("frame")
}

/// Returns the mode of an application that is started with these arguments.
pub(crate) fn mode_of<'a>(words: impl IntoIterator<Item = &'a str>) -> Mode {
    let mut mode = Mode::Run;
    for word in words {
        match word {
            "--help" | "-?" | "--?" => return Mode::Help,
            "--list-tests" => mode = Mode::Discover,
            _ => {}
        }
    }
    mode
}

/// Formats the version chosen in the reply to a handshake.
pub(crate) fn version_text(version: Option<Version>) -> String {
    version.map_or_else(|| "rejected".to_owned(), |version| version.to_string())
}
