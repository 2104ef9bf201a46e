//! Both machines against each other, and what neither lets pass.

mod common;

use common::{frame, greeting, unhex};
use runtap_mtp_proto::{
    ControlKind, Display, Handshake, HandshakeKey, Limits, Message, MessageId, Rule, ServerControl, Version,
    Versions,
    host::{self, Reply, ReplyError, RequestError},
    is_old_layout,
    render::Rendering,
    server::{Application, Connection, Event, Mode, Pipe, Settings},
};

/// One exchange: a request of the host, the server's events, and the reply as the host sees it.
fn exchange(
    host: &mut host::Connection,
    application: &mut Application,
    connection: &mut Connection,
    message: &Message,
) -> (Vec<Event>, Reply) {
    let request = host.request(message).unwrap();
    let output = application.handle_bytes(connection, &request);
    (output.events, host.handle_bytes(&output.transmit).unwrap().unwrap())
}

fn settings() -> Settings {
    let mut settings = Settings::new(Mode::Run);
    settings.control_pipe = Some("/tmp/control".into());
    settings.identity = Handshake::new().with(HandshakeKey::PID, "1").with(HandshakeKey::OS, "Linux");
    settings
}

#[test]
fn a_handshake_and_a_cancelled_session() {
    let mut settings = settings();
    settings.is_ide = true;
    let mut application = Application::new(settings);
    let (mut host, mut connection) = (host::Connection::data(), application.connect(Pipe::Data));
    let hello = Message::Handshake(greeting("TestHost", "inst-1"));
    let (events, reply) = exchange(&mut host, &mut application, &mut connection, &hello);
    let [Event::Connected(peer)] = events.as_slice() else { panic!("{events:?}") };
    assert_eq!((peer.version, peer.attempt), (Version::V1_4_0, Some(1)));
    let Reply::Accepted { version, handshake } = reply else { panic!("{reply:?}") };
    assert_eq!((version, handshake.is_ide()), (Version::V1_4_0, true));
    let keys: Vec<u8> = handshake.iter().map(|(key, _)| key.0).collect();
    assert_eq!(keys, [0, 3, 4, 9, 12], "in the order of the SDK");
    assert_eq!(handshake.server_control_pipe(), Some("/tmp/control"));

    let (mut control, mut other) = (host::Connection::control(), application.connect(Pipe::Control));
    let wait = control.request(&Message::WaitForServerControl).unwrap();
    let output = application.handle_bytes(&mut other, &wait);
    assert_eq!(
        (output.events.as_slice(), output.transmit.as_slice()),
        (&[Event::ControlWaiting][..], &[][..])
    );
    let order = other.control(ControlKind::CANCEL_SESSION).unwrap();
    assert_eq!(other.control(ControlKind::CANCEL_SESSION), None, "one answer to one request");
    let kind = Some(ControlKind::CANCEL_SESSION);
    assert_eq!(control.handle_bytes(&order), Ok(Some(Reply::Control(ServerControl { kind }))));
}

#[test]
fn a_control_pipe_is_offered_from_1_4_0_on() {
    let mut settings = settings();
    settings.versions = Versions::parse("1.0.0;1.3.0");
    let mut application = Application::new(settings);
    let (mut host, mut connection) = (host::Connection::data(), application.connect(Pipe::Data));
    let hello = Message::Handshake(greeting("TestHost", "inst-1"));
    let (_, reply) = exchange(&mut host, &mut application, &mut connection, &hello);
    let Reply::Accepted { version, handshake } = reply else { panic!("{reply:?}") };
    assert_eq!((version, handshake.server_control_pipe()), (Version::V1_3_0, None));
}

fn attempt(
    application: &mut Application,
    host_type: &str,
    instance: &str,
    number: Option<&str>,
) -> Option<u32> {
    let mut handshake = greeting(host_type, instance);
    if let Some(number) = number {
        handshake.set(HandshakeKey::ATTEMPT_NUMBER, number);
    }
    let mut connection = application.connect(Pipe::Data);
    let bytes = Message::Handshake(handshake).to_frame().unwrap();
    application.handle_bytes(&mut connection, &bytes);
    connection.peer().unwrap().attempt
}

