//! The verbs that send messages. Unspecified fields have the values of a real host.

use runtap_mtp_proto::{
    AzureDevOpsLog, CommandLineOption, CommandLineOptions, DiscoveredTest, DiscoveredTests, Display,
    DisplayLevel, FailedTest, FileArtifact, FileArtifacts, Handshake, HandshakeKey, Message, SessionEvent,
    SessionEventType, SuccessfulTest, TestException, TestInProgress, TestResults, TestState, TestTrait,
    TestsInProgress,
};

use super::PlayError;
use super::words::Arguments;

/// The sender of messages.
#[derive(Debug, Clone)]
pub(super) struct Speaker {
    pub pid: u32,
    pub module: String,
    pub execution: String,
    pub instance: String,
    pub mode: &'static str,
    pub attempt: u32,
    /// The contents of the handshake, set by `platform`.
    pub platform: Platform,
}

/// A version of the platform, which determines its handshake.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Platform {
    /// No `InstanceId`, and another layout of messages.
    V1_6,
    /// No `--filter-uid`.
    V1_7,
    /// Protocol 1.0.0.
    V1_8,
    /// Protocol 1.4.0: modes, control pipe.
    V2_3,
    /// Attempt numbers.
    V2_4,
}

impl Platform {
    pub(super) fn parse(name: &str) -> Result<Self, PlayError> {
        Ok(match name {
            "1.6" => Self::V1_6,
            "1.7" => Self::V1_7,
            "1.8" => Self::V1_8,
            "2.3" => Self::V2_3,
            "2.4" => Self::V2_4,
            _ => return Err(format!("{name}: one of 1.6, 1.7, 1.8, 2.3, 2.4").into()),
        })
    }
}

/// Returns the state of a test for a verb. `None` if the verb is not for tests.
pub(super) fn state_of(verb: &str) -> Option<TestState> {
    Some(match verb {
        "pass" => TestState::PASSED,
        "skip" => TestState::SKIPPED,
        "fail" => TestState::FAILED,
        "error" => TestState::ERROR,
        "timeout" => TestState::TIMEOUT,
        "cancelled" => TestState::CANCELLED,
        "begin" => TestState::IN_PROGRESS,
        _ => return None,
    })
}

/// Parses `handshake [KEY=VALUE…] [!KEY…]`, where a key is a name or a number.
pub(super) fn handshake(speaker: &Speaker, words: &mut Arguments) -> Result<Message, PlayError> {
    let platform = speaker.platform;
    let versions = if platform < Platform::V2_3 { "1.0.0" } else { "1.0.0;1.1.0;1.2.0;1.3.0;1.4.0" };
    let mut all = Handshake::new()
        .with(HandshakeKey::PID, speaker.pid.to_string())
        .with(HandshakeKey::ARCHITECTURE, "X64")
        .with(HandshakeKey::FRAMEWORK, ".NET 10.0.12")
        .with(HandshakeKey::OS, "Linux")
        .with(HandshakeKey::SUPPORTED_VERSIONS, versions)
        .with(HandshakeKey::HOST_TYPE, "TestHost")
        .with(HandshakeKey::MODULE_PATH, speaker.module.as_str())
        .with(HandshakeKey::EXECUTION_ID, speaker.execution.as_str());
    if platform > Platform::V1_6 {
        all.set(HandshakeKey::INSTANCE_ID, speaker.instance.as_str());
    }
    if platform >= Platform::V2_3 {
        all.set(HandshakeKey::EXECUTION_MODE, speaker.mode);
    }
    if platform >= Platform::V2_4 {
        all.set(HandshakeKey::ATTEMPT_NUMBER, speaker.attempt.to_string());
    }
    for (name, value) in words.pairs() {
        all.set(key(&name)?, value);
    }
    for name in words.absents() {
        all.remove(key(&name)?);
    }
    if all.host_type().is_some_and(|host| host != runtap_mtp_proto::HostType::TestHost)
        && all.get(HandshakeKey::ATTEMPT_NUMBER) == Some(&speaker.attempt.to_string())
    {
        all.remove(HandshakeKey::ATTEMPT_NUMBER);
    }
    Ok(Message::Handshake(all))
}

