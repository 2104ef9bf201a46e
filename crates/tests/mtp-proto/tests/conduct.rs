//! What a host is kept from saying: each with the id of the rule that it would break.

mod common;

use common::greeting;
use runtap_mtp_proto::host::{Connection, RequestError};
use runtap_mtp_proto::{
    CommandLineOptions, DiscoveredTest, DiscoveredTests, FileArtifacts, Handshake, HandshakeKey, Message,
    Rule, SessionEvent, SessionEventType, SuccessfulTest, TestResults, TestState,
};

/// A host of this kind and mode whose handshake the server has accepted.
fn host(kind: &str, mode: &str) -> Connection {
    let mut host = Connection::data();
    let handshake = greeting(kind, "inst-1").with(HandshakeKey::EXECUTION_MODE, mode);
    host.handshake(handshake).unwrap();
    let reply = Handshake::new().with(HandshakeKey::SUPPORTED_VERSIONS, "1.4.0");
    host.handle_bytes(&Message::Handshake(reply).to_frame().unwrap()).unwrap();
    host
}

/// The ids of the handshakes above.
fn execution() -> Option<String> {
    greeting("TestHost", "inst-1").execution_id().map(str::to_owned)
}

fn session(kind: SessionEventType, uid: &str) -> Message {
    let (session_type, session_uid) = (Some(kind), Some(uid.to_owned()));
    Message::SessionEvent(SessionEvent { session_type, session_uid, execution_id: execution() })
}

fn result() -> TestResults {
    let test = SuccessfulTest {
        uid: Some("t".into()),
        display_name: Some("T".into()),
        state: Some(TestState::PASSED),
        session_uid: Some("s".into()),
        ..SuccessfulTest::default()
    };
    let (execution_id, instance_id) = (execution(), Some("inst-1".into()));
    TestResults { execution_id, instance_id, successful: Some(vec![test]), failed: None }
}

fn list() -> Message {
    let test =
        DiscoveredTest { uid: Some("t".into()), display_name: Some("T".into()), ..DiscoveredTest::default() };
    let (execution_id, instance_id) = (execution(), Some("inst-1".into()));
    Message::DiscoveredTests(DiscoveredTests { execution_id, instance_id, tests: Some(vec![test]) })
}

fn say(host: &mut Connection, message: &Message) -> Result<(), RequestError> {
    host.request(message)?;
    host.handle_bytes(&Message::Void.to_frame().unwrap()).unwrap();
    Ok(())
}

/// The rule that keeps it from saying this, both as a message and as a frame; nothing has changed then.
fn refused(host: &mut Connection, message: &Message) -> Option<Rule> {
    let error = host.request(message).expect_err("it is refused");
    assert_eq!(host.in_flight(), None, "{error}");
    let framed = host.begin_frame(&message.to_frame().unwrap()).err();
    let looks_inside = !matches!(message, Message::TestResults(_) | Message::DiscoveredTests(_));
    assert!(!looks_inside || framed.as_ref().and_then(RequestError::rule) == error.rule(), "{framed:?}");
    host.handle_bytes(&[]).unwrap();
    let rule = error.rule();
    assert!(rule.is_none_or(
        |rule| error.to_string().contains(rule.id()) || !matches!(error, RequestError::Broken { .. })
    ));
    rule
}

#[test]
fn a_run_by_the_rules_is_said() {
    let mut host = host("TestHost", "run");
    for message in [
        session(SessionEventType::START, "s"),
        Message::TestResults(result()),
        session(SessionEventType::END, "s"),
        session(SessionEventType::START, "s2"),
        session(SessionEventType::END, "s2"),
    ] {
        say(&mut host, &message).unwrap();
    }
}

