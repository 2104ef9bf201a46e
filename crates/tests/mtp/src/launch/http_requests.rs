//! Requests of the HTTP transport: assignment to processes, and responses.
//!
//! A process usually sends all requests on one connection, but an HTTP client may close an idle connection and open
//! another one. A process is identified by the connection of its handshake, and on a new connection by the `InstanceId`
//! of its messages. Session events have no `InstanceId`; they count for the whole application, and are assigned to the
//! last test host.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use runtap_mtp_proto::server::{Connection, Pipe};
use runtap_mtp_proto::{Frame, HostType, Message, MessageId};

use super::Signal;
use super::app_server::{AppEvent, AppServer};
use super::backpressure::BackpressureQueue;
use super::recent_bytes::RecentBytes;
use crate::http::Answer;

/// The maximum number of handshakes of one application.
const MAX_PROCESSES: usize = 4096;

/// Handles the requests of one application.
#[derive(Debug)]
pub(crate) struct HttpRequests {
    server: Arc<AppServer>,
    queue: BackpressureQueue,
    processes: Mutex<Processes>,
}

/// The processes of the application that have sent requests.
#[derive(Debug, Default)]
struct Processes {
    all: Vec<Connection>,
    /// The index of the process that uses an HTTP connection, by the number of the connection.
    using: HashMap<u64, usize>,
}

impl HttpRequests {
    pub(crate) fn new(server: Arc<AppServer>, queue: BackpressureQueue) -> Self {
        Self { server, queue, processes: Mutex::default() }
    }
}

impl Answer for HttpRequests {
    fn answer(&self, connection: u64, frame: &[u8]) -> Option<Vec<u8>> {
        let mut processes = self.processes.lock().unwrap_or_else(PoisonError::into_inner);
        let Processes { all, using } = &mut *processes;
        let place = using.get(&connection).copied().or_else(|| self.sender(frame, all)).unwrap_or(all.len());
        if place == all.len() {
            if place == MAX_PROCESSES {
                return None;
            }
            all.push(self.server.application().connect(Pipe::Data));
        }
        using.insert(connection, place);
        let process = all.get_mut(place)?;
        let mut output = self.server.application().handle_bytes(process, frame);
        if output.transmit.is_empty() && !output.close {
            // The rest of the frame can no longer arrive.
            let truncated = self.server.application().handle_close(process);
            output.events.extend(truncated.events);
            output.close = true;
        }
        let reply = std::mem::take(&mut output.transmit);
        // There is no receiver if the application was given up; its requests need no answer then.
        let mut sent = RecentBytes::default();
        sent.push(frame);
        let rejected = output.close;
        let is_received = self.server.send_events(output, process, &sent, &self.queue);
        if rejected {
            self.queue.send(Signal::Messages(vec![AppEvent::Disconnected { rejected }]));
        }
        (is_received && !reply.is_empty()).then_some(reply)
    }

    fn exhausted(&self) {
        self.queue.send(Signal::Messages(self.server.exhausted()));
    }

    fn closed(&self, connection: u64) {
        self.processes.lock().unwrap_or_else(PoisonError::into_inner).using.remove(&connection);
    }
}