/// Returns the key of the handshake with this name or number.
pub(super) fn key(name: &str) -> Result<HandshakeKey, PlayError> {
    Ok(match name {
        "pid" => HandshakeKey::PID,
        "architecture" => HandshakeKey::ARCHITECTURE,
        "framework" => HandshakeKey::FRAMEWORK,
        "os" => HandshakeKey::OS,
        "versions" => HandshakeKey::SUPPORTED_VERSIONS,
        "type" => HandshakeKey::HOST_TYPE,
        "module" => HandshakeKey::MODULE_PATH,
        "execution" => HandshakeKey::EXECUTION_ID,
        "instance" => HandshakeKey::INSTANCE_ID,
        "ide" => HandshakeKey::IS_IDE,
        "mode" => HandshakeKey::EXECUTION_MODE,
        "feature" => HandshakeKey::ORCHESTRATOR_FEATURE,
        "control" => HandshakeKey::SERVER_CONTROL_PIPE,
        "attempt" => HandshakeKey::ATTEMPT_NUMBER,
        other => match other.parse() {
            Ok(number) => HandshakeKey(number),
            Err(_) => return Err(format!("{other} is no key of a handshake").into()),
        },
    })
}

/// Parses all other messages. `None` if the verb does not send a message.
pub(super) fn message(
    verb: &str,
    speaker: &Speaker,
    words: &mut Arguments,
) -> Result<Option<Message>, PlayError> {
    let execution_id = words.field("execution", Some(&speaker.execution));
    let session = |words: &mut Arguments, kind, execution_id| {
        let kind: Option<u8> = words.number("kind")?.or(Some(kind));
        Ok::<_, PlayError>(Message::SessionEvent(SessionEvent {
            session_type: kind.filter(|_| !words.is_absent("kind")).map(SessionEventType),
            session_uid: words.field("uid", Some("session")),
            execution_id,
        }))
    };
    if let Some(state) = state_of(verb) {
        return results(state, execution_id, speaker, words).map(Some);
    }
    let instance = |words: &mut Arguments| words.field("instance", Some(&speaker.instance));
    Ok(Some(match verb {
        "start" => session(words, 0, execution_id)?,
        "end" => session(words, 1, execution_id)?,
        "discover" => Message::DiscoveredTests(DiscoveredTests {
            execution_id,
            instance_id: instance(words),
            tests: Some(discovered(words)?),
        }),
        "artifact" => {
            let path = words.need("a path")?;
            Message::FileArtifacts(FileArtifacts {
                execution_id,
                instance_id: instance(words),
                artifacts: Some(vec![FileArtifact {
                    full_path: words.field("path", Some(&path)),
                    display_name: words.field("name", Some("")),
                    description: words.field("description", Some("")),
                    test_uid: words.field("test", Some("")),
                    test_display_name: words.field("test-name", Some("")),
                    session_uid: words.field("session", Some("session")),
                    kind: words.get("kind"),
                    ..FileArtifact::default()
                }]),
            })
        }
        "progress" => {
            let uid = words.need("a test")?;
            let display_name = words.field("name", Some(&uid));
            Message::TestsInProgress(TestsInProgress {
                execution_id,
                instance_id: instance(words),
                tests: Some(vec![TestInProgress { uid: Some(uid), display_name }]),
            })
        }
        "azure" => Message::AzureDevOpsLog(AzureDevOpsLog {
            execution_id,
            instance_id: instance(words),
            text: Some(words.need("a text")?),
        }),
        "message" => {
            let level = words.number("level")?.unwrap_or(0);
            Message::Display(Display {
                execution_id,
                instance_id: instance(words),
                level: Some(DisplayLevel(level)),
                text: Some(words.need("a text")?),
            })
        }
        "option" => {
            let name = words.next();
            let description = words.get("description").or_else(|| Some("what it does".to_owned()));
            let (is_hidden, is_built_in) = (Some(false), Some(true));
            let option = CommandLineOption {
                name,
                description,
                is_hidden,
                is_built_in,
                ..CommandLineOption::default()
            };
            let module_path = Some(speaker.module.clone());
            Message::CommandLineOptions(CommandLineOptions { module_path, options: Some(vec![option]) })
        }
        "park" => Message::WaitForServerControl,
        _ => return Ok(None),
    }))
}

