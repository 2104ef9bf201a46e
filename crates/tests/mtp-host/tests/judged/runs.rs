//! How runs begin and end: attempts, cancelling, limits of the command line, servers that are late or go.

use std::fs;
use std::io::{Read as _, Write as _};
use std::num::NonZeroU32;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use runtap_mtp_host::{
    Application, Artifact, CancelReason, Exit, HostError, Identity, Launch, Role, Server, Session, TestNode,
    TestResult, Version,
};
use runtap_mtp_proto::server::{self, Mode, Pipe, Settings};
use runtap_mtp_proto::{Message, Rule, SessionEventType, TestState};

use crate::judge::{Judge, fails, results};

#[test]
fn attempts_and_their_orchestrator_share_a_run() {
    let judge = Judge::new(Settings::new(Mode::Run));
    let first = Identity::this_program();
    let with_id = |id: &str| Identity { instance_id: id.to_owned(), ..first.clone() };
    let feature = "RetryOrchestrator".to_owned();
    let orchestrator = judge.connect_as(&[], &Role::Orchestrator { feature }, with_id("o"));
    for attempt in [1, 2] {
        let role = Role::TestHost { attempt: NonZeroU32::new(attempt).unwrap() };
        let host = judge.connect_as(&[], &role, with_id(&attempt.to_string()));
        host.session(|session| {
            session.test("flaky", || {
                assert!(attempt > 1, "once");
            })
        })
        .unwrap();
        assert_eq!(host.exit(), if attempt == 1 { Exit::FAILED } else { Exit::OK });
    }
    let [id, number] = first.for_attempt(NonZeroU32::MIN);
    assert_eq!((id.1.as_str(), number.1.as_str()), (first.execution_id.as_str(), "1"));
    drop(orchestrator);
    assert_eq!(judge.application.lock().unwrap().attempt_of("2"), Some(2));
    let states: Vec<_> = results(&judge.messages(Exit::OK)).into_iter().map(|(_, state)| state).collect();
    assert_eq!(states, [TestState::FAILED, TestState::PASSED]);
}

#[test]
fn a_word_on_the_control_pipe_ends_the_run() {
    let settings = Settings { control_pipe: Some(String::new()), ..Settings::new(Mode::Run) };
    let judge = Judge::new(settings);
    let host = judge.connect(&[]);
    assert!(host.has_control());
    let (send, receive) = mpsc::channel();
    host.cancel().listen(move |reason| send.send(reason).unwrap());
    host.session::<_, HostError>(|session| {
        session.test("first", || ())?;
        judge.cancel.send(()).unwrap();
        assert_eq!(receive.recv_timeout(Duration::from_secs(20)).unwrap(), CancelReason::Server);
        assert_eq!(session.cancelled(), Some(CancelReason::Server));
        session.test("second", || fails("it is too late"))
    })
    .unwrap();
    let exit = host.exit();
    assert_eq!(exit, Exit::ABORTED);
    drop(host);
    let messages = judge.messages(exit);
    assert_eq!(results(&messages).len(), 1);
    let Some(Message::SessionEvent(end)) = messages.last() else { panic!("{messages:?}") };
    assert_eq!(end.session_type, Some(SessionEventType::END), "the session has its end all the same");
}

#[test]
fn the_command_line_ends_a_run_too() {
    let judge = Judge::new(Settings::new(Mode::Run));
    let host = judge.connect(&["--maximum-failed-tests", "2"]);
    host.session::<_, HostError>(|session| {
        for test in ["a", "b", "c"] {
            session.test(test, || fails("no"))?;
        }
        Ok(())
    })
    .unwrap();
    assert_eq!(host.exit(), Exit::TOO_MANY_FAILURES);
    drop(host);
    assert_eq!(results(&judge.messages(Exit::TOO_MANY_FAILURES)).len(), 2);

    let judge = Judge::new(Settings::new(Mode::Run));
    let host = judge.connect(&["--timeout", "20ms"]);
    let (send, receive) = mpsc::channel();
    host.cancel().listen(move |reason| send.send(reason).unwrap());
    host.session::<_, HostError>(|_| {
        assert_eq!(receive.recv_timeout(Duration::from_secs(20)).unwrap(), CancelReason::Timeout);
        Ok(())
    })
    .unwrap();
    assert_eq!(host.exit(), Exit::ABORTED);
}

#[derive(Debug)]
struct Own(String);
impl From<HostError> for Own {
    fn from(error: HostError) -> Self {
        Self(error.to_string())
    }
}

#[test]
fn a_body_that_fails_leaves_a_pair_of_events() {
    let judge = Judge::new(Settings::new(Mode::Run));
    let host = judge.connect(&[]);
    let error = host.session(|_| Err::<(), _>(Own("mine".into()))).unwrap_err();
    assert_eq!(error.0, "mine");
    drop(host);
    assert_eq!(judge.messages(Exit::ERROR).len(), 2);
}

#[test]
fn what_can_never_be_a_server_is_not_waited_for() {
    let launch = Launch::by(Server::Pipe(PathBuf::from("/dev/null/x")));
    let error = Application::new().connect(&launch).unwrap_err();
    let HostError::Connect { waited, error, .. } = &error else { panic!("{error}") };
    assert!(*waited < runtap_mtp_host::CONNECT_TIMEOUT, "{error}");
}

