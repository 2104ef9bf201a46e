//! Every message that a host can send: what the decoder of the golden vectors makes of its bytes is what was meant.

use std::collections::BTreeSet;
use std::num::NonZeroU32;
use std::sync::mpsc;
use std::time::Duration;

use runtap_mtp_host::{
    Artifact, CancelReason, CommandOption, DisplayLevel, Failure, Host, HostError, Identity, Role, TestNode,
    TestResult,
};
use runtap_mtp_proto::server::{Mode, Settings};
use runtap_mtp_proto::{
    AzureDevOpsLog, DiscoveredTest, DiscoveredTests, Display, FailedTest, FileArtifact, FileArtifacts,
    FrameReader, HandshakeKey, Limits, Message, MessageId, SessionEvent, SessionEventType, SuccessfulTest,
    TestException, TestInProgress, TestResults, TestState, TestTrait, TestsInProgress, Versions,
};

use crate::judge::Judge;

/// The messages of so many connections, which have ended; each is written again as it came.
fn heard(judge: &Judge, connections: usize) -> Vec<Message> {
    let mut messages = Vec::new();
    for _ in 0..connections {
        let bytes = judge.heard.recv_timeout(Duration::from_secs(20)).expect("the connection ends");
        let mut reader = FrameReader::new(Limits::default());
        reader.feed(&bytes);
        while let Some(frame) = reader.next_frame().unwrap() {
            let message = Message::decode(&frame, Limits::default()).unwrap();
            assert_eq!(message.to_frame().unwrap(), frame.to_bytes().unwrap(), "{message:?}");
            messages.push(message);
        }
        assert_eq!(reader.leftover(), 0);
    }
    messages
}

fn identity() -> Identity {
    let (execution_id, instance_id) = ("exec-1".to_owned(), "inst-1".to_owned());
    Identity { execution_id, instance_id, ..Identity::this_program() }
}

fn connect(judge: &Judge, options: &[&str]) -> Host {
    judge.connect_as(options, &Role::TestHost { attempt: NonZeroU32::MIN }, identity())
}

#[expect(clippy::unnecessary_wraps, reason = "fields are options")]
fn some(text: &str) -> Option<String> {
    Some(text.to_owned())
}

fn events(session: &str) -> [Message; 2] {
    [SessionEventType::START, SessionEventType::END].map(|kind| {
        Message::SessionEvent(SessionEvent {
            session_type: Some(kind),
            session_uid: some(session),
            execution_id: some("exec-1"),
        })
    })
}

/// The uid of the only session.
fn session(messages: &[Message]) -> String {
    let uid = messages.iter().find_map(|message| match message {
        Message::SessionEvent(event) => event.session_uid.clone(),
        _ => None,
    });
    uid.expect("there is a session")
}

/// Checks the handshake and returns the messages after it.
#[track_caller]
fn greeted<'a>(messages: &'a [Message], mode: &str) -> &'a [Message] {
    let Some((Message::Handshake(handshake), rest)) = messages.split_first() else { panic!("{messages:?}") };
    let identity = identity();
    let of = |key| handshake.get(key).unwrap_or_default();
    assert_eq!(of(HandshakeKey::PID), std::process::id().to_string());
    assert_eq!(of(HandshakeKey::SUPPORTED_VERSIONS), Versions::all().to_string());
    assert_eq!((of(HandshakeKey::EXECUTION_ID), of(HandshakeKey::INSTANCE_ID)), ("exec-1", "inst-1"));
    assert_eq!(of(HandshakeKey::FRAMEWORK), identity.framework);
    assert_eq!(of(HandshakeKey::MODULE_PATH), identity.module.to_str().unwrap());
    assert_eq!(of(HandshakeKey::ARCHITECTURE), identity.architecture);
    assert_eq!(of(HandshakeKey::OS), std::env::consts::OS);
    assert_eq!((of(HandshakeKey::HOST_TYPE), of(HandshakeKey::EXECUTION_MODE)), ("TestHost", mode));
    assert_eq!(of(HandshakeKey::ATTEMPT_NUMBER), "1");
    assert_eq!(handshake.iter().count(), 11, "and nothing else: {handshake:?}");
    rest
}

