//! Each rule is broken once, by a conversation that breaks no other; and the page about them is true.

#![expect(
    clippy::needless_pass_by_value,
    reason = "conversations are easier to read without a borrow a message"
)]
#![expect(clippy::unnecessary_wraps, reason = "fields of messages are optional")]

mod common;

use common::{decode, greeting};
use runtap_mtp_proto::{
    CommandLineOptions, Display, FailedTest, FileArtifact, FileArtifacts, HandshakeKey, Message, MessageId,
    Rule, SessionEvent, SessionEventType, SuccessfulTest, TestResults, TestState,
    server::{Application, Connection, Event, Mode, Pipe, Settings},
};

/// A conversation, and the rules that were broken in it.
struct Talk {
    application: Application,
    connections: Vec<Connection>,
    broken: Vec<Rule>,
    closed: bool,
}

impl Talk {
    fn new(mode: Mode) -> Self {
        let application = Application::new(Settings::new(mode));
        Self { application, connections: Vec::new(), broken: Vec::new(), closed: false }
    }

    /// A connection with a handshake.
    fn connect(&mut self, host_type: &str, instance: &str) -> usize {
        self.greet(Message::Handshake(greeting(host_type, instance)))
    }

    fn greet(&mut self, handshake: Message) -> usize {
        let connection = self.open(Pipe::Data);
        self.send(connection, handshake);
        connection
    }

    fn open(&mut self, pipe: Pipe) -> usize {
        let connection = self.application.connect(pipe);
        self.connections.push(connection);
        self.connections.len() - 1
    }

    fn send(&mut self, connection: usize, message: Message) -> Vec<Event> {
        self.bytes(connection, &message.to_frame().unwrap())
    }

    fn bytes(&mut self, connection: usize, bytes: &[u8]) -> Vec<Event> {
        let output = self.application.handle_bytes(&mut self.connections[connection], bytes);
        self.broken.extend(output.violations().map(|violation| violation.rule));
        self.closed |= output.close;
        output.events
    }

    fn exit(&mut self, code: Option<i32>) {
        for connection in &mut self.connections {
            let output = self.application.handle_close(connection);
            self.broken.extend(output.violations().map(|violation| violation.rule));
        }
        let output = self.application.handle_exit(code);
        self.broken.extend(output.violations().map(|violation| violation.rule));
    }

    /// A handshake with a property that is changed, or taken away.
    fn greet_with(&mut self, key: HandshakeKey, value: Option<&str>) -> usize {
        let mut handshake = greeting("TestHost", "inst-1");
        match value {
            Some(value) => handshake.set(key, value),
            None => drop(handshake.remove(key)),
        }
        self.greet(Message::Handshake(handshake))
    }
}

fn some(text: &str) -> Option<String> {
    Some(text.to_owned())
}

fn session(kind: SessionEventType) -> Message {
    let (session_uid, execution_id) = (some("sess-1"), some("exec-1"));
    Message::SessionEvent(SessionEvent { session_type: Some(kind), session_uid, execution_id })
}

fn start() -> Message {
    session(SessionEventType::START)
}

fn end() -> Message {
    session(SessionEventType::END)
}

fn passed() -> SuccessfulTest {
    SuccessfulTest {
        uid: some("uid-1"),
        display_name: some("Test1"),
        state: Some(TestState::PASSED),
        session_uid: some("sess-1"),
        ..Default::default()
    }
}

fn failed() -> FailedTest {
    FailedTest {
        uid: some("uid-2"),
        display_name: some("Test2"),
        state: Some(TestState::FAILED),
        session_uid: some("sess-1"),
        ..Default::default()
    }
}

fn results(change: impl FnOnce(&mut TestResults)) -> Message {
    let (execution_id, instance_id) = (some("exec-1"), some("inst-1"));
    let mut results =
        TestResults { execution_id, instance_id, successful: Some(vec![passed()]), ..Default::default() };
    change(&mut results);
    Message::TestResults(results)
}

fn artifact(instance: &str) -> Message {
    let file = FileArtifact { full_path: some("/a"), ..Default::default() };
    let (execution_id, instance_id) = (some("exec-1"), some(instance));
    Message::FileArtifacts(FileArtifacts { execution_id, instance_id, artifacts: Some(vec![file]) })
}

fn options() -> Message {
    Message::CommandLineOptions(CommandLineOptions { module_path: some("/a"), options: None })
}

/// In a run, within a session of a test host.
fn within(talk: &mut Talk, message: Message) {
    let host = talk.connect("TestHost", "inst-1");
    talk.send(host, start());
    talk.send(host, message);
    talk.send(host, end());
    talk.exit(Some(0));
}

