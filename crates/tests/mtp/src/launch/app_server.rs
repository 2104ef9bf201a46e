//! The server side of one application: reads bytes, writes replies, and reports messages.

use std::io::{self, Read as _, Write as _};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use runtap_mtp_proto::server::{Application, Connection, Event, Mode, Output, Peer, Pipe};
use runtap_mtp_proto::{MessageId, Rule, Severity as RuleSeverity, Violation};

use runtap_transport::LocalStream;

use super::Signal;
use super::backpressure::BackpressureQueue;
use super::recent_bytes::RecentBytes;
use super::translate::translate;
use crate::budget::{Budget, SMALL_MESSAGE_BYTES, Share};
use crate::event::{AppOption, Artifact, Introduction, Level, ModuleFailure, ModuleId, TestInfo, TestResult};
use crate::identity::server_settings;
use crate::run::ArtifactKeeper;

/// The number of events that are sent at a time.
const BATCH_SIZE: usize = 256;

/// A message of an application as an event of the runner.
#[derive(Debug)]
pub(crate) enum AppEvent {
    Introduced(Introduction),
    Discovered(TestInfo),
    Started {
        uid: String,
        name: String,
    },
    Result(TestResult),
    Artifact(Artifact),
    Message(Level, String),
    Option(AppOption),
    SessionStarted,
    SessionEnded,
    /// A process connected, and has sent no handshake yet.
    Connected,
    /// The handshake was rejected.
    Rejected,
    /// A violation of a rule that does not make the module fail.
    Warning(Rule, String),
    /// A failure of the module.
    Failure(ModuleFailure),
    /// The connection cannot be used any more.
    Disconnected {
        /// Whether runtap closed the connection, because further bytes would be invalid.
        rejected: bool,
    },
}

/// The frame of the void reply.
const VOID: [u8; 8] = [4, 0, 0, 0, 0, 0, 0, 0];

/// The server that communicates with all processes of one application.
#[derive(Debug)]
pub(crate) struct AppServer {
    application: Mutex<Application>,
    /// Held until the events of an answered message were sent, so that events of later messages of other processes
    /// follow them.
    order: Mutex<()>,
    /// The runner's attempt.
    attempt: u32,
    /// Keeps copies of the files of this module.
    keeper: Option<(Arc<dyn ArtifactKeeper>, ModuleId)>,
    /// The memory budget of incomplete messages.
    budget: Budget,
}

impl AppServer {
    pub(crate) fn new(mode: Mode, control: Option<&Path>, attempt: u32) -> Self {
        let settings = server_settings(mode, control);
        let application = Mutex::new(Application::new(settings));
        Self { application, order: Mutex::default(), attempt, keeper: None, budget: Budget::default() }
    }

    /// Sets a keeper that copies files before the application continues.
    pub(crate) fn with_keeper(self, keeper: Option<Arc<dyn ArtifactKeeper>>, module: ModuleId) -> Self {
        Self { keeper: keeper.map(|keeper| (keeper, module)), ..self }
    }

    /// Replaces the path of an artifact by that of its copy, if a keeper copies it.
    fn with_kept_file(&self, event: AppEvent) -> AppEvent {
        match (event, &self.keeper) {
            (AppEvent::Artifact(mut artifact), Some((keeper, module))) => {
                artifact.path = keeper.keep(*module, &artifact.path).unwrap_or(artifact.path);
                AppEvent::Artifact(artifact)
            }
            (event, _) => event,
        }
    }

    /// Returns whether these bytes, which are one complete frame, name files that must be kept.
    fn names_files(&self, frame: &[u8]) -> bool {
        let id = frame.get(4..8).and_then(|id| id.try_into().ok()).map(i32::from_le_bytes);
        self.keeper.is_some() && id == Some(MessageId::FILE_ARTIFACTS.0)
    }

