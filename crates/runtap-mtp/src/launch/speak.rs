//! One connection of an application: frames in, replies out, and what they say.

use std::collections::HashMap;
use std::io::Write as _;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::mpsc::Sender;
use std::sync::{Mutex, PoisonError};

use runtap_mtp_proto::server::{
    self, Application, Config, Event, Handled, Rule, Severity as RuleSeverity, Violation,
};
use runtap_mtp_proto::{Frame, Message, Version, host_type, id};

use super::Happening;
use super::frames::{Broken, Frames};
use super::translate::translate;
use crate::command::Mode;
use crate::event::{AppOption, Artifact, Introduction, ModuleFailure, Severity, TestInfo, TestResult};

/// So many bytes of a frame that breaks a rule are shown.
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
pub(crate) struct Speaker(Mutex<State>);

#[derive(Debug)]
struct State {
    application: Application,
    /// Which attempt each connection is. An application may repeat its failed tests itself, in other processes.
    attempts: HashMap<u64, u32>,
}

impl State {
    /// A test host since MTP 2.4 says which attempt it is. Before, each one is another attempt.
    fn introduce(&mut self, number: u64, introduction: &Introduction) {
        if introduction.host_type == host_type::TEST_HOST {
            let next = u32::try_from(self.attempts.len()).unwrap_or(u32::MAX).saturating_add(1);
            self.attempts.insert(number, introduction.attempt.unwrap_or(next));
        }
    }

    fn handle(&mut self, number: u64, frame: &Frame<'_>) -> (Handled, u32) {
        let handled = self.application.handle(number, frame);
        if let Some(Event::Introduced(peer)) = &handled.event {
            self.introduce(number, &introduction(peer));
        }
        (handled, self.attempts.get(&number).copied().unwrap_or(1))
    }
}

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
        let framework = concat!("runtap ", env!("CARGO_PKG_VERSION"));
        let identity = [&std::process::id().to_string(), architecture, framework, std::env::consts::OS];
        let application = Application::new(Config {
            mode,
            versions: Version::ALL.to_vec(),
            is_ide: true,
            control_pipe: control.to_str().map(str::to_owned),
            identity: identity.map(str::to_owned),
        });
        Self(Mutex::new(State { application, attempts: HashMap::new() }))
    }

    /// Serves a connection until its end.
    pub(crate) fn serve(&self, number: u64, stream: &UnixStream, send: &Sender<Happening>) {
        let failed = |rule, offset, detail, bytes: &[u8]| {
            let violation = Violation { rule, connection: Some(number), offset: Some(offset), detail };
            let _ = send.send(Happening::Heard(vec![failure(&violation, bytes)]));
        };
        let mut frames = Frames::new(stream);
        loop {
            match frames.next(|frame| self.answer(number, frame, stream, send)) {
                Ok(Some(true)) => {}
                Ok(Some(false) | None) | Err(Broken::Gone) => return,
                Err(Broken::Length(bad)) => {
                    return failed(Rule::FrameLength, bad.offset, bad.to_string(), &bad.length.to_le_bytes());
                }
                Err(Broken::Within { offset, bytes }) => {
                    let detail = format!("the connection ended {} bytes into a frame", bytes.len());
                    return failed(Rule::WholeFrames, offset, detail, &bytes);
                }
            }
        }
    }

    /// Answers a request. Returns whether the connection goes on.
    fn answer(
        &self,
        number: u64,
        frame: &Frame<'_>,
        mut stream: &UnixStream,
        send: &Sender<Happening>,
    ) -> bool {
        let (handled, attempt) = self.0.lock().unwrap_or_else(PoisonError::into_inner).handle(number, frame);
        // First, so that the application goes on while its message is looked at.
        let answered = stream.write_all(&handled.reply).is_ok();
        let fatal = handled.is_fatal();
        let heard = hear(handled, frame, attempt);
        let told = heard.is_empty() || send.send(Happening::Heard(heard)).is_ok();
        answered && told && !fatal
    }
}

fn hear(handled: Handled, frame: &Frame<'_>, attempt: u32) -> Vec<Heard> {
    let mut heard = Vec::new();
    for violation in &handled.violations {
        if violation.rule.severity() >= RuleSeverity::Error {
            heard.push(failure(violation, frame.body));
        }
    }
    match handled.event {
        Some(Event::Introduced(peer)) => heard.push(Heard::Introduced(introduction(&peer))),
        Some(Event::Message(message)) => translate(message, &mut heard),
        _ => {}
    }
    for heard in &mut heard {
        if let Heard::Result(result) = heard {
            result.attempt = result.attempt.max(attempt);
        }
    }
    heard
}

fn introduction(peer: &server::Peer) -> Introduction {
    use runtap_mtp_proto::key;

    let get = |key| peer.handshake.get(key).unwrap_or_default().to_owned();
    Introduction {
        pid: get(key::PID).parse().ok(),
        architecture: get(key::ARCHITECTURE),
        framework: get(key::FRAMEWORK),
        host_type: get(key::HOST_TYPE),
        attempt: get(key::ATTEMPT_NUMBER).parse().ok(),
        protocol: peer.version.to_string(),
    }
}

/// For people: which rule, where, and the bytes.
fn failure(violation: &Violation, bytes: &[u8]) -> Heard {
    let fatal = violation.rule.severity() == RuleSeverity::Fatal;
    if violation.rule == Rule::CommonVersion {
        return Heard::Failure { failure: ModuleFailure::Incompatible(violation.to_string()), fatal };
    }
    let shown = bytes.get(..SHOWN.min(bytes.len())).unwrap_or_default();
    let hex: Vec<_> = shown.iter().map(|byte| format!("{byte:02x}")).collect();
    let more = if bytes.len() > SHOWN { format!(" … ({} bytes)", bytes.len()) } else { String::new() };
    let text = format!("{violation}\n  bytes: {}{more}", hex.join(" "));
    Heard::Failure { failure: ModuleFailure::Protocol(text), fatal }
}

/// The frame of a message that we send by ourselves.
pub(crate) fn is_wait_for_control(frame: &Frame<'_>) -> bool {
    frame.id == id::WAIT_FOR_SERVER_CONTROL
}

/// The frame that cancels a session.
pub(crate) fn cancel_session() -> Vec<u8> {
    use runtap_mtp_proto::{ControlKind, ServerControl};

    Message::ServerControl(ServerControl { kind: Some(ControlKind::CANCEL_SESSION) }).encode()
}