impl HttpRequests {
    /// Returns the process that sent a message on a new connection, or `None` if the process is unknown.
    fn sender(&self, bytes: &[u8], all: &[Connection]) -> Option<usize> {
        let limits = self.server.application().settings().limits;
        let (frame, _) = Frame::parse(bytes, limits).ok()?;
        if frame.id == MessageId::HANDSHAKE {
            return None;
        }
        let message = Message::decode(&frame, limits).ok()?;
        let peers = || all.iter().map(Connection::peer);
        match message.instance_id() {
            Some(id) => {
                peers().rposition(|peer| peer.is_some_and(|it| it.handshake.instance_id() == Some(id)))
            }
            None => peers().rposition(|peer| peer.is_some_and(|it| it.host_type == HostType::TestHost)),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{Receiver, channel};

    use runtap_mtp_proto::server::Mode;
    use runtap_mtp_proto::{
        Handshake, HandshakeKey, SessionEvent, SessionEventType, SuccessfulTest, TestResults, TestState,
    };

    use super::*;

    const VOID: [u8; 8] = [4, 0, 0, 0, 0, 0, 0, 0];

    fn requests() -> (HttpRequests, Receiver<Signal>) {
        let (send, receive) = channel();
        (
            HttpRequests::new(Arc::new(AppServer::new(Mode::Run, None, 1)), BackpressureQueue::new(send)),
            receive,
        )
    }

    fn handshake(host: &str, instance: &str) -> Vec<u8> {
        let handshake = Handshake::new()
            .with(HandshakeKey::PID, "7")
            .with(HandshakeKey::ARCHITECTURE, "X64")
            .with(HandshakeKey::FRAMEWORK, ".NET 10.0.12")
            .with(HandshakeKey::OS, "Linux")
            .with(HandshakeKey::SUPPORTED_VERSIONS, "1.0.0;1.4.0")
            .with(HandshakeKey::HOST_TYPE, host)
            .with(HandshakeKey::MODULE_PATH, "/m/a.dll")
            .with(HandshakeKey::EXECUTION_ID, "e")
            .with(HandshakeKey::INSTANCE_ID, instance)
            .with(HandshakeKey::EXECUTION_MODE, "run");
        Message::Handshake(handshake).to_frame().unwrap()
    }

    fn result(instance: &str) -> Vec<u8> {
        let test = SuccessfulTest {
            uid: Some("a".into()),
            display_name: Some("A".into()),
            state: Some(TestState::PASSED),
            session_uid: Some("s".into()),
            ..SuccessfulTest::default()
        };
        let results = TestResults {
            execution_id: Some("e".into()),
            instance_id: Some(instance.into()),
            successful: Some(vec![test]),
            failed: None,
        };
        Message::TestResults(results).to_frame().unwrap()
    }

    fn session(kind: SessionEventType) -> Vec<u8> {
        let (session_type, session_uid, execution_id) = (Some(kind), Some("s".into()), Some("e".into()));
        Message::SessionEvent(SessionEvent { session_type, session_uid, execution_id }).to_frame().unwrap()
    }

    fn heard(receive: &Receiver<Signal>) -> Vec<AppEvent> {
        let all = receive.try_iter();
        all.flat_map(|signal| if let Signal::Messages(heard) = signal { heard } else { vec![] }).collect()
    }

    fn failures(heard: &[AppEvent]) -> usize {
        heard.iter().filter(|heard| matches!(heard, AppEvent::Failure(_))).count()
    }

    #[test]
    fn a_process_is_identified_on_any_connection() {
        let (requests, receive) = requests();
        assert!(requests.answer(0, &handshake("TestHostController", "c")).unwrap().len() > VOID.len());
        assert!(requests.answer(1, &handshake("TestHost", "h")).unwrap().len() > VOID.len());
        requests.closed(1);
        // Each message on a new connection, as after a pause.
        assert_eq!(requests.answer(2, &session(SessionEventType::START)).unwrap(), VOID);
        assert_eq!(requests.answer(3, &result("h")).unwrap(), VOID);
        assert_eq!(requests.answer(3, &result("h")).unwrap(), VOID);
        assert_eq!(requests.answer(4, &session(SessionEventType::END)).unwrap(), VOID);
        let heard = heard(&receive);
        let results = heard.iter().filter(|heard| matches!(heard, AppEvent::Result(_))).count();
        let introduced = heard.iter().filter(|heard| matches!(heard, AppEvent::Introduced(_))).count();
        assert_eq!((results, introduced, failures(&heard)), (2, 2, 0), "{heard:?}");
    }

    #[test]
    fn requests_without_a_handshake_are_rejected() {
        let (requests, receive) = requests();
        assert_eq!(requests.answer(0, &session(SessionEventType::START)), None);
        assert!(requests.answer(1, &handshake("TestHost", "h")).is_some());
        assert_eq!(requests.answer(2, &result("other")), None);
        assert_eq!(failures(&heard(&receive)), 2);
    }

    #[test]
    fn a_request_is_one_complete_frame() {
        let (requests, receive) = requests();
        requests.answer(0, &handshake("TestHost", "h")).unwrap();
        let two = [session(SessionEventType::START), result("h")].concat();
        assert_eq!(requests.answer(0, &two).unwrap(), [VOID, VOID].concat());
        let told = heard(&receive);
        assert_eq!(failures(&told), 1, "overlapping requests: {told:?}");
        let truncated = result("h");
        assert_eq!(requests.answer(0, &truncated[..truncated.len() - 1]), None);
        let told = heard(&receive);
        assert_eq!(failures(&told), 1, "{told:?}");
        assert_eq!(requests.answer(0, &result("h")), None, "the connection is closed");
        assert_eq!(requests.answer(0, &[]), None);
    }
}
