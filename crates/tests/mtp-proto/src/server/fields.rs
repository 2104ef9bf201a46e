//! Checks of the fields of a single message, independent of earlier messages.

use super::quote;
use crate::{Message, MessageId, Rule, TestResults, TestState};

/// The broken rules, each with a description of the violation.
type BrokenRules = Vec<(Rule, String)>;

/// Appends the violations of a message.
pub(crate) fn check(message: &Message, is_ide: bool, broken: &mut BrokenRules) {
    let id = message.id();
    match message {
        Message::CommandLineOptions(message) => {
            for option in message.options.iter().flatten() {
                check_required(option.name.is_some(), id, "Name", None, broken);
            }
        }
        Message::DiscoveredTests(message) => {
            for test in message.tests.iter().flatten() {
                check_names(id, test.uid.as_deref(), test.display_name.as_deref(), broken);
            }
        }
        Message::TestResults(message) => check_results(message, is_ide, broken),
        Message::TestsInProgress(message) => {
            for test in message.tests.iter().flatten() {
                check_names(id, test.uid.as_deref(), test.display_name.as_deref(), broken);
            }
        }
        Message::FileArtifacts(message) => {
            for file in message.artifacts.iter().flatten() {
                check_required(
                    file.full_path.is_some(),
                    id,
                    "FullPath",
                    file.display_name.as_deref(),
                    broken,
                );
            }
        }
        Message::SessionEvent(message) => {
            check_required(
                message.session_type.is_some(),
                id,
                "SessionType",
                message.session_uid.as_deref(),
                broken,
            );
            check_required(message.session_uid.is_some(), id, "SessionUid", None, broken);
        }
        _ => {}
    }
}

/// Returns whether a test failed and no later attempt in the same process replaces its result.
pub(super) fn has_failed(results: &TestResults) -> bool {
    let successful = results.successful.iter().flatten().map(|test| (test.state, test.is_superseded));
    let failed = results.failed.iter().flatten().map(|test| (test.state, test.is_superseded));
    successful
        .chain(failed)
        .any(|(state, superseded)| state.is_some_and(TestState::is_failed) && superseded != Some(true))
}

fn check_results(results: &TestResults, is_ide: bool, broken: &mut BrokenRules) {
    let id = MessageId::TEST_RESULTS;
    let successful = results.successful.iter().flatten();
    let successful = successful.map(|test| (&test.uid, &test.display_name, test.state, true));
    let failed = results.failed.iter().flatten();
    let failed = failed.map(|test| (&test.uid, &test.display_name, test.state, false));
    for (uid, name, state, in_successful) in successful.chain(failed) {
        let uid = uid.as_deref();
        check_names(id, uid, name.as_deref(), broken);
        check_required(state.is_some(), id, "State", uid, broken);
        let Some(state) = state else { continue };
        // Called only for violations: quoting the id of every test would be slow.
        let test = || quote(uid.unwrap_or_default());
        if !(state.is_failed() || state.is_successful()) || (state == TestState::IN_PROGRESS && !is_ide) {
            broken.push((Rule::State, format!("test {} has state {state}", test())));
        } else if state.is_successful() != in_successful {
            let list = if in_successful { "successful" } else { "failed" };
            let detail = format!("test {} is {state}, in the list of {list} tests", test());
            broken.push((Rule::WrongList, detail));
        }
    }
}

fn check_names(id: MessageId, uid: Option<&str>, name: Option<&str>, broken: &mut BrokenRules) {
    check_required(uid.is_some(), id, "Uid", name, broken);
    check_required(name.is_some(), id, "DisplayName", uid, broken);
}

fn check_required(
    is_present: bool,
    id: MessageId,
    field: &str,
    owner: Option<&str>,
    broken: &mut BrokenRules,
) {
    if !is_present {
        let owner = owner.map(|owner| format!(" of {}", quote(owner))).unwrap_or_default();
        broken.push((Rule::MissingField, format!("{field}{owner} is missing in {id}")));
    }
}