#[test]
fn attempts_and_shards() {
    // From MTP 2.4 on: the number says it.
    let mut application = Application::new(settings());
    assert_eq!(attempt(&mut application, "TestHostOrchestrator", "o", None), None);
    assert_eq!(attempt(&mut application, "TestHost", "a", Some("1")), Some(1));
    assert_eq!(attempt(&mut application, "TestHost", "b", Some("1")), Some(1), "a shard");
    assert_eq!(attempt(&mut application, "TestHost", "c", Some("2")), Some(2));
    assert_eq!((application.attempt_of("b"), application.attempt_of("o")), (Some(1), None));
    // Before: each InstanceId is the next attempt, the same one is a shard.
    let mut application = Application::new(settings());
    assert_eq!(attempt(&mut application, "TestHost", "a", None), Some(1));
    assert_eq!(attempt(&mut application, "TestHost", "a", None), Some(1));
    assert_eq!(attempt(&mut application, "TestHost", "b", None), Some(2));
}

#[test]
fn a_host_sends_nothing_out_of_turn() {
    let mut host = host::Connection::data();
    let display = Message::Display(Display::default());
    let hello = Message::Handshake(greeting("TestHost", "inst-1"));
    assert_eq!(host.request(&display), Err(RequestError::NoHandshake(MessageId::DISPLAY)));
    assert_eq!(host.request(&Message::Void), Err(RequestError::WrongPipe(MessageId::VOID)));
    host.request(&hello).unwrap();
    assert_eq!(host.request(&display), Err(RequestError::InFlight(MessageId::HANDSHAKE)));
    let reply = Handshake::new().with(HandshakeKey::SUPPORTED_VERSIONS, "1.0.0");
    let bytes = Message::Handshake(reply).to_frame().unwrap();
    let (last, first) = bytes.split_last().unwrap();
    for byte in first {
        assert_eq!(host.handle_bytes(&[*byte]), Ok(None));
    }
    assert!(matches!(host.handle_bytes(&[*last]), Ok(Some(Reply::Accepted { .. }))));
    assert_eq!(host.request(&hello), Err(RequestError::SecondHandshake));
    let (since, version) = (Version::V1_3_0, Version::V1_0_0);
    assert_eq!(
        host.request(&display),
        Err(RequestError::NotNegotiated { message: MessageId::DISPLAY, since, version })
    );
    let unknown = Message::Unknown { id: MessageId(99), body: vec![] };
    assert!(host.request(&unknown).is_ok(), "the server answers what it does not know");
    assert_eq!(host.handle_eof(), Err(ReplyError::Closed(MessageId(99))));
    assert_eq!(host.request(&unknown), Err(RequestError::Closed));
}

/// What a host says to a reply to its handshake.
fn to_handshake(reply: &[u8]) -> Result<Option<Reply>, ReplyError> {
    let mut host = host::Connection::data();
    host.handshake(greeting("TestHost", "inst-1")).unwrap();
    let answer = host.handle_bytes(reply);
    if answer.is_err() {
        assert_eq!(host.handshake(Handshake::new()), Err(RequestError::Closed));
    }
    answer
}

#[test]
fn a_host_takes_no_reply_but_its_own() {
    let (request, reply) = (MessageId::HANDSHAKE, MessageId::VOID);
    assert_eq!(
        to_handshake(&Message::Void.to_frame().unwrap()),
        Err(ReplyError::WrongReply { request, reply })
    );
    let chosen = |version: &str| {
        Message::Handshake(Handshake::new().with(HandshakeKey::SUPPORTED_VERSIONS, version))
            .to_frame()
            .unwrap()
    };
    assert!(matches!(to_handshake(&chosen("")), Ok(Some(Reply::Rejected(_)))));
    for wrong in ["1.x", "9.9.9"] {
        let error = to_handshake(&chosen(wrong)).unwrap_err();
        assert_eq!(error.to_string(), format!("the server chose version {wrong:?}, which was not offered"));
    }
    // However long the server's text is, the message is not.
    let long = to_handshake(&chosen(&"1.".repeat(2_000_000))).unwrap_err().to_string();
    assert!(long.len() < 200 && long.contains('…'), "{}", long.len());
    assert!(matches!(to_handshake(&[3, 0, 0, 0]), Err(ReplyError::Decode(_))));
    let twice = [chosen("1.0.0"), vec![4]].concat();
    assert_eq!(to_handshake(&twice), Err(ReplyError::Unsolicited { bytes: 1 }));
    assert_eq!(host::Connection::data().handle_bytes(&[4]), Err(ReplyError::Unsolicited { bytes: 1 }));
    assert_eq!(host::Connection::control().handle_eof(), Ok(()));
}