fn passed(session: &str) -> SuccessfulTest {
    SuccessfulTest {
        uid: some("uid-1"),
        display_name: some("Test1"),
        state: Some(TestState::PASSED),
        duration: Some(123_456),
        reason: some(""),
        standard_output: some("out"),
        error_output: some("err"),
        session_uid: some(session),
        ..SuccessfulTest::default()
    }
}

/// All kinds that a run has, to a server of the newest version.
fn run() -> BTreeSet<MessageId> {
    let settings =
        Settings { control_pipe: Some(String::new()), versions: Versions::all(), ..Settings::new(Mode::Run) };
    let judge = Judge::new(settings);
    let host = connect(&judge, &[]);
    // It listens in the background: once it has heard the only word there is, it was there.
    let (send, receive) = mpsc::channel();
    host.cancel().listen(move |reason| send.send(reason).unwrap());
    judge.cancel.send(()).unwrap();
    assert_eq!(receive.recv_timeout(Duration::from_secs(20)).unwrap(), CancelReason::Server);
    let test = TestNode::new("uid-1").display_name("Test1");
    let file = Artifact::new("/r/a.trx").display_name("a").description("d").kind("k").made_of("/r/b");
    host.session::<_, HostError>(|session| {
        session.begin(&test)?;
        let result = TestResult::passed().duration(Duration::from_nanos(12_345_600));
        session.report(&test, result.stdout("out").stderr("err"))?;
        let failure =
            Failure::new("no").type_name("T").frame("f", "a.rs", 7).reason("r").expected("1").actual("2");
        session.report(&test, TestResult::failed(failure).attempt(2, true))?;
        session.test_artifact(&test, &file)?;
        assert!(session.display(DisplayLevel::WARNING, "careful")?);
        assert!(session.host().azure_devops_log("##[x]")?);
        Ok(())
    })
    .unwrap();
    drop(host);
    let mut messages = heard(&judge, 2);
    // The control pipe is a connection of its own, and either may end first.
    let waiting = messages.iter().position(|message| *message == Message::WaitForServerControl);
    let waiting = messages.remove(waiting.expect("it listens"));
    let session = session(&messages);
    let (execution_id, instance_id) = (some("exec-1"), some("inst-1"));
    let [start, end] = events(&session);
    let expected = [
        start,
        Message::TestsInProgress(TestsInProgress {
            execution_id: execution_id.clone(),
            instance_id: instance_id.clone(),
            tests: Some(vec![TestInProgress { uid: some("uid-1"), display_name: some("Test1") }]),
        }),
        Message::TestResults(TestResults {
            execution_id: execution_id.clone(),
            instance_id: instance_id.clone(),
            successful: Some(vec![passed(&session)]),
            failed: Some(vec![FailedTest {
                uid: some("uid-1"),
                display_name: some("Test1"),
                state: Some(TestState::FAILED),
                duration: None,
                reason: some("r"),
                exceptions: Some(vec![TestException {
                    message: some("no"),
                    type_name: some("T"),
                    stack_trace: some("   at f in a.rs:line 7"),
                }]),
                standard_output: some(""),
                error_output: some(""),
                session_uid: some(&session),
                expected: some("1"),
                actual: some("2"),
                retry_attempt_number: Some(2),
                is_superseded: Some(true),
            }]),
        }),
        Message::FileArtifacts(FileArtifacts {
            execution_id: execution_id.clone(),
            instance_id: instance_id.clone(),
            artifacts: Some(vec![FileArtifact {
                full_path: some("/r/a.trx"),
                display_name: some("a"),
                description: some("d"),
                test_uid: some("uid-1"),
                test_display_name: some("Test1"),
                session_uid: some(&session),
                kind: some("k"),
                input_artifact_paths: Some(vec!["/r/b".to_owned()]),
            }]),
        }),
        Message::Display(Display {
            execution_id: execution_id.clone(),
            instance_id: instance_id.clone(),
            level: Some(DisplayLevel::WARNING),
            text: some("careful"),
        }),
        Message::AzureDevOpsLog(AzureDevOpsLog { execution_id, instance_id, text: some("##[x]") }),
        end,
    ];
    assert_eq!(greeted(&messages, "run"), expected);
    messages.iter().chain([&waiting]).map(Message::id).collect()
}