fn discovered(words: &mut Arguments) -> Result<Vec<DiscoveredTest>, PlayError> {
    let uid = words.need("a test")?;
    let count: usize = words.number("count")?.unwrap_or(1);
    let traits = words.get("trait").map(|text| {
        let (key, value) = text.split_once('=').unwrap_or((&text, ""));
        vec![TestTrait { key: Some(key.to_owned()), value: Some(value.to_owned()) }]
    });
    let test = DiscoveredTest {
        display_name: words.field("name", Some(&uid)),
        uid: words.field("uid", Some(&uid)),
        file_path: words.get("file"),
        line_number: words.number("line")?,
        namespace: words.get("namespace"),
        type_name: words.get("type"),
        method_name: words.get("method"),
        traits,
        ..DiscoveredTest::default()
    };
    let one = |n: usize| DiscoveredTest {
        uid: numbered(test.uid.as_deref(), n),
        display_name: numbered(test.display_name.as_deref(), n),
        ..test.clone()
    };
    Ok((0..count).map(one).collect())
}

fn results(
    state: TestState,
    execution_id: Option<String>,
    speaker: &Speaker,
    words: &mut Arguments,
) -> Result<Message, PlayError> {
    let instance_id = words.field("instance", Some(&speaker.instance));
    let count: usize = words.number("count")?.unwrap_or(1);
    let list = words.get("list");
    let test = test(state, words)?;
    let one = |n: usize| FailedTest {
        uid: numbered(test.uid.as_deref(), n),
        display_name: numbered(test.display_name.as_deref(), n),
        ..test.clone()
    };
    let all = (0..count).map(one);
    let mut results = TestResults { execution_id, instance_id, ..TestResults::default() };
    match list.as_deref() {
        Some("failed") => results.failed = Some(all.collect()),
        Some("successful") => results.successful = Some(all.map(SuccessfulTest::from).collect()),
        Some(other) => return Err(format!("list={other}: failed or successful").into()),
        None if state.is_failed() => results.failed = Some(all.collect()),
        None => results.successful = Some(all.map(SuccessfulTest::from).collect()),
    }
    Ok(Message::TestResults(results))
}

/// Replaces `{i}` by a number, for several messages in one frame.
fn numbered(text: Option<&str>, n: usize) -> Option<String> {
    text.map(|text| text.replace("{i}", &n.to_string()))
}

fn test(state: TestState, words: &mut Arguments) -> Result<FailedTest, PlayError> {
    let uid = words.need("a test")?;
    let state = words.number("state")?.map_or(state, TestState);
    let has_duration = !matches!(state, TestState::SKIPPED | TestState::IN_PROGRESS);
    let duration = words.get("duration").map(|text| ticks(&text)).transpose()?;
    let message = words.field("message", Some("it failed"));
    let exception = TestException {
        message,
        type_name: words.field("type", Some("Xunit.FailException")),
        stack_trace: words.field("stack", Some("   at Shop.Tests.Cart() in /src/Cart.cs:line 7")),
    };
    let (attempt, superseded): (Option<i32>, bool) = (words.number("try")?, words.flag("superseded"));
    Ok(FailedTest {
        display_name: words.field("name", Some(&uid)),
        uid: words.field("uid", Some(&uid)),
        state: (!words.is_absent("state")).then_some(state),
        duration: duration.or_else(|| has_duration.then_some(10_000)),
        reason: words.field("reason", Some("")),
        exceptions: Some(vec![exception]).filter(|_| state.is_failed()),
        standard_output: words.field("stdout", Some("")),
        error_output: words.field("stderr", Some("")),
        session_uid: words.field("session", Some("session")),
        expected: words.get("expected"),
        actual: words.get("actual"),
        retry_attempt_number: attempt,
        is_superseded: attempt.map(|_| superseded),
    })
}

/// Parses a duration, or a number of ticks, and returns ticks of 100 ns.
fn ticks(text: &str) -> Result<i64, PlayError> {
    if let Ok(ticks) = text.parse() {
        return Ok(ticks);
    }
    let duration = super::duration(text)?;
    i64::try_from(duration.as_nanos() / 100).map_err(|_too_long| format!("{text}: too long").into())
}