fn break_rule(rule: Rule) -> Talk {
    let mut talk = Talk::new(match rule {
        Rule::HelpMode | Rule::NoOptions => Mode::Help,
        Rule::DiscoveryMode => Mode::Discover,
        _ => Mode::Run,
    });
    let this = &mut talk;
    match rule {
        Rule::FrameLength => drop(this.bytes_within(&[0; 4])),
        Rule::Undecodable => drop(this.bytes_within(&[6, 0, 0, 0, 8, 0, 0, 0, 1, 0])),
        Rule::Overlap => {
            drop(this.bytes_within(&[start().to_frame().unwrap(), end().to_frame().unwrap()].concat()));
        }
        Rule::CutFrame => {
            this.bytes_within(&start().to_frame().unwrap()[..9]);
            this.exit(Some(2));
        }
        Rule::BeforeHandshake => {
            let host = this.open(Pipe::Data);
            this.send(host, start());
        }
        Rule::SecondHandshake => drop(this.within_run(Message::Handshake(greeting("TestHost", "inst-1")))),
        Rule::HandshakeProperty => drop(this.greet_with(HandshakeKey::ARCHITECTURE, None)),
        Rule::OldPlatform => drop(this.greet_with(HandshakeKey::INSTANCE_ID, None)),
        Rule::NoCommonVersion => drop(this.greet_with(HandshakeKey::SUPPORTED_VERSIONS, Some("0.9.0"))),
        Rule::HandshakeMismatch => {
            this.connect("TestHostController", "inst-0");
            this.greet_with(HandshakeKey::EXECUTION_ID, Some("exec-2"));
        }
        Rule::ModuleMismatch => {
            this.connect("TestHostController", "inst-0");
            this.greet_with(HandshakeKey::MODULE_PATH, Some("/srv/b.dll"));
        }
        Rule::ExecutionMode => drop(this.greet_with(HandshakeKey::EXECUTION_MODE, Some("discover"))),
        Rule::HostType => drop(this.greet_with(HandshakeKey::HOST_TYPE, Some("HelpHost"))),
        Rule::ModulePath => drop(this.greet_with(HandshakeKey::MODULE_PATH, None)),
        Rule::AttemptNumber => drop(this.greet_with(HandshakeKey::ATTEMPT_NUMBER, Some("0"))),
        Rule::AfterRejection => {
            let host = this.greet_with(HandshakeKey::SUPPORTED_VERSIONS, Some("0.9.0"));
            this.broken.clear();
            this.send(host, start());
        }
        Rule::ExecutionId => within(this, results(|results| results.execution_id = some("exec-2"))),
        Rule::InstanceId => within(this, results(|results| results.instance_id = some("inst-2"))),
        Rule::NoTestHost => {
            let controller = this.connect("TestHostController", "inst-0");
            this.send(controller, artifact("inst-0"));
        }
        Rule::WrongHost => {
            this.connect("TestHost", "inst-1");
            let controller = this.connect("TestHostController", "inst-0");
            this.send(controller, start());
        }
        Rule::HelpMode => drop(this.within_run(start())),
        Rule::UnexpectedOptions => within(this, options()),
        Rule::DiscoveryMode => within(this, results(|_| {})),
        Rule::MissingField => {
            within(this, results(|results| results.successful.as_mut().unwrap()[0].uid = None));
        }
        Rule::State => {
            within(
                this,
                results(|results| {
                    results.successful.as_mut().unwrap()[0].state = Some(TestState::IN_PROGRESS);
                }),
            );
        }
        Rule::WrongList => {
            within(
                this,
                results(|results| {
                    results.successful = None;
                    results.failed = Some(vec![FailedTest { state: Some(TestState::PASSED), ..failed() }]);
                }),
            );
        }
        Rule::SessionType => within(this, session(SessionEventType(7))),
        Rule::SessionEnd => {
            let host = this.connect("TestHost", "inst-1");
            this.send(host, end());
        }
        Rule::SessionTwice => {
            let host = this.connect("TestHost", "inst-1");
            for message in [start(), end(), start(), end()] {
                this.send(host, message);
            }
            this.exit(Some(0));
        }
        Rule::SessionOpen => {
            let host = this.connect("TestHost", "inst-1");
            this.send(host, start());
            this.exit(Some(0));
        }
        Rule::OutsideSession => {
            let host = this.connect("TestHost", "inst-1");
            for message in [start(), end(), results(|_| {})] {
                this.send(host, message);
            }
            this.exit(Some(0));
        }
        Rule::NoSession => {
            this.connect("TestHost", "inst-1");
            this.exit(Some(0));
        }
        Rule::NeverConnected => this.exit(Some(0)),
        Rule::NoOptions => {
            this.connect("TestHost", "inst-1");
            this.exit(Some(0));
        }
        Rule::FailedButZero => within(this, results(|results| results.failed = Some(vec![failed()]))),
        Rule::UnknownMessage => within(this, Message::Unknown { id: MessageId(77), body: vec![1] }),
        Rule::NotNegotiated => {
            let host = this.greet_with(HandshakeKey::SUPPORTED_VERSIONS, Some("1.2.0"));
            this.send(host, Message::Display(Display::default()));
        }
        Rule::WrongPipe => within(this, Message::WaitForServerControl),
        other => panic!("{other} has no conversation"),
    }
    talk
}