    /// Serves a connection until its end.
    pub(crate) fn serve(&self, mut stream: &LocalStream, queue: &BackpressureQueue) {
        let mut connection = self.application().connect(Pipe::Data);
        let mut sent = RecentBytes::default();
        let mut buffer = vec![0; 64 << 10];
        let mut share = None;
        if !queue.send(Signal::Messages(vec![AppEvent::Connected])) {
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
            // Reply early, so that the application continues while its message is handled, but not before other
            // connections continue.
            let early = connection.is_void_due(bytes) && !self.names_files(bytes) && send_now(stream, &VOID);
            let mut output = self.application().handle_bytes(&mut connection, bytes);
            let (reply, rejected) = (std::mem::take(&mut output.transmit), output.close);
            // Blocks while the queue is full.
            let is_received = self.send_events(output, &connection, &sent, queue);
            drop((handling, order));
            let answered = early || reply.is_empty() || stream.write_all(&reply).is_ok();
            if rejected {
                queue.send(Signal::Messages(vec![AppEvent::Disconnected { rejected }]));
            }
            if !is_received || rejected {
                return;
            }
            if !answered {
                break;
            }
            if !self.has_memory(connection.unfinished(), &mut share) {
                queue.send(Signal::Messages(self.exhausted()));
                return;
            }
        }
        let output = self.application().handle_close(&mut connection);
        let truncated = !output.events.is_empty();
        self.send_events(output, &connection, &sent, queue);
        if truncated {
            queue.send(Signal::Messages(vec![AppEvent::Disconnected { rejected: false }]));
        }
    }

    /// Waits for memory for the rest of a large message, given by its offset and size. `share` is the share of the
    /// message at an offset. Returns whether there is memory.
    fn has_memory(&self, unfinished: Option<(u64, usize)>, share: &mut Option<(u64, Share)>) -> bool {
        let large = unfinished.filter(|(_, size)| *size > SMALL_MESSAGE_BYTES);
        let Some((offset, size)) = large else {
            *share = None;
            return true;
        };
        if share.as_ref().is_none_or(|(of, _)| *of != offset) {
            // The previous message is complete: release its share while this one waits.
            *share = None;
            *share = self.budget.request(size).wait().map(|share| (offset, share));
        }
        share.is_some()
    }

    /// Returns the events of a connection that timed out while waiting for memory.
    pub(super) fn exhausted(&self) -> Vec<AppEvent> {
        let failure = ModuleFailure::Unresponsive(self.budget.exhausted());
        vec![AppEvent::Failure(failure), AppEvent::Disconnected { rejected: true }]
    }

    /// Returns the memory budget of incomplete messages.
    pub(crate) fn budget(&self) -> &Budget {
        &self.budget
    }

    /// Returns the violations of the application as a whole, after its exit.
    pub(crate) fn finish(&self, code: Option<i32>) -> Vec<Violation> {
        self.application().handle_exit(code).violations().cloned().collect()
    }

    /// Returns the maximum size of a frame without its length word, in bytes.
    pub(crate) fn largest_frame(&self) -> u32 {
        self.application().settings().limits.frame
    }

