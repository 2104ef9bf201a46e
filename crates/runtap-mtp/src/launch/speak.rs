//! One connection of an application: bytes in, replies out, and what they say.

use std::io::{self, Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::mpsc::Sender;
use std::sync::{Mutex, MutexGuard, PoisonError};

use runtap_mtp_proto::server::{self, Application, Connection, Event, Output, Peer, Pipe, Settings};
use runtap_mtp_proto::{Handshake, HandshakeKey, Rule, Severity as RuleSeverity, Violation};

use super::Happening;
use super::translate::translate;
use crate::command::Mode;
use crate::event::{AppOption, Artifact, Introduction, ModuleFailure, Severity, TestInfo, TestResult};

/// Of what a connection has sent last, so much is shown with a broken rule.
const SHOWN: usize = 48;

/// What an application says, in the runner's words.
#[derive(Debug)]
pub(crate) enum Heard {
    Introduced(Introduction),
    Discovered(TestInfo),
    Started {
        uid: String,
        name: String,
    },
    Result(TestResult),
    Artifact(Artifact),
    Message(Severity, String),
    Option(AppOption),
    SessionStarted,
    SessionEnded,
    /// Something by which the module has failed. With `fatal`, nothing more is to be expected of it.
    Failure {
        failure: ModuleFailure,
        fatal: bool,
    },
}

/// Speaks with all processes of one application.
#[derive(Debug)]
pub(crate) struct Speaker(Mutex<Application>);

impl Speaker {
    pub(crate) fn new(mode: Mode, control: &Path) -> Self {
        let mode = match mode {
            Mode::Run => server::Mode::Run,
            Mode::Discover => server::Mode::Discover,
            Mode::Help => server::Mode::Help,
        };
        let architecture = match std::env::consts::ARCH {
            "x86_64" => "X64",
            "aarch64" => "Arm64",
            other => other,
        };
        let identity = Handshake::new()
            .with(HandshakeKey::PID, std::process::id().to_string())
            .with(HandshakeKey::ARCHITECTURE, architecture)
            .with(HandshakeKey::FRAMEWORK, concat!("runtap ", env!("CARGO_PKG_VERSION")))
            .with(HandshakeKey::OS, std::env::consts::OS);
        let control_pipe = control.to_str().map(str::to_owned);
        Self(Mutex::new(Application::new(Settings {
            is_ide: true,
            control_pipe,
            identity,
            ..Settings::new(mode)
        })))
    }

    /// Serves a connection until its end.
    pub(crate) fn serve(&self, mut stream: &UnixStream, send: &Sender<Happening>) {
        let mut connection = self.application().connect(Pipe::Data);
        let mut buffer = vec![0; 64 << 10];
        loop {
            let bytes = match stream.read(&mut buffer) {
                Ok(0) => break,
                Ok(count) => buffer.get(..count).unwrap_or_default(),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(_) => break,
            };
            let output = self.application().handle_bytes(&mut connection, bytes);
            // First, so that the application goes on while its message is looked at.
            let answered = output.transmit.is_empty() || stream.write_all(&output.transmit).is_ok();
            let closes = output.close || !answered;
            if !say(output, &connection, bytes, send) || closes {
                return;
            }
        }
        let output = self.application().handle_close(&mut connection);
        say(output, &connection, &[], send);
    }

    /// What is wrong with the whole, once it has ended.
    pub(crate) fn finish(&self, code: Option<i32>) -> Vec<Violation> {
        self.application().handle_exit(code).violations().cloned().collect()
    }

    fn application(&self) -> MutexGuard<'_, Application> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Hands on what was said. Returns whether anybody listens.
fn say(output: Output, connection: &Connection, bytes: &[u8], send: &Sender<Happening>) -> bool {
    let mut heard = Vec::new();
    let fatal = output.close;
    let attempt = connection.peer().and_then(|peer| peer.attempt).unwrap_or(1);
    for event in output.events {
        match event {
            Event::Connected(peer) => heard.push(Heard::Introduced(introduction(&peer))),
            Event::Message(message) => translate(message, attempt, &mut heard),
            Event::Violation(violation) if violation.rule.severity() == RuleSeverity::Error => {
                heard.push(Heard::Failure { failure: failure(&violation, bytes), fatal });
            }
            Event::Rejected(_) => heard.push(Heard::Message(
                Severity::Error,
                "its handshake was not accepted, and it was told so".to_owned(),
            )),
            _ => {}
        }
    }
    heard.is_empty() || send.send(Happening::Heard(heard)).is_ok()
}

fn introduction(peer: &Peer) -> Introduction {
    Introduction {
        pid: peer.handshake.pid(),
        architecture: peer.handshake.architecture().unwrap_or_default().to_owned(),
        framework: peer.handshake.framework().unwrap_or_default().to_owned(),
        host_type: peer.host_type.as_str().to_owned(),
        attempt: peer.attempt,
        protocol: peer.version.to_string(),
    }
}

/// For people: which rule, what there was, and the bytes.
pub(crate) fn failure(violation: &Violation, bytes: &[u8]) -> ModuleFailure {
    let mut text = format!("{}: {} ({})", violation.rule.id(), violation.rule.summary(), violation.detail);
    if matches!(violation.rule, Rule::NoCommonVersion | Rule::OldPlatform) {
        return ModuleFailure::Incompatible(text);
    }
    if !bytes.is_empty() {
        let shown = bytes.get(..SHOWN.min(bytes.len())).unwrap_or_default();
        let hex: Vec<_> = shown.iter().map(|byte| format!("{byte:02x}")).collect();
        text.extend(["\n  bytes: ", &hex.join(" ")]);
        if bytes.len() > SHOWN {
            text.extend([" … (", &bytes.len().to_string(), " bytes)"]);
        }
    }
    ModuleFailure::Protocol(text)
}