/// A process that watches a test host: its connection has a file and no session, beside that of the test host.
#[test]
fn a_controller_tells_of_files() {
    let judge = Judge::new(Settings::new(Mode::Run));
    let first = Identity::this_program();
    let with_id = |id: &str| Identity { instance_id: id.to_owned(), ..first.clone() };
    let controller = judge.connect_as(&[], &Role::Controller, with_id("c"));
    let host = judge.connect_as(&[], &Role::TestHost { attempt: NonZeroU32::MIN }, with_id("h"));
    host.session(|session| session.test("a", || ())).unwrap();
    drop(host);
    controller.artifact(&Artifact::new("/r/core.1").display_name("a dump")).unwrap();
    controller.flush().unwrap();
    drop(controller);
    let messages = judge.messages(Exit::OK);
    let Some(Message::FileArtifacts(files)) = messages.last() else { panic!("{messages:?}") };
    assert_eq!(files.instance_id.as_deref(), Some("c"));
    let [file] = &files.artifacts.as_ref().unwrap()[..] else { panic!("{files:?}") };
    assert_eq!(file.full_path.as_deref(), Some("/r/core.1"));
    // Of no test and no session.
    assert_eq!((file.test_uid.as_deref(), file.session_uid.as_deref()), (Some(""), Some("")));
    let sessions = messages.iter().filter(|message| matches!(message, Message::SessionEvent(_))).count();
    assert_eq!(sessions, 2, "those of the test host: {messages:?}");
}

/// The text of the only log in the directory.
fn log_in(directory: &Path) -> String {
    let files: Vec<_> = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path()).collect();
    let [file] = &files[..] else { panic!("{files:?}") };
    let name = file.file_name().unwrap().to_str().unwrap();
    assert!(name.starts_with("mine_") && name.contains(".diag"), "{name}");
    fs::read_to_string(file).unwrap()
}

#[test]
fn the_diagnostic_log_has_the_negotiated_version() {
    let folder = tempfile::tempdir().unwrap();
    let logs = folder.path().join("logs");
    let launch = |judge: &Judge, more: &[&str]| {
        let options =
            ["--diagnostic-file-prefix", "mine", "--diagnostic-output-directory", logs.to_str().unwrap()];
        judge.launch(&[&options, more].concat())
    };
    // A server knows one run.
    let passes = |more: &[&str]| {
        let judge = Judge::new(Settings::new(Mode::Run));
        let test = |session: &Session<'_>, _: &Launch| session.test("secret", || ());
        assert_eq!(Application::new().run::<HostError>(&launch(&judge, more), test), Exit::OK);
    };
    passes(&["--diagnostic"]);
    let text = log_in(&logs);
    for part in [
        format!("information runtap-mtp-host {}, process {}", env!("CARGO_PKG_VERSION"), std::process::id()),
        format!("information negotiated protocol version {} with process ", Version::V1_4_0),
        "trace sending TestResultMessages, ".to_owned(),
        "information the session ended after 4 requests\n".to_owned(),
        "information exit code 0\n".to_owned(),
    ] {
        assert!(text.contains(&part), "{part}: {text}");
    }
    assert!(!text.contains("secret"), "{text}");
    fs::remove_dir_all(&logs).unwrap();
    passes(&["--diagnostic", "--diagnostic-verbosity", "Information"]);
    let text = log_in(&logs);
    assert!(text.contains("negotiated protocol version") && !text.contains(" trace "), "{text}");
    fs::remove_dir_all(&logs).unwrap();
    passes(&[]);
    passes(&["--diagnostic", "--diagnostic-verbosity", "None"]);
    assert!(!logs.exists(), "no log was requested");
    fs::write(&logs, "a file").unwrap();
    let judge = Judge::new(Settings::new(Mode::Run));
    let error = Application::new().connect(&launch(&judge, &["--diagnostic"])).unwrap_err();
    assert!(matches!(error, HostError::Diagnostic { .. }), "{error}");
}

#[test]
fn a_server_that_goes_is_noticed_without_a_request() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("data");
    let listener = UnixListener::bind(&path).unwrap();
    let serving = thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut application = server::Application::new(Settings::new(Mode::Run));
        let mut connection = application.connect(Pipe::Data);
        let mut buffer = [0; 4096];
        // The handshake, the start of a session.
        for _ in 0..2 {
            let count = stream.read(&mut buffer).unwrap();
            let output = application.handle_bytes(&mut connection, &buffer[..count]);
            stream.write_all(&output.transmit).unwrap();
        }
    });
    let words = ["--server", "dotnettestcli", "--dotnet-test-pipe", path.to_str().unwrap()];
    let launch = Launch::parse(words.map(std::ffi::OsString::from), &[]).unwrap().unwrap();
    let host = Application::new().connect(&launch).unwrap();
    let (send, receive) = mpsc::channel();
    host.cancel().listen(move |reason| send.send(reason).unwrap());
    let result = host.session::<_, HostError>(|session| {
        assert_eq!(receive.recv_timeout(Duration::from_secs(20)).unwrap(), CancelReason::ServerGone);
        session.report(&TestNode::new("a"), TestResult::passed())
    });
    assert!(matches!(result, Err(HostError::Gone)), "{result:?}");
    serving.join().unwrap();
}

#[test]
fn the_judge_would_notice() {
    // A session that never ends.
    let judge = Judge::new(Settings::new(Mode::Run));
    let host = judge.connect(&[]);
    let hidden = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        host.session::<(), HostError>(|_| std::panic::resume_unwind(Box::new("away")))
    }));
    assert!(hidden.is_err());
    host.flush().unwrap();
    drop(host);
    let end = judge.application.lock().unwrap().handle_exit(Some(0));
    let rules: Vec<_> = end.violations().map(|violation| violation.rule).collect();
    assert_eq!(rules, [Rule::SessionOpen]);
}
