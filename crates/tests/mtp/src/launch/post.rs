//! Requests of the HTTP transport: which process each one is of, and what it is answered.
//!
//! A process keeps its connection for all its requests, but need not: an HTTP client may close one that was idle, and open
//! another. So a process is known by the connection of its handshake first, and on a new one by the `InstanceId` of what it
//! sends. Session events have none; they count for the whole application, and go to the last test host.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use runtap_mtp_proto::server::{Connection, Pipe};
use runtap_mtp_proto::{Frame, HostType, Message, MessageId};

use super::Happening;
use super::gate::Gate;
use super::sent::Sent;
use super::speak::{Heard, Speaker};
use crate::http::Answer;

/// More handshakes of one application are refused.
const MOST: usize = 4096;

/// Answers the requests of one application.
#[derive(Debug)]
pub(crate) struct Posts {
    speaker: Arc<Speaker>,
    gate: Gate,
    processes: Mutex<Processes>,
}

/// The processes of the application, as far as they have sent anything.
#[derive(Debug, Default)]
struct Processes {
    all: Vec<Connection>,
    /// By the number of an HTTP connection, the place of the process that uses it.
    using: HashMap<u64, usize>,
}

impl Posts {
    pub(crate) fn new(speaker: Arc<Speaker>, gate: Gate) -> Self {
        Self { speaker, gate, processes: Mutex::default() }
    }
}

impl Answer for Posts {
    fn answer(&self, connection: u64, frame: &[u8]) -> Option<Vec<u8>> {
        let mut processes = self.processes.lock().unwrap_or_else(PoisonError::into_inner);
        let Processes { all, using } = &mut *processes;
        let place = using.get(&connection).copied().or_else(|| self.sender(frame, all)).unwrap_or(all.len());
        if place == all.len() {
            if place == MOST {
                return None;
            }
            all.push(self.speaker.application().connect(Pipe::Data));
        }
        using.insert(connection, place);
        let process = all.get_mut(place)?;
        let mut output = self.speaker.application().handle_bytes(process, frame);
        if output.transmit.is_empty() && !output.close {
            // The rest of the frame can't come any more.
            let cut = self.speaker.application().handle_close(process);
            output.events.extend(cut.events);
            output.close = true;
        }
        let reply = std::mem::take(&mut output.transmit);
        // Nobody listens when the application is given up: its requests need no answer then.
        let mut sent = Sent::default();
        sent.push(frame);
        let refused = output.close;
        let heard = self.speaker.say(output, process, &sent, &self.gate);
        if refused {
            self.gate.say(Happening::Heard(vec![Heard::Over { refused }]));
        }
        (heard && !reply.is_empty()).then_some(reply)
    }

    fn exhausted(&self) {
        self.gate.say(Happening::Heard(self.speaker.exhausted()));
    }

    fn closed(&self, connection: u64) {
        self.processes.lock().unwrap_or_else(PoisonError::into_inner).using.remove(&connection);
    }
}

impl Posts {
    /// The process that has sent this on a new connection. `None`: one that was not heard of.
    fn sender(&self, bytes: &[u8], all: &[Connection]) -> Option<usize> {
        let limits = self.speaker.application().settings().limits;
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
        Handshake, HandshakeKey, SessionEvent, SessionEventType, State, SuccessfulTest, TestResults,
    };

    use super::*;

    const VOID: [u8; 8] = [4, 0, 0, 0, 0, 0, 0, 0];

    fn posts() -> (Posts, Receiver<Happening>) {
        let (send, receive) = channel();
        (Posts::new(Arc::new(Speaker::new(Mode::Run, None, 1)), Gate::new(send)), receive)
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
            state: Some(State::PASSED),
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

    fn heard(receive: &Receiver<Happening>) -> Vec<Heard> {
        let all = receive.try_iter();
        all.flat_map(|happening| if let Happening::Heard(heard) = happening { heard } else { vec![] })
            .collect()
    }

    fn failures(heard: &[Heard]) -> usize {
        heard.iter().filter(|heard| matches!(heard, Heard::Failure(_))).count()
    }

    #[test]
    fn a_process_is_known_on_whatever_connection_it_comes() {
        let (posts, receive) = posts();
        assert!(posts.answer(0, &handshake("TestHostController", "c")).unwrap().len() > VOID.len());
        assert!(posts.answer(1, &handshake("TestHost", "h")).unwrap().len() > VOID.len());
        posts.closed(1);
        // Each on a new connection, as after a pause.
        assert_eq!(posts.answer(2, &session(SessionEventType::START)).unwrap(), VOID);
        assert_eq!(posts.answer(3, &result("h")).unwrap(), VOID);
        assert_eq!(posts.answer(3, &result("h")).unwrap(), VOID);
        assert_eq!(posts.answer(4, &session(SessionEventType::END)).unwrap(), VOID);
        let heard = heard(&receive);
        let results = heard.iter().filter(|heard| matches!(heard, Heard::Result(_))).count();
        let introduced = heard.iter().filter(|heard| matches!(heard, Heard::Introduced(_))).count();
        assert_eq!((results, introduced, failures(&heard)), (2, 2, 0), "{heard:?}");
    }

    #[test]
    fn who_was_not_introduced_is_not_listened_to() {
        let (posts, receive) = posts();
        assert_eq!(posts.answer(0, &session(SessionEventType::START)), None);
        assert!(posts.answer(1, &handshake("TestHost", "h")).is_some());
        assert_eq!(posts.answer(2, &result("other")), None);
        assert_eq!(failures(&heard(&receive)), 2);
    }

    #[test]
    fn a_request_is_one_whole_frame() {
        let (posts, receive) = posts();
        posts.answer(0, &handshake("TestHost", "h")).unwrap();
        let two = [session(SessionEventType::START), result("h")].concat();
        assert_eq!(posts.answer(0, &two).unwrap(), [VOID, VOID].concat());
        let told = heard(&receive);
        assert_eq!(failures(&told), 1, "they overlap: {told:?}");
        let cut = result("h");
        assert_eq!(posts.answer(0, &cut[..cut.len() - 1]), None);
        let told = heard(&receive);
        assert_eq!(failures(&told), 1, "{told:?}");
        assert_eq!(posts.answer(0, &result("h")), None, "its connection is of no use any more");
        assert_eq!(posts.answer(0, &[]), None);
    }
}