    pub(crate) fn application(&self) -> MutexGuard<'_, Application> {
        self.application.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sends the events of an output. Returns whether there is a receiver.
    pub(crate) fn send_events(
        &self,
        output: Output,
        connection: &Connection,
        sent: &RecentBytes,
        queue: &BackpressureQueue,
    ) -> bool {
        let (mut batch, mut is_received) = (Vec::new(), true);
        // Attempts that the application counts take precedence over the runner's.
        let host_attempt = connection.peer().and_then(|peer| peer.attempt);
        let attempt = host_attempt.map_or(self.attempt, |number| number.max(self.attempt));
        let mut emit = |event: AppEvent| {
            batch.push(self.with_kept_file(event));
            if batch.len() >= BATCH_SIZE {
                is_received &= queue.send(Signal::Messages(std::mem::take(&mut batch)));
            }
        };
        for event in output.events {
            match event {
                Event::Connected(peer) => emit(AppEvent::Introduced(introduction(&peer))),
                Event::Message(message) => translate(message, attempt, host_attempt, &mut emit),
                Event::Violation(violation) if violation.rule.severity() == RuleSeverity::Error => {
                    let bytes = violation.offset.and_then(|offset| sent.around(offset));
                    emit(AppEvent::Failure(failure(&violation, bytes)));
                }
                Event::Violation(violation) => emit(AppEvent::Warning(violation.rule, violation.to_string())),
                Event::Rejected(_) => emit(AppEvent::Rejected),
                _ => {}
            }
        }
        is_received && (batch.is_empty() || queue.send(Signal::Messages(batch)))
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

/// Converts a violation to a failure with a readable text: the rule, the details, and the bytes.
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

/// Sends a few bytes without blocking. A process that reads no replies must only delay itself.
#[cfg(unix)]
fn send_now(stream: &LocalStream, bytes: &[u8]) -> bool {
    use rustix::net::{SendFlags, send};

    // A socket accepts so few bytes completely or not at all.
    send(stream, bytes, SendFlags::DONTWAIT).is_ok_and(|sent| sent == bytes.len())
}

/// Pipes may block.
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

    fn server(patience: Duration) -> Arc<AppServer> {
        let server = AppServer::new(Mode::Run, None, 1);
        Arc::new(AppServer { budget: Budget::new(2 * (SIZE + 4), patience), ..server })
    }

    struct Peer {
        stream: LocalStream,
        serving: JoinHandle<()>,
        said: Receiver<Signal>,
    }

    /// Opens a connection and sends the start of a message.
    fn peer(server: &Arc<AppServer>) -> Peer {
        let (mut stream, served) = LocalStream::pair().unwrap();
        let ((send, said), server) = (channel(), Arc::clone(server));
        let serving = thread::spawn(move || server.serve(&served, &BackpressureQueue::new(send)));
        stream.write_all(&u32::try_from(SIZE).unwrap().to_le_bytes()).unwrap();
        Peer { stream, serving, said }
    }

    fn until(is_so: impl Fn() -> bool) {
        while !is_so() {
            thread::yield_now();
        }
    }

    #[test]
    fn large_messages_wait_for_memory_for_all_of_their_bytes() {
        let server = server(Duration::from_mins(10));
        let mut peers: Vec<_> = (0..6).map(|_| peer(&server)).collect();
        until(|| server.budget.used() == (2 * (SIZE + 4), 4));
        // A small message does not wait.
        let (mut small, served) = LocalStream::pair().unwrap();
        let (send, said) = channel();
        let own = Arc::clone(&server);
        let serving = thread::spawn(move || own.serve(&served, &BackpressureQueue::new(send)));
        small.write_all(&VOID).unwrap();
        serving.join().unwrap();
        assert!(said.try_iter().any(|it| matches!(it, Signal::Messages(all) if is_failure(&all))));
        // All messages are completed, regardless of the order of writing.
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
            assert!(server.budget.used().0 <= 2 * (SIZE + 4));
            thread::yield_now();
        }
        for thread in writing {
            thread.join().unwrap();
        }
        assert_eq!(server.budget.used(), (0, 0));
    }

    fn is_failure(all: &[AppEvent]) -> bool {
        all.iter().any(|event| matches!(event, AppEvent::Failure(_)))
    }

    #[test]
    fn messages_that_are_never_completed_stop_the_application() {
        let server = server(Duration::from_millis(50));
        let mut peers: Vec<_> = (0..3).map(|_| peer(&server)).collect();
        until(|| peers.iter().any(|peer| peer.serving.is_finished()));
        let place = peers.iter().position(|peer| peer.serving.is_finished()).unwrap();
        let said: Vec<_> = peers.remove(place).said.try_iter().collect();
        let [.., Signal::Messages(last)] = &said[..] else { panic!("{said:?}") };
        let [AppEvent::Failure(ModuleFailure::Unresponsive(text)), AppEvent::Disconnected { rejected: true }] =
            &last[..]
        else {
            panic!("{last:?}")
        };
        assert!(text.contains("exceed the limit of 2 MiB"), "{text}");
        assert_eq!(server.budget.used(), (2 * (SIZE + 4), 0));
        for peer in peers {
            drop(peer.stream);
            peer.serving.join().unwrap();
        }
        assert_eq!(server.budget.used(), (0, 0));
    }
}