#[test]
fn sessions_begin_once_and_hold_what_is_said_of_tests() {
    let mut host = host("TestHost", "run");
    assert_eq!(refused(&mut host, &Message::TestResults(result())), Some(Rule::OutsideSession));
    assert_eq!(refused(&mut host, &session(SessionEventType::END, "s")), Some(Rule::SessionEnd));
    assert_eq!(refused(&mut host, &session(SessionEventType(7), "s")), Some(Rule::SessionType));
    say(&mut host, &session(SessionEventType::START, "s")).unwrap();
    assert_eq!(refused(&mut host, &session(SessionEventType::START, "s")), Some(Rule::SessionTwice));
    say(&mut host, &session(SessionEventType::START, "other")).unwrap();
    say(&mut host, &session(SessionEventType::END, "s")).unwrap();
    assert_eq!(refused(&mut host, &session(SessionEventType::END, "s")), Some(Rule::SessionEnd));
    assert_eq!(host.request(&Message::TestResults(result())).unwrap_err().rule(), Some(Rule::OutsideSession));
}

#[test]
fn ids_are_those_of_the_handshake() {
    let mut host = host("TestHost", "run");
    say(&mut host, &session(SessionEventType::START, "s")).unwrap();
    for (message, rule) in [
        (TestResults { execution_id: None, ..result() }, Rule::ExecutionId),
        (TestResults { execution_id: Some("another".into()), ..result() }, Rule::ExecutionId),
        (TestResults { instance_id: None, ..result() }, Rule::InstanceId),
        (TestResults { instance_id: Some("inst-2".into()), ..result() }, Rule::InstanceId),
    ] {
        let message = Message::TestResults(message);
        assert_eq!(refused(&mut host, &message), Some(rule));
        // Of a frame they are read, too.
        let framed = host.begin_frame(&message.to_frame().unwrap());
        assert_eq!(framed.unwrap_err().rule(), Some(rule));
    }
    let frame = Message::TestResults(result()).to_frame().unwrap();
    host.begin_frame(&frame).unwrap();
}

#[test]
fn each_mode_and_each_kind_of_host_has_its_messages() {
    let options = Message::CommandLineOptions(CommandLineOptions::default());
    let files =
        FileArtifacts { execution_id: execution(), instance_id: Some("inst-1".into()), artifacts: None };
    let files = Message::FileArtifacts(files);
    let start = session(SessionEventType::START, "s");
    for (kind, mode, message, rule) in [
        ("TestHost", "run", &options, Rule::UnexpectedOptions),
        ("TestHost", "help", &start, Rule::HelpMode),
        ("TestHost", "help", &files, Rule::HelpMode),
        ("TestHost", "discover", &files, Rule::DiscoveryMode),
        ("TestHost", "discover", &Message::TestResults(result()), Rule::DiscoveryMode),
        ("TestHost", "discover", &list(), Rule::OutsideSession),
        ("TestHostController", "run", &start, Rule::WrongHost),
        ("TestHostOrchestrator", "run", &Message::TestResults(result()), Rule::WrongHost),
    ] {
        assert_eq!(refused(&mut host(kind, mode), message), Some(rule), "{kind}, {mode}, {}", message.id());
    }
    say(&mut host("TestHost", "help"), &options).unwrap();
    say(&mut host("TestHostController", "run"), &files).unwrap();
}

#[test]
fn fields_that_must_be_there_are() {
    let mut host = host("TestHost", "run");
    say(&mut host, &session(SessionEventType::START, "s")).unwrap();
    let with = |change: fn(&mut SuccessfulTest)| {
        let mut results = result();
        results.successful.iter_mut().flatten().for_each(change);
        Message::TestResults(results)
    };
    for (message, rule) in [
        (with(|test| test.uid = None), Rule::MissingField),
        (with(|test| test.state = Some(TestState(77))), Rule::State),
        (with(|test| test.state = Some(TestState::FAILED)), Rule::WrongList),
        (with(|test| test.state = Some(TestState::IN_PROGRESS)), Rule::State),
    ] {
        assert_eq!(host.request(&message).unwrap_err().rule(), Some(rule));
    }
    for (key, value, rule) in [
        (HandshakeKey::EXECUTION_ID, "", Rule::HandshakeProperty),
        (HandshakeKey::HOST_TYPE, "Toaster", Rule::HostType),
        (HandshakeKey::ATTEMPT_NUMBER, "0", Rule::AttemptNumber),
    ] {
        let handshake = greeting("TestHost", "inst-1").with(key, value);
        assert_eq!(Connection::data().handshake(handshake).unwrap_err().rule(), Some(rule));
    }
}