#[test]
fn quirks_of_the_wire() {
    let read = |hex: &str| Message::decode(&frame(&unhex(hex)), Limits::default());
    let event = |hex: &str| match read(hex).unwrap() {
        Message::SessionEvent(event) => event,
        other => panic!("{other:?}"),
    };
    // A state of four bytes: what follows is not misread.
    let wide = event("1900000008000000020001000400000001000000020003000000756964");
    assert_eq!((wide.session_type.unwrap().0, wide.session_uid.as_deref()), (1, Some("uid")));
    // A field twice.
    let twice = event("140000000800000002000200010000006102000100000062");
    assert_eq!(twice.session_uid.as_deref(), Some("b"));
    // Invalid UTF-8.
    let invalid = event("0d000000080000000100020001000000ff");
    assert_eq!(invalid.session_uid.as_deref(), Some("\u{fffd}"));
    let error = |hex: &str| read(hex).unwrap_err().to_string();
    assert_eq!(error("0c0000000800000001000200ffffffff"), "field size at offset 12: is negative");
    assert_eq!(
        error("0d00000008000000010002000200000061"),
        "field value at offset 16: needs 2 bytes, 1 are left"
    );
    assert_eq!(
        error("0c000000080000000100010000000000"),
        "SessionEvent.SessionType at offset 16: needs 1 bytes, 0 are left"
    );
    // A list whose size is smaller than its content.
    assert_eq!(
        error("12000000050000000100030000000000010000000000"),
        "DiscoveredTests.DiscoveredTestMessageList at offset 16: needs 4 bytes, 0 are left"
    );
    // Two lists in one field: what is in the first would be lost.
    assert_eq!(
        error("1a0000000500000002000300040000000000000003000400000000000000"),
        "DiscoveredTests.DiscoveredTestMessageList at offset 26: appears twice"
    );
}

/// A field: id, size, value.
fn field(id: u8, value: &[u8]) -> Vec<u8> {
    let size = u8::try_from(value.len()).unwrap();
    [&[id, 0, size, 0, 0, 0], value].concat()
}

fn envelope(fields: &[Vec<u8>]) -> Vec<u8> {
    [vec![u8::try_from(fields.len()).unwrap(), 0], fields.concat()].concat()
}

fn list(elements: &[Vec<u8>]) -> Vec<u8> {
    [vec![u8::try_from(elements.len()).unwrap(), 0, 0, 0], elements.concat()].concat()
}

#[test]
fn the_layout_before_mtp_1_7_is_recognised() {
    let test = envelope(&[field(1, b"uid"), field(2, b"name")]);
    let exception = envelope(&[field(1, b"message")]);
    let failure = envelope(&[field(1, b"uid"), field(6, &list(&[exception]))]);
    let is_old = |id: MessageId, fields: &[Vec<u8>]| {
        let body = envelope(fields);
        is_old_layout(&runtap_mtp_proto::Frame { offset: 0, id, body: &body })
    };
    let execution = || field(1, b"exec-1");
    assert!(is_old(
        MessageId::DISCOVERED_TESTS,
        &[execution(), field(2, &list(&[test.clone(), test.clone()]))]
    ));
    assert!(is_old(MessageId::TEST_RESULTS, &[execution(), field(2, &list(std::slice::from_ref(&test)))]));
    assert!(is_old(MessageId::TEST_RESULTS, &[execution(), field(3, &list(&[failure]))]));
    // Today's.
    assert!(!is_old(
        MessageId::TEST_RESULTS,
        &[execution(), field(2, b"inst-1"), field(3, &list(std::slice::from_ref(&test)))]
    ));
    assert!(!is_old(MessageId::TEST_RESULTS, &[execution(), field(3, &list(std::slice::from_ref(&test)))]));
    assert!(!is_old(MessageId::SESSION_EVENT, &[execution(), field(2, &list(&[test]))]));
}

