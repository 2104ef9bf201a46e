//! A port that the user names: what the words mean, who dials in first, and what is to be known of its place.

use std::path::{Path, PathBuf};

use runtap_diag::ports::{Port, Runtime};
use runtap_diag::tool_port::{PortMode, ToolPort, Transport};
use runtap_transport::{Exposure, shell};
use rustix::process::geteuid;

use super::trace::described;
use crate::exit::{self, expected};
use crate::output::Output;

/// What to do at a diagnostic port.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// A runtime listens there.
    Connect(PathBuf),
    /// Runtimes dial in there.
    Listen(PathBuf),
    /// Nothing was said.
    Either(PathBuf),
}

/// A port in every form that dotnet-trace takes.
pub(super) fn place(port: &str) -> anyhow::Result<Place> {
    let hint = "write a path, uds:PATH or file://PATH, with ',connect' or ',listen' behind it";
    let wrong =
        |what: String| expected(exit::USAGE, format!("--diagnostic-port '{port}': {what}"), hint.to_owned());
    let told = ToolPort::parse(port, Transport::NATIVE).map_err(|error| wrong(error.to_string()))?;
    if told.transport != Transport::Socket {
        return Err(wrong("a named pipe is of Windows; here a port is a socket".to_owned()));
    }
    let path = PathBuf::from(told.address);
    Ok(match told.mode {
        // What it is if nothing is said depends on the verb, and on who is there.
        _ if !port.contains(',') => Place::Either(path),
        PortMode::Connect => Place::Connect(path),
        PortMode::Listen => Place::Listen(path),
    })
}

/// What to set for a program that is to dial in.
pub(super) fn variable(port: &Path) -> String {
    format!("{}={}", runtap_record::PORTS, shell::word(port))
}

/// The first runtime that dials in. Who calls this hears signals: the socket must not stay behind.
pub(super) async fn wait_for_one(path: PathBuf, output: Output) -> anyhow::Result<(Port, Runtime)> {
    let mut port = Port::bind(path)?;
    output.note(format_args!("waiting for a program that is started with {}", variable(port.path())));
    tell_exposure(&port, output);
    let visitors = port.visitors();
    let runtime = loop {
        tokio::select! {
            runtime = port.accept() => break runtime,
            visitor = visitors.next() => output.warning(format_args!(
                "{} has dialled in and was disconnected: only a program of your own or of root is taken here; still waiting",
                described(visitor.peer)
            )),
        }
    };
    Ok((port, runtime))
}

/// Programs dial the port as long as they live, and obey whoever listens there: what is to be known of a place that is not
/// the user's alone.
pub(super) fn tell_exposure(port: &Port, output: Output) {
    let path = port.path().display();
    let root = geteuid().is_root();
    let place = if root { "/run/NAME" } else { "$XDG_RUNTIME_DIR" };
    let danger = "whoever listens there commands the programs that dial it, with their rights";
    let advice = format!("put the port into a folder that only you can write to, such as {place}");
    match port.exposure() {
        Exposure::Private => {}
        Exposure::Shared if root => output.warning(format_args!(
            "other users could have taken the name {path} before, and {danger}. So that they do not take it later, the \
             socket stays there when this ends; {advice}"
        )),
        Exposure::Shared => output.note(format_args!(
            "the socket stays at {path} when this ends, or other users could take the name: {danger}; {advice}"
        )),
        Exposure::Open => output.warning(format_args!(
            "other users can take the name {path} at any time, and {danger}: {advice}"
        )),
    }
}
