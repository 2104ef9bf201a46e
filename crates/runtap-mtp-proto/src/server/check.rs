//! What a message must be like, apart from handshakes.

use super::{Application, Mode, Rule, name};
use crate::code::{SessionKind, State, id};
use crate::message::Message;
use crate::messages::TestResults;
use crate::version::Version;

/// Told of each rule that is broken.
type Broken<'a> = dyn FnMut(Rule, String) + 'a;

impl Application {
    /// Checks a message and takes out what is unusable. Returns whether there is anything left to be believed.
    pub(super) fn check(
        &mut self,
        message: &mut Message,
        version: Option<Version>,
        broken: &mut Broken<'_>,
    ) -> bool {
        let id = message.id();
        let since = match id {
            id::AZURE_DEVOPS_LOG => Version::V1_2_0,
            id::DISPLAY_MESSAGE => Version::V1_3_0,
            id::WAIT_FOR_SERVER_CONTROL => Version::V1_4_0,
            _ => Version::V1_0_0,
        };
        if version.is_some_and(|version| version < since) {
            broken(Rule::MessageInVersion, format!("{} before version {since}", name(id)));
        }
        let help = self.config.mode == Mode::Help;
        let of_tests = matches!(
            id,
            id::DISCOVERED_TESTS
                | id::TEST_RESULTS
                | id::FILE_ARTIFACTS
                | id::SESSION_EVENT
                | id::TESTS_IN_PROGRESS
        );
        if (id == id::COMMAND_LINE_OPTIONS && !help) || (of_tests && help) {
            broken(Rule::MessageInMode, format!("{} in the mode {:?}", name(id), self.config.mode.word()));
            return false;
        }
        let by_test_host = matches!(id, id::DISCOVERED_TESTS | id::TEST_RESULTS | id::FILE_ARTIFACTS);
        // A controller's files come over its own connection, after the test host's.
        if by_test_host && !self.has_test_host {
            broken(Rule::TestHostFirst, format!("{} before the handshake of a test host", name(id)));
        }
        if let Some((execution, instance)) = ids(message) {
            self.check_ids(execution, instance, broken);
        }
        match message {
            Message::DiscoveredTests(message) => {
                retain(&mut message.tests, |test| test.uid.is_some(), "a discovered test has no uid", broken)
            }
            Message::TestResults(results) => self.check_results(results, broken),
            Message::FileArtifacts(message) => {
                retain(&mut message.artifacts, |file| file.full_path.is_some(), "a file has no path", broken)
            }
            Message::SessionEvent(event) => {
                let (Some(kind), Some(uid)) = (event.kind, &event.session_uid) else {
                    broken(Rule::RequiredField, "a session event has no type or no session".to_owned());
                    return false;
                };
                if ![SessionKind::START, SessionKind::END].contains(&kind) {
                    broken(Rule::SessionKind, format!("a session event has the type {}", kind.0));
                    return false;
                }
                self.session(uid, kind).map_err(|detail| broken(Rule::SessionOrder, detail)).is_ok()
            }
            Message::TestsInProgress(message) => {
                retain(&mut message.tests, |test| test.uid.is_some(), "a test in progress has no uid", broken)
            }
            Message::Unknown { id, .. } => {
                broken(Rule::UnknownMessage, format!("message {id} is not known"));
                false
            }
            Message::VoidResponse
            | Message::ServerControl(_)
            | Message::TestHostCompleted { .. }
            | Message::TestHostPid(_) => {
                broken(Rule::Direction, format!("{} is nothing that a host sends here", name(id)));
                false
            }
            _ => true,
        }
    }

    fn check_ids(&self, execution: Option<&str>, instance: Option<&str>, broken: &mut Broken<'_>) {
        let own = self.identity.as_ref().map(|[.., execution]| execution.as_str());
        if execution != own {
            let detail = format!("the execution id is {execution:?}, and that of the handshake {own:?}");
            broken(Rule::ExecutionId, detail);
        }
        if let Some(instance) = instance
            && !self.instances.contains(instance)
        {
            broken(Rule::InstanceId, format!("the instance id {instance:?} is of no handshake"));
        }
    }

    fn check_results(&self, results: &mut TestResults, broken: &mut Broken<'_>) -> bool {
        if self.open_sessions() == 0 {
            broken(Rule::ResultInSession, "a result outside of any session".to_owned());
        }
        let own = [State::PASSED, State::SKIPPED, State::IN_PROGRESS];
        let failed = [State::FAILED, State::ERROR, State::TIMEOUT, State::CANCELLED];
        let is_ide = self.config.is_ide;
        let mut check = |uid: &Option<String>, state: Option<State>, expected: &[State]| {
            let Some(uid) = uid else {
                broken(Rule::RequiredField, "a result has no uid".to_owned());
                return false;
            };
            match state {
                Some(state) if expected.contains(&state) && (is_ide || state != State::IN_PROGRESS) => true,
                Some(state) if own.contains(&state) || failed.contains(&state) => {
                    let list = if state == State::IN_PROGRESS {
                        "was not asked for"
                    } else {
                        "is in the other list"
                    };
                    broken(
                        Rule::StateList,
                        format!("the state {} of {uid:?} {list}", state.name().unwrap_or_default()),
                    );
                    true
                }
                // Over without an outcome: nothing that could be counted.
                Some(State::DISCOVERED) => {
                    broken(Rule::ResultState, format!("the result of {uid:?} has the state DISCOVERED"));
                    false
                }
                state => {
                    let state = state.map_or_else(|| "none".to_owned(), |state| state.0.to_string());
                    broken(Rule::ResultState, format!("the result of {uid:?} has the state {state}"));
                    false
                }
            }
        };
        results.successful.retain(|result| check(&result.uid, result.state, &own));
        results.failed.retain(|result| check(&result.uid, result.state, &failed));
        !(results.successful.is_empty() && results.failed.is_empty())
    }
}

/// Takes out what is not usable, and says so once.
fn retain<T>(list: &mut Vec<T>, usable: impl Fn(&T) -> bool, detail: &str, broken: &mut Broken<'_>) -> bool {
    let before = list.len();
    list.retain(usable);
    if list.len() < before {
        broken(Rule::RequiredField, detail.to_owned());
    }
    !list.is_empty()
}

/// The ids of execution and instance, where a message has some.
fn ids(message: &Message) -> Option<(Option<&str>, Option<&str>)> {
    macro_rules! both {
        ($message:expr) => {
            Some(($message.execution_id.as_deref(), $message.instance_id.as_deref()))
        };
    }
    match message {
        Message::DiscoveredTests(message) => both!(message),
        Message::TestResults(message) => both!(message),
        Message::FileArtifacts(message) => both!(message),
        Message::TestsInProgress(message) => both!(message),
        Message::SessionEvent(message) => Some((message.execution_id.as_deref(), None)),
        // Nobody checks these: they are for people.
        _ => None,
    }
}