/// A test that has begun, to a server that asks for it as a result.
fn run_for_an_ide() -> BTreeSet<MessageId> {
    let judge = Judge::new(Settings { is_ide: true, ..Settings::new(Mode::Run) });
    let host = connect(&judge, &[]);
    host.session(|session| session.begin(&TestNode::new("uid-1").display_name("Test1"))).unwrap();
    drop(host);
    let messages = heard(&judge, 1);
    let session = session(&messages);
    let begun = SuccessfulTest {
        state: Some(TestState::IN_PROGRESS),
        duration: None,
        standard_output: some(""),
        error_output: some(""),
        ..passed(&session)
    };
    let [start, end] = events(&session);
    let results = Message::TestResults(TestResults {
        execution_id: some("exec-1"),
        instance_id: some("inst-1"),
        successful: Some(vec![begun]),
        failed: None,
    });
    assert_eq!(greeted(&messages, "run"), [start, results, end]);
    messages.iter().map(Message::id).collect()
}

/// The golden vector `discovered_full`, but for its session.
fn list() -> BTreeSet<MessageId> {
    let judge = Judge::new(Settings { is_ide: true, ..Settings::new(Mode::Discover) });
    let host = connect(&judge, &["--list-tests"]);
    host.session::<_, HostError>(|session| {
        let test = TestNode::new("uid-1").display_name("Add(1,2)").at("/src/T.cs", 42);
        let test = test.namespace("Ns").type_name("Cls").method("Add").parameter_type("System.Int32");
        let test =
            test.parameter_type("System.Int32").with_trait("Category", "Smoke").with_trait("Owner", "");
        session.discovered(&test)?;
        session.discovered(&TestNode::new("uid-2").display_name("T2"))
    })
    .unwrap();
    drop(host);
    let messages = heard(&judge, 1);
    let [start, end] = events(&session(&messages));
    let trait_of = |key: &str, value: &str| TestTrait { key: some(key), value: some(value) };
    let full = DiscoveredTest {
        uid: some("uid-1"),
        display_name: some("Add(1,2)"),
        file_path: some("/src/T.cs"),
        line_number: Some(42),
        namespace: some("Ns"),
        type_name: some("Cls"),
        method_name: some("Add"),
        parameter_types: Some(vec!["System.Int32".to_owned(), "System.Int32".to_owned()]),
        traits: Some(vec![trait_of("Category", "Smoke"), trait_of("Owner", "")]),
    };
    let short = DiscoveredTest { uid: some("uid-2"), display_name: some("T2"), ..DiscoveredTest::default() };
    let found = Message::DiscoveredTests(DiscoveredTests {
        execution_id: some("exec-1"),
        instance_id: some("inst-1"),
        tests: Some(vec![full, short]),
    });
    assert_eq!(greeted(&messages, "discover"), [start, found, end]);
    messages.iter().map(Message::id).collect()
}

fn help() -> BTreeSet<MessageId> {
    let judge = Judge::new(Settings::new(Mode::Help));
    let own = [CommandOption::new("suite", "Which suite").values(1, 2)];
    Host::help(&judge.launch(&["--help"]), &identity(), &own).unwrap();
    let messages = heard(&judge, 1);
    let [Message::CommandLineOptions(options)] = greeted(&messages, "help") else { panic!("{messages:?}") };
    assert_eq!(options.module_path.as_deref(), identity().module.to_str());
    let suite = options.options.iter().flatten().find(|option| option.name.as_deref() == Some("suite"));
    let suite = suite.expect("the own option is there");
    assert_eq!(suite.description.as_deref(), Some("Which suite"));
    assert_eq!((suite.minimum_arity, suite.maximum_arity), (Some(1), Some(2)));
    messages.iter().map(Message::id).collect()
}

#[test]
fn every_message_arrives_as_it_was_meant() {
    let sent: BTreeSet<i32> =
        [run(), run_for_an_ide(), list(), help()].into_iter().flatten().map(|id| id.0).collect();
    // Messages that only servers send, and messages of hosts before 1.0.0.
    let not_ours = [
        MessageId::VOID,
        MessageId::SERVER_CONTROL,
        MessageId::TEST_HOST_COMPLETED,
        MessageId::TEST_HOST_PROCESS_ID,
    ];
    let ours = MessageId::ALL.iter().filter(|id| !not_ours.contains(id)).map(|id| id.0).collect();
    assert_eq!(sent, ours);
}
