//! Conversion of protocol messages to events of the runner.

use runtap_mtp_proto as proto;
use runtap_mtp_proto::{Message, SessionEventType};

use super::app_server::AppEvent;
use crate::event::{AppOption, Artifact, Attempt, Exception, Level, TestInfo, TestOutcome, TestResult};

/// Passes the events of a message to `emit` one by one, because a message may have a million tests. `attempt` is the
/// attempt of the sending process, after which attempts within the process are numbered. `host_attempt` is the number
/// that the application assigned to the attempt.
pub(crate) fn translate(
    message: Message,
    attempt: u32,
    host_attempt: Option<u32>,
    emit: &mut dyn FnMut(AppEvent),
) {
    match message {
        Message::DiscoveredTests(message) => {
            message.tests.into_iter().flatten().map(discovered_event).for_each(emit);
        }
        Message::TestResults(message) => {
            let successful = message.successful.into_iter().flatten();
            successful
                .filter_map(|test| result_event(test.into(), attempt, host_attempt))
                .for_each(&mut *emit);
            message
                .failed
                .into_iter()
                .flatten()
                .filter_map(|test| result_event(test, attempt, host_attempt))
                .for_each(emit);
        }
        Message::FileArtifacts(message) => {
            // An artifact without a path is reported as a violation.
            let artifacts = message.artifacts.into_iter().flatten();
            let named =
                artifacts.filter(|file| file.full_path.as_deref().is_some_and(|path| !path.is_empty()));
            named.map(artifact_event).for_each(emit);
        }
        Message::SessionEvent(event) => match event.session_type {
            Some(SessionEventType::START) => emit(AppEvent::SessionStarted),
            Some(SessionEventType::END) => emit(AppEvent::SessionEnded),
            _ => {}
        },
        Message::TestsInProgress(message) => {
            let started = |test: proto::TestInProgress| started_event(test.uid, test.display_name);
            message.tests.into_iter().flatten().map(started).for_each(emit);
        }
        Message::Display(message) => {
            let level = match message.level {
                Some(proto::DisplayLevel::ERROR) => Level::Error,
                Some(proto::DisplayLevel::WARNING) => Level::Warning,
                _ => Level::Info,
            };
            let text = message.text.filter(|text| !text.is_empty());
            text.map(|text| AppEvent::Message(level, text)).into_iter().for_each(emit);
        }
        Message::CommandLineOptions(message) => {
            message.options.into_iter().flatten().map(option_event).for_each(emit);
        }
        // Lines for the log of Azure DevOps are sent only to its agents.
        _ => {}
    }
}

fn discovered_event(test: proto::DiscoveredTest) -> AppEvent {
    let uid = test.uid.unwrap_or_default();
    AppEvent::Discovered(TestInfo {
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
            // Hosts send traits in reverse order.
            .rev()
            .map(|entry| (entry.key.unwrap_or_default(), entry.value.unwrap_or_default()))
            .collect(),
        parameter_types: test.parameter_types.unwrap_or_default(),
    })
}

fn started_event(uid: Option<String>, name: Option<String>) -> AppEvent {
    let uid = uid.unwrap_or_default();
    AppEvent::Started { name: name.unwrap_or_else(|| uid.clone()), uid }
}

/// Converts an outcome. `None` if the test has no outcome.
pub(crate) fn outcome(state: Option<proto::TestState>) -> Option<TestOutcome> {
    Some(match state? {
        proto::TestState::PASSED => TestOutcome::Passed,
        proto::TestState::SKIPPED => TestOutcome::Skipped,
        proto::TestState::FAILED => TestOutcome::Failed,
        proto::TestState::ERROR => TestOutcome::Error,
        proto::TestState::TIMEOUT => TestOutcome::Timeout,
        proto::TestState::CANCELLED => TestOutcome::Cancelled,
        _ => return None,
    })
}

/// Converts a test of either list: passed tests are converted to the type of failed tests first. A test in progress is
/// reported as started.
fn result_event(test: proto::FailedTest, attempt: u32, host_attempt: Option<u32>) -> Option<AppEvent> {
    if test.state == Some(proto::TestState::IN_PROGRESS) {
        return Some(started_event(test.uid, test.display_name));
    }
    let uid = test.uid.unwrap_or_default();
    let exceptions = test.exceptions.into_iter().flatten().map(|exception| Exception {
        message: exception.message.unwrap_or_default(),
        type_name: exception.type_name.unwrap_or_default(),
        stack: exception.stack_trace.unwrap_or_default(),
    });
    Some(AppEvent::Result(TestResult {
        name: test.display_name.unwrap_or_else(|| uid.clone()),
        uid,
        attempt: attempt_in_process(test.retry_attempt_number).saturating_add(attempt.saturating_sub(1)),
        host_attempt,
        flaky: false,
        quarantined: false,
        superseded: test.is_superseded.unwrap_or_default(),
        row: 0,
        outdated: false,
        execution: Attempt {
            state: outcome(test.state)?,
            started: None,
            // Units of 100 ns. Negative durations of frameworks become zero.
            duration_ns: test.duration.map(|ticks| ticks.max(0).saturating_mul(100)),
            reason: test.reason.filter(|reason| !reason.is_empty()),
            exceptions: exceptions.collect(),
            expected: test.expected,
            actual: test.actual,
            stdout: test.standard_output.unwrap_or_default(),
            stderr: test.error_output.unwrap_or_default(),
        },
    }))
}

/// Returns the number of the attempt within its process.
fn attempt_in_process(attempt: Option<i32>) -> u32 {
    attempt.and_then(|attempt| u32::try_from(attempt).ok()).unwrap_or(1).max(1)
}

fn artifact_event(file: proto::FileArtifact) -> AppEvent {
    let non_empty = |text: Option<String>| text.filter(|text| !text.is_empty());
    AppEvent::Artifact(Artifact {
        path: file.full_path.unwrap_or_default().into(),
        name: non_empty(file.display_name),
        description: non_empty(file.description),
        test_uid: non_empty(file.test_uid),
        test_name: non_empty(file.test_display_name),
        kind: non_empty(file.kind),
    })
}

fn option_event(option: proto::CommandLineOption) -> AppEvent {
    AppEvent::Option(AppOption {
        name: option.name.unwrap_or_default(),
        description: option.description.unwrap_or_default(),
        hidden: option.is_hidden.unwrap_or_default(),
        built_in: option.is_built_in.unwrap_or_default(),
    })
}