#[test]
fn a_host_before_mtp_1_7_is_told_apart() {
    let mut handshake = greeting("TestHost", "inst-1");
    handshake.remove(HandshakeKey::INSTANCE_ID);
    assert!(handshake.is_older_than_1_7());
    let mut application = Application::new(settings());
    let mut connection = application.connect(Pipe::Data);
    let output =
        application.handle_bytes(&mut connection, &Message::Handshake(handshake).to_frame().unwrap());
    let [Event::Violation(violation), Event::Rejected(Rule::OldPlatform)] = output.events.as_slice() else {
        panic!("{output:?}")
    };
    assert!(violation.to_string().contains("Microsoft.Testing.Platform 1.6 or older"), "{violation}");
}

#[test]
fn texts_of_the_other_side_are_cut_and_escaped() {
    let mut application = Application::new(settings());
    let mut connection = application.connect(Pipe::Data);
    let handshake = greeting(&format!("\u{1b}[31m{}", "x".repeat(5000)), "inst-1");
    let output =
        application.handle_bytes(&mut connection, &Message::Handshake(handshake).to_frame().unwrap());
    let violation = output.violations().next().unwrap();
    assert_eq!(violation.rule, Rule::HostType);
    assert!(violation.detail.starts_with("got \"\\u{1b}[31mxxx"), "{violation}");
    assert!(violation.detail.len() < 200, "{violation}");
}

#[test]
fn a_rendering_of_a_handshake_and_of_numbers() {
    let shown = |message: Message| {
        Rendering::new(&frame(&message.to_frame().unwrap()), Limits::default()).to_string()
    };
    let handshake = Handshake::new().with(HandshakeKey::PID, "7").with(HandshakeKey(200), "new");
    assert_eq!(shown(Message::Handshake(handshake)), "      10 0 PID = \"7\"\n      16 200 ? = \"new\"\n");
    let pid = runtap_mtp_proto::TestHostProcessId { pid: 4242 };
    assert_eq!(shown(Message::TestHostProcessId(pid)), "       8 1 PID = 4242\n");
    assert_eq!(shown(Message::Unknown { id: MessageId(99), body: vec![1, 255] }), "       8 rest = 01ff\n");
}

#[test]
fn a_void_reply_can_be_given_before_its_frame_is_looked_at() {
    let mut application = Application::new(settings());
    let mut connection = application.connect(Pipe::Data);
    let hello = Message::Handshake(greeting("TestHost", "inst-1")).to_frame().unwrap();
    let void = Message::Void.to_frame().unwrap();
    assert!(!connection.is_void_due(&void), "before the handshake there is no reply");
    assert!(!connection.is_void_due(&hello));
    application.handle_bytes(&mut connection, &hello);
    assert!(!connection.is_void_due(&hello), "the reply to a second one is a handshake, too");
    let foreign = Message::Display(Display { execution_id: Some("other".into()), ..Display::default() });
    let wrong = Message::ServerControl(ServerControl { kind: None });
    for frame in [
        foreign.to_frame().unwrap(),
        wrong.to_frame().unwrap(),
        void.clone(),
        // A result with a truncated body; an unknown message id.
        unhex("0600000006000000ffff"),
        unhex("05000000ff000000aa"),
    ] {
        assert!(connection.is_void_due(&frame), "{frame:?}");
        let output = application.handle_bytes(&mut connection, &frame);
        assert_eq!((&output.transmit, output.close), (&void, false), "{frame:?}");
    }
    let two = [void.clone(), void.clone()].concat();
    assert!(
        !connection.is_void_due(&two) && !connection.is_void_due(&[]) && !connection.is_void_due(&[0xff; 8])
    );
    for (at, byte) in void.iter().enumerate() {
        assert!(!connection.is_void_due(&void[at..=at]), "{at}");
        assert!(at == 0 || !connection.is_void_due(&void), "{at}: the frame has begun already");
        application.handle_bytes(&mut connection, &[*byte]);
    }
    assert!(connection.is_void_due(&void));
    let mut control = application.connect(Pipe::Control);
    assert!(!control.is_void_due(&Message::WaitForServerControl.to_frame().unwrap()));
    application.handle_close(&mut control);
}
