//! From the protocol's messages to the runner's events.

use std::time::Duration;

use runtap_mtp_proto as proto;
use runtap_mtp_proto::{Message, SessionEventType};

use super::speak::Heard;
use crate::event::{AppOption, Artifact, Exception, Severity, State, TestInfo, TestResult};

/// `attempt` is that of the process that says it.
pub(crate) fn translate(message: Message, attempt: u32, heard: &mut Vec<Heard>) {
    match message {
        Message::DiscoveredTests(message) => {
            heard.extend(message.tests.into_iter().flatten().map(discovered));
        }
        Message::TestResults(message) => {
            heard.extend(message.successful.into_iter().flatten().filter_map(|it| successful(it, attempt)));
            heard.extend(message.failed.into_iter().flatten().filter_map(|it| failed(it, attempt)));
        }
        Message::FileArtifacts(message) => {
            heard.extend(message.artifacts.into_iter().flatten().map(artifact));
        }
        Message::SessionEvent(event) => heard.push(match event.session_type {
            Some(SessionEventType::END) => Heard::SessionEnded,
            _ => Heard::SessionStarted,
        }),
        Message::TestsInProgress(message) => {
            let started = |test: proto::TestInProgress| started(test.uid, test.display_name);
            heard.extend(message.tests.into_iter().flatten().map(started));
        }
        Message::Display(message) => {
            let severity = match message.level {
                Some(proto::DisplayLevel::ERROR) => Severity::Error,
                Some(proto::DisplayLevel::WARNING) => Severity::Warning,
                _ => Severity::Information,
            };
            let text = message.text.filter(|text| !text.is_empty());
            heard.extend(text.map(|text| Heard::Message(severity, text)));
        }
        Message::CommandLineOptions(message) => {
            heard.extend(message.options.into_iter().flatten().map(option));
        }
        // Lines for the log of Azure DevOps are for its agents, and are not asked for.
        _ => {}
    }
}

fn discovered(test: proto::DiscoveredTest) -> Heard {
    let uid = test.uid.unwrap_or_default();
    Heard::Discovered(TestInfo {
        name: test.display_name.unwrap_or_else(|| uid.clone()),
        uid,
        file: test.file_path,
        line: test.line_number,
        namespace: test.namespace,
        type_name: test.type_name,
        method: test.method_name,
        traits: test
            .traits
            .into_iter()
            .flatten()
            // They come in reverse.
            .rev()
            .map(|it| (it.key.unwrap_or_default(), it.value.unwrap_or_default()))
            .collect(),
        parameter_types: test.parameter_types.unwrap_or_default(),
    })
}

fn started(uid: Option<String>, name: Option<String>) -> Heard {
    let uid = uid.unwrap_or_default();
    Heard::Started { name: name.unwrap_or_else(|| uid.clone()), uid }
}

/// `None`: no outcome.
fn state(state: Option<proto::State>) -> Option<State> {
    Some(match state? {
        proto::State::PASSED => State::Passed,
        proto::State::SKIPPED => State::Skipped,
        proto::State::FAILED => State::Failed,
        proto::State::ERROR => State::Error,
        proto::State::TIMEOUT => State::Timeout,
        proto::State::CANCELLED => State::Cancelled,
        _ => return None,
    })
}

fn successful(result: proto::SuccessfulTest, attempt: u32) -> Option<Heard> {
    if result.state == Some(proto::State::IN_PROGRESS) {
        return Some(started(result.uid, result.display_name));
    }
    let uid = result.uid.unwrap_or_default();
    Some(Heard::Result(TestResult {
        name: result.display_name.unwrap_or_else(|| uid.clone()),
        uid,
        state: state(result.state)?,
        duration: result.duration.map(ticks),
        attempt: within(result.retry_attempt_number).max(attempt),
        superseded: result.is_superseded.unwrap_or_default(),
        reason: result.reason.filter(|reason| !reason.is_empty()),
        stdout: result.standard_output.unwrap_or_default(),
        stderr: result.error_output.unwrap_or_default(),
        ..TestResult::new()
    }))
}

fn failed(result: proto::FailedTest, attempt: u32) -> Option<Heard> {
    let uid = result.uid.unwrap_or_default();
    let exceptions = result.exceptions.into_iter().flatten().map(|exception| Exception {
        message: exception.message,
        type_name: exception.type_name,
        stack: exception.stack_trace,
    });
    Some(Heard::Result(TestResult {
        name: result.display_name.unwrap_or_else(|| uid.clone()),
        uid,
        state: state(result.state)?,
        duration: result.duration.map(ticks),
        attempt: within(result.retry_attempt_number).max(attempt),
        superseded: result.is_superseded.unwrap_or_default(),
        reason: result.reason.filter(|reason| !reason.is_empty()),
        exceptions: exceptions.collect(),
        expected: result.expected,
        actual: result.actual,
        stdout: result.standard_output.unwrap_or_default(),
        stderr: result.error_output.unwrap_or_default(),
        ..TestResult::new()
    }))
}

/// Units of 100 ns; frameworks give negative ones too.
fn ticks(ticks: i64) -> Duration {
    u64::try_from(ticks).map_or(Duration::ZERO, |ticks| {
        Duration::new(ticks / 10_000_000, u32::try_from(ticks % 10_000_000).unwrap_or_default() * 100)
    })
}

/// Which attempt within its process.
fn within(attempt: Option<i32>) -> u32 {
    attempt.and_then(|attempt| u32::try_from(attempt).ok()).unwrap_or(1).max(1)
}

fn artifact(file: proto::FileArtifact) -> Heard {
    let given = |text: Option<String>| text.filter(|text| !text.is_empty());
    Heard::Artifact(Artifact {
        path: file.full_path.unwrap_or_default().into(),
        name: given(file.display_name),
        description: given(file.description),
        test_uid: given(file.test_uid),
        test_name: given(file.test_display_name),
        kind: given(file.kind),
    })
}

fn option(option: proto::CommandLineOption) -> Heard {
    Heard::Option(AppOption {
        name: option.name.unwrap_or_default(),
        description: option.description.unwrap_or_default(),
        hidden: option.is_hidden.unwrap_or_default(),
        built_in: option.is_built_in.unwrap_or_default(),
    })
}
