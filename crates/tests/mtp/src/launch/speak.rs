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
use crate::budget::{Budget, SMALL, Share};
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
    /// The runner's attempt.
    attempt: u32,
    /// Keeps the files of this module.
    keeper: Option<(Arc<dyn ArtifactKeeper>, ModuleId)>,
    /// For messages that are not complete.
    budget: Budget,
}

impl Speaker {
    pub(crate) fn new(mode: Mode, control: Option<&Path>, attempt: u32) -> Self {
        let settings = server_settings(mode, control);
        let application = Mutex::new(Application::new(settings));
        Self { application, order: Mutex::default(), attempt, keeper: None, budget: Budget::default() }
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
        let mut share = None;
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
            let handling = self.budget.handling();
            // First, so that the application goes on while its message is looked at; but not before other connections go on.
            let early = connection.is_void_due(bytes) && !self.names_files(bytes) && send_now(stream, &VOID);
            let mut output = self.application().handle_bytes(&mut connection, bytes);
            let (reply, refused) = (std::mem::take(&mut output.transmit), output.close);
            // Who says too much waits here.
            let listened = self.say(output, &connection, &sent, gate);
            drop((handling, order));
            let answered = early || reply.is_empty() || stream.write_all(&reply).is_ok();
            if refused {
                gate.say(Happening::Heard(vec![Heard::Over { refused }]));
            }
            if !listened || refused {
                return;
            }
            if !answered {
                break;
            }
            if !self.has_memory(connection.unfinished(), &mut share) {
                gate.say(Happening::Heard(self.exhausted()));
                return;
            }
        }
        let output = self.application().handle_close(&mut connection);
        let cut = !output.events.is_empty();
        self.say(output, &connection, &sent, gate);
        if cut {
            gate.say(Happening::Heard(vec![Heard::Over { refused: false }]));
        }
    }

    /// Waits for memory for the rest of a message, given by its offset and size, if it is a large one. `share` is what the
    /// connection has for the message at an offset. Returns whether there is memory.
    fn has_memory(&self, unfinished: Option<(u64, usize)>, share: &mut Option<(u64, Share)>) -> bool {
        let large = unfinished.filter(|(_, size)| *size > SMALL);
        let Some((offset, size)) = large else {
            *share = None;
            return true;
        };
        if share.as_ref().is_none_or(|(of, _)| *of != offset) {
            // The message before it is complete: nothing is kept while this one waits.
            *share = None;
            *share = self.budget.ask(size).wait().map(|share| (offset, share));
        }
        share.is_some()
    }

    /// What is heard if a connection has to wait for memory for too long.
    pub(super) fn exhausted(&self) -> Vec<Heard> {
        let failure = ModuleFailure::Unresponsive(self.budget.exhausted());
        vec![Heard::Failure(failure), Heard::Over { refused: true }]
    }

    /// The memory for messages that are not complete.
    pub(crate) fn budget(&self) -> &Budget {
        &self.budget
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
        // Those of the application itself, if it counts them, go beyond the runner's.
        let own = connection.peer().and_then(|peer| peer.attempt);
        let attempt = own.map_or(self.attempt, |own| own.max(self.attempt));
        let mut hear = |one: Heard| {
            heard.push(self.keep(one));
            if heard.len() >= BATCH {
                listened &= gate.say(Happening::Heard(std::mem::take(&mut heard)));
            }
        };
        for event in output.events {
            match event {
                Event::Connected(peer) => hear(Heard::Introduced(introduction(&peer))),
                Event::Message(message) => translate(message, attempt, own, &mut hear),
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

/// Sends a few bytes if the other side has room for all of them. One that reads no replies holds up itself only.
#[cfg(unix)]
fn send_now(stream: &LocalStream, bytes: &[u8]) -> bool {
    use rustix::net::{SendFlags, send};

    // A socket takes so few bytes together or not at all.
    send(stream, bytes, SendFlags::DONTWAIT).is_ok_and(|sent| sent == bytes.len())
}

/// Pipes wait for room.
#[cfg(windows)]
fn send_now(mut stream: &LocalStream, bytes: &[u8]) -> bool {
    stream.write_all(bytes).is_ok()
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{Receiver, channel};
    use std::thread::{self, JoinHandle};
    use std::time::Duration;

    use super::*;

    const SIZE: usize = 1 << 20;

    fn speaker(patience: Duration) -> Arc<Speaker> {
        let speaker = Speaker::new(Mode::Run, None, 1);
        Arc::new(Speaker { budget: Budget::new(2 * (SIZE + 4), patience), ..speaker })
    }

    struct Peer {
        stream: LocalStream,
        serving: JoinHandle<()>,
        said: Receiver<Happening>,
    }

    /// A connection that has begun a message, whose other bytes are to come.
    fn peer(speaker: &Arc<Speaker>) -> Peer {
        let (mut stream, served) = LocalStream::pair().unwrap();
        let ((send, said), speaker) = (channel(), Arc::clone(speaker));
        let serving = thread::spawn(move || speaker.serve(&served, &Gate::new(send)));
        stream.write_all(&u32::try_from(SIZE).unwrap().to_le_bytes()).unwrap();
        Peer { stream, serving, said }
    }

    fn until(is_so: impl Fn() -> bool) {
        while !is_so() {
            thread::yield_now();
        }
    }

    #[test]
    fn large_messages_wait_until_there_is_memory_for_all_of_their_bytes() {
        let speaker = speaker(Duration::from_mins(10));
        let mut peers: Vec<_> = (0..6).map(|_| peer(&speaker)).collect();
        until(|| speaker.budget.used() == (2 * (SIZE + 4), 4));
        // A small message does not wait.
        let (mut small, served) = LocalStream::pair().unwrap();
        let (send, said) = channel();
        let own = Arc::clone(&speaker);
        let serving = thread::spawn(move || own.serve(&served, &Gate::new(send)));
        small.write_all(&VOID).unwrap();
        serving.join().unwrap();
        assert!(said.try_iter().any(|it| matches!(it, Happening::Heard(all) if is_failure(&all))));
        // Each is complete in the end, in whatever order they are written.
        let writing: Vec<_> = peers
            .drain(..)
            .rev()
            .map(|mut peer| {
                thread::spawn(move || {
                    peer.stream.write_all(&vec![0; SIZE]).unwrap();
                    peer.serving.join().unwrap();
                })
            })
            .collect();
        while !writing.iter().all(JoinHandle::is_finished) {
            assert!(speaker.budget.used().0 <= 2 * (SIZE + 4));
            thread::yield_now();
        }
        for thread in writing {
            thread.join().unwrap();
        }
        assert_eq!(speaker.budget.used(), (0, 0));
    }

    fn is_failure(all: &[Heard]) -> bool {
        all.iter().any(|heard| matches!(heard, Heard::Failure(_)))
    }

    #[test]
    fn messages_that_are_never_complete_end_the_application() {
        let speaker = speaker(Duration::from_millis(50));
        let mut peers: Vec<_> = (0..3).map(|_| peer(&speaker)).collect();
        until(|| peers.iter().any(|peer| peer.serving.is_finished()));
        let place = peers.iter().position(|peer| peer.serving.is_finished()).unwrap();
        let said: Vec<_> = peers.remove(place).said.try_iter().collect();
        let [.., Happening::Heard(last)] = &said[..] else { panic!("{said:?}") };
        let [Heard::Failure(ModuleFailure::Unresponsive(text)), Heard::Over { refused: true }] = &last[..]
        else {
            panic!("{last:?}")
        };
        assert!(text.contains("take 2 MiB, which is the limit"), "{text}");
        assert_eq!(speaker.budget.used(), (2 * (SIZE + 4), 0));
        for peer in peers {
            drop(peer.stream);
            peer.serving.join().unwrap();
        }
        assert_eq!(speaker.budget.used(), (0, 0));
    }
}
