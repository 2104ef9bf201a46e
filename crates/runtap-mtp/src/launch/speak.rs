//! One connection of an application: bytes in, replies out, and what they say.

use std::io::{self, Read as _, Write as _};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use runtap_mtp_proto::server::{Application, Connection, Event, Mode, Output, Peer, Pipe};
use runtap_mtp_proto::{MessageId, Rule, Severity as RuleSeverity, Violation};

use runtap_transport::LocalStream;

use super::Happening;
use super::gate::Gate;
use super::sent::Sent;
use super::translate::translate;
use crate::event::{
    AppOption, Artifact, Introduction, ModuleFailure, ModuleId, Severity, TestInfo, TestResult,
};
use crate::identity::server_settings;
use crate::run::ArtifactKeeper;

/// Of what a message says, so much is handed on at a time.
const BATCH: usize = 256;

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
    /// It has connected, and not introduced itself yet.
    Connected,
    /// It was rejected, and why.
    Rejected,
    /// A rule that is broken, and by which the module has not failed.
    Warning(Rule, String),
    /// Something by which the module has failed.
    Failure(ModuleFailure),
    /// The connection is of no use any more.
    Over {
        /// It was closed by us: nothing sensible can come.
        refused: bool,
    },
}

/// The frame of the void reply.
const VOID: [u8; 8] = [4, 0, 0, 0, 0, 0, 0, 0];

/// Speaks with all processes of one application.
#[derive(Debug)]
pub(crate) struct Speaker {
    application: Mutex<Application>,
    /// Held from before a message is answered until it was handed on: what another process says after that answer comes
    /// after it.
    order: Mutex<()>,
    /// Keeps the files of this module.
    keeper: Option<(Arc<dyn ArtifactKeeper>, ModuleId)>,
}

impl Speaker {
    pub(crate) fn new(mode: Mode, control: Option<&Path>) -> Self {
        let settings = server_settings(mode, control);
        Self { application: Mutex::new(Application::new(settings)), order: Mutex::default(), keeper: None }
    }

    /// Has files kept before the application goes on.
    pub(crate) fn keeping(self, keeper: Option<Arc<dyn ArtifactKeeper>>, module: ModuleId) -> Self {
        Self { keeper: keeper.map(|keeper| (keeper, module)), ..self }
    }

    fn keep(&self, heard: Heard) -> Heard {
        match (heard, &self.keeper) {
            (Heard::Artifact(mut artifact), Some((keeper, module))) => {
                artifact.path = keeper.keep(*module, &artifact.path).unwrap_or(artifact.path);
                Heard::Artifact(artifact)
            }
            (heard, _) => heard,
        }
    }

    /// Whether these bytes, which are one whole frame, name files that are to be kept.
    fn names_files(&self, frame: &[u8]) -> bool {
        let id = frame.get(4..8).and_then(|id| id.try_into().ok()).map(i32::from_le_bytes);
        self.keeper.is_some() && id == Some(MessageId::FILE_ARTIFACTS.0)
    }

    /// Serves a connection until its end.
    pub(crate) fn serve(&self, mut stream: &LocalStream, gate: &Gate) {
        let mut connection = self.application().connect(Pipe::Data);
        let mut sent = Sent::default();
        let mut buffer = vec![0; 64 << 10];
        if !gate.say(Happening::Heard(vec![Heard::Connected])) {
            return;
        }
        loop {
            let bytes = match stream.read(&mut buffer) {
                Ok(0) => break,
                Ok(count) => buffer.get(..count).unwrap_or_default(),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(_) => break,
            };
            sent.push(bytes);
            let order = self.order.lock().unwrap_or_else(PoisonError::into_inner);
            // First, so that the application goes on while its message is looked at.
            let early = connection.is_void_due(bytes) && !self.names_files(bytes);
            let mut answered = !early || stream.write_all(&VOID).is_ok();
            let mut output = self.application().handle_bytes(&mut connection, bytes);
            let (reply, refused) = (std::mem::take(&mut output.transmit), output.close);
            // Who says too much waits here.
            let listened = self.say(output, &connection, &sent, gate);
            drop(order);
            if !early && !reply.is_empty() {
                answered = stream.write_all(&reply).is_ok();
            }
            if refused {
                gate.say(Happening::Heard(vec![Heard::Over { refused }]));
            }
            if !listened || refused {
                return;
            }
            if !answered {
                break;
            }
        }
        let output = self.application().handle_close(&mut connection);
        let cut = !output.events.is_empty();
        self.say(output, &connection, &sent, gate);
        if cut {
            gate.say(Happening::Heard(vec![Heard::Over { refused: false }]));
        }
    }

    /// What is wrong with the whole, once it has ended.
    pub(crate) fn finish(&self, code: Option<i32>) -> Vec<Violation> {
        self.application().handle_exit(code).violations().cloned().collect()
    }

    /// Bytes of the largest frame that is accepted, without its length word.
    pub(crate) fn largest_frame(&self) -> u32 {
        self.application().settings().limits.frame
    }

    pub(crate) fn application(&self) -> MutexGuard<'_, Application> {
        self.application.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Hands on what was said. Returns whether anybody listens.
    pub(crate) fn say(&self, output: Output, connection: &Connection, sent: &Sent, gate: &Gate) -> bool {
        let (mut heard, mut listened) = (Vec::new(), true);
        let attempt = connection.peer().and_then(|peer| peer.attempt).unwrap_or(1);
        let mut hear = |one: Heard| {
            heard.push(self.keep(one));
            if heard.len() >= BATCH {
                listened &= gate.say(Happening::Heard(std::mem::take(&mut heard)));
            }
        };
        for event in output.events {
            match event {
                Event::Connected(peer) => hear(Heard::Introduced(introduction(&peer))),
                Event::Message(message) => translate(message, attempt, &mut hear),
                Event::Violation(violation) if violation.rule.severity() == RuleSeverity::Error => {
                    let bytes = violation.offset.and_then(|offset| sent.around(offset));
                    hear(Heard::Failure(failure(&violation, bytes)));
                }
                Event::Violation(violation) => hear(Heard::Warning(violation.rule, violation.to_string())),
                Event::Rejected(_) => hear(Heard::Rejected),
                _ => {}
            }
        }
        listened && (heard.is_empty() || gate.say(Happening::Heard(heard)))
    }
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
pub(crate) fn failure(violation: &Violation, bytes: Option<String>) -> ModuleFailure {
    let mut text = format!("{}: {}\n{}", violation.rule.id(), violation.rule.summary(), violation.detail);
    if matches!(violation.rule, Rule::NoCommonVersion | Rule::OldPlatform) {
        return ModuleFailure::Incompatible(text);
    }
    if let Some(bytes) = bytes {
        text.extend(["\n", &bytes]);
    }
    ModuleFailure::Protocol(text)
}