impl Talk {
    fn within_run(&mut self, message: Message) -> Vec<Event> {
        self.bytes_within(&message.to_frame().unwrap())
    }

    fn bytes_within(&mut self, bytes: &[u8]) -> Vec<Event> {
        let host = self.connect("TestHost", "inst-1");
        self.bytes(host, bytes)
    }
}

#[test]
fn each_rule_is_broken_by_a_conversation_that_breaks_no_other() {
    for rule in Rule::ALL {
        assert_eq!(break_rule(*rule).broken, [*rule], "{rule}");
    }
}

#[test]
fn ids_are_in_order_and_no_two_are_alike() {
    let ids: Vec<&str> = Rule::ALL.iter().map(|rule| rule.id()).collect();
    let expected: Vec<String> = (1..=ids.len()).map(|number| format!("MTP{number:03}")).collect();
    assert_eq!(ids, expected);
    for rule in Rule::ALL {
        assert!(!rule.summary().is_empty() && !rule.source().is_empty(), "{rule}");
        assert!(!rule.summary().contains('|') && !rule.source().contains('|'), "{rule}");
    }
}

#[test]
fn the_page_lists_every_rule() {
    let page = runtap_testkit::workspace_root().join("docs/mtp-rules.md");
    let page = std::fs::read_to_string(page).unwrap();
    let rows: Vec<&str> = page.lines().filter(|line| line.starts_with("| MTP")).collect();
    let row = |rule: &Rule| {
        format!("| {} | {} | {} | {} |", rule.id(), rule.severity(), rule.summary(), rule.source())
    };
    let expected: Vec<String> = Rule::ALL.iter().map(row).collect();
    assert_eq!(rows, expected, "the table of docs/mtp-rules.md should be:\n{}", expected.join("\n"));
}

#[test]
fn what_is_not_decoded_before_the_handshake() {
    // A body that could not be decoded: the handshake is what is missing all the same, and nothing is answered.
    let mut talk = Talk::new(Mode::Run);
    let host = talk.open(Pipe::Data);
    talk.bytes(host, &[6, 0, 0, 0, 8, 0, 0, 0, 1, 0]);
    assert_eq!((talk.broken.as_slice(), talk.closed), (&[Rule::BeforeHandshake][..], true));
    // In help mode hosts before MTP 2.3 send their options without one.
    let mut talk = Talk::new(Mode::Help);
    let host = talk.open(Pipe::Data);
    assert_eq!(talk.send(host, options()), [Event::Message(options())]);
    talk.exit(Some(0));
    assert_eq!((talk.broken.as_slice(), talk.closed), (&[][..], false));
}

#[test]
fn a_handshake_that_cannot_be_decoded_is_rejected() {
    let mut talk = Talk::new(Mode::Run);
    let host = talk.open(Pipe::Data);
    // Key 7 twice.
    let bytes = [18, 0, 0, 0, 9, 0, 0, 0, 2, 0, 7, 1, 0, 0, 0, b'a', 7, 1, 0, 0, 0, b'a'];
    let output = talk.application.handle_bytes(&mut talk.connections[host], &bytes);
    assert_eq!(output.events.last(), Some(&Event::Rejected(Rule::Undecodable)));
    let Message::Handshake(reply) = decode(&output.transmit) else { panic!("{output:?}") };
    assert_eq!(reply.get(HandshakeKey::SUPPORTED_VERSIONS), Some(""));
}

#[test]
fn a_second_handshake_changes_nothing_even_if_it_cannot_be_decoded() {
    let mut talk = Talk::new(Mode::Run);
    let host = talk.connect("TestHost", "inst-1");
    let bytes = [18, 0, 0, 0, 9, 0, 0, 0, 2, 0, 7, 1, 0, 0, 0, b'a', 7, 1, 0, 0, 0, b'a'];
    assert_eq!(talk.bytes(host, &bytes).len(), 1);
    talk.send(host, start());
    assert_eq!((talk.broken.as_slice(), talk.closed), (&[Rule::SecondHandshake][..], false));
}

#[test]
fn a_violation_says_where_it_is() {
    let mut talk = Talk::new(Mode::Run);
    let host = talk.connect("TestHost", "inst-1");
    let greeting = Message::Handshake(greeting("TestHost", "inst-1")).to_frame().unwrap().len() as u64;
    let mut offset = |bytes: &[u8]| {
        let output = talk.application.handle_bytes(&mut talk.connections[host], bytes);
        output.violations().next().unwrap().offset
    };
    // The frame, unless there is a field.
    assert_eq!(offset(&[4, 0, 0, 0, 77, 0, 0, 0]), Some(greeting));
    // The field's value.
    let cut = [12, 0, 0, 0, 8, 0, 0, 0, 1, 0, 2, 0, 9, 0, 0, 0];
    assert_eq!(offset(&cut), Some(greeting + 8 + 16));
    assert_eq!(offset(&[0; 4]), Some(greeting + 8 + 16));
    let output = talk.application.handle_exit(Some(0));
    assert!(output.violations().all(|violation| violation.offset.is_none()));
}
