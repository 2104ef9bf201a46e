//! Summaries of messages in one line. Texts are unmodified; printing escapes them.

use std::time::Duration;

use runtap_mtp_proto::{FailedTest, Handshake, Message, SuccessfulTest, TestState};

use runtap_transcript::Direction;

use super::protocol::version_text;

/// The maximum number of names from one message.
const MAX_NAMED: usize = 3;

/// Summarizes a message.
pub(crate) fn summary(message: &Message, direction: Direction) -> String {
    match message {
        Message::Handshake(handshake) if direction == Direction::FromServer => reply(handshake),
        Message::Handshake(handshake) => request(handshake),
        Message::TestHostCompleted(message) => format!("exit code {}", message.exit_code),
        Message::TestHostProcessId(message) => format!("process {}", message.pid),
        Message::CommandLineOptions(message) => {
            let options: Vec<_> = message.options.iter().flatten().collect();
            let names: Vec<_> = options.iter().map(|option| text(option.name.as_ref())).collect();
            format_list(&names, "option")
        }
        Message::DiscoveredTests(message) => {
            let tests = message.tests.iter().flatten();
            let names: Vec<_> =
                tests.map(|test| display_name(test.display_name.as_ref(), test.uid.as_ref())).collect();
            format_list(&names, "test")
        }
        Message::TestResults(message) => {
            let passed = message.successful.iter().flatten().map(successful);
            let all: Vec<_> = passed.chain(message.failed.iter().flatten().map(failed)).collect();
            format_list(&all, "result")
        }
        Message::FileArtifacts(message) => {
            let files = message.artifacts.iter().flatten();
            let paths: Vec<_> = files.map(|file| text(file.full_path.as_ref())).collect();
            format_list(&paths, "file")
        }
        Message::SessionEvent(event) => {
            let kind = event.session_type.map_or_else(|| "no type".to_owned(), |kind| kind.to_string());
            format!("{kind}, session {}", text(event.session_uid.as_ref()))
        }
        Message::TestsInProgress(message) => {
            let tests = message.tests.iter().flatten();
            let names: Vec<_> =
                tests.map(|test| display_name(test.display_name.as_ref(), test.uid.as_ref())).collect();
            format_list(&names, "test")
        }
        Message::AzureDevOpsLog(message) => text(message.text.as_ref()),
        Message::Display(message) => {
            let level = message.level.map_or_else(String::new, |level| format!("{level}: "));
            level + &text(message.text.as_ref())
        }
        Message::ServerControl(message) => {
            message.kind.map_or_else(|| "no kind".to_owned(), |kind| kind.to_string())
        }
        Message::Unknown { body, .. } => format!("{} bytes", body.len()),
        _ => String::new(),
    }
}

fn request(handshake: &Handshake) -> String {
    let mut parts = Vec::new();
    parts.extend(handshake.host_type().map(|host| host.to_string()));
    parts.extend(handshake.attempt_number().map(|attempt| format!("attempt {attempt}")));
    parts.extend(handshake.pid().map(|pid| format!("process {pid}")));
    parts.extend(handshake.framework().map(str::to_owned));
    parts.extend(handshake.versions().map(|versions| format!("offers {versions}")));
    parts.join(", ")
}

fn reply(handshake: &Handshake) -> String {
    let version = handshake.chosen_version();
    let mut parts = vec![version_text(version)];
    parts.extend(handshake.is_ide().then(|| "for an IDE".to_owned()));
    parts.extend(handshake.server_control_pipe().map(|pipe| format!("control pipe {pipe}")));
    parts.join(", ")
}

fn successful(test: &SuccessfulTest) -> String {
    result(test.state, test.display_name.as_ref(), test.uid.as_ref(), test.duration)
}

fn failed(test: &FailedTest) -> String {
    let line = result(test.state, test.display_name.as_ref(), test.uid.as_ref(), test.duration);
    let first = test.exceptions.iter().flatten().find_map(|exception| exception.message.as_ref());
    match first.and_then(|message| message.lines().next()) {
        Some(message) => format!("{line}: {message}"),
        None => line,
    }
}

fn result(
    state: Option<TestState>,
    name: Option<&String>,
    uid: Option<&String>,
    duration: Option<i64>,
) -> String {
    let state = state.map_or_else(|| "no state".to_owned(), |state| state.to_string());
    // In units of 100 ns; some frameworks send negative durations.
    let took = duration.and_then(|ticks| u64::try_from(ticks).ok()).map(|ticks| {
        let took = Duration::from_nanos(ticks.saturating_mul(100));
        format!(" ({took:.1?})")
    });
    format!("{state} {}{}", display_name(name, uid), took.unwrap_or_default())
}

fn display_name(name: Option<&String>, uid: Option<&String>) -> String {
    match (name, uid) {
        (Some(name), Some(uid)) if name != uid => format!("{name} [{uid}]"),
        (Some(name), _) => name.clone(),
        (None, Some(uid)) => format!("[{uid}]"),
        (None, None) => "?".to_owned(),
    }
}

fn text(text: Option<&String>) -> String {
    text.cloned().unwrap_or_else(|| "?".to_owned())
}

/// Formats a single item, or the number of items and the first ones.
fn format_list(all: &[String], what: &str) -> String {
    match all {
        [] => format!("no {what}s"),
        [one] => one.clone(),
        all => {
            let first: Vec<_> = all.iter().take(MAX_NAMED).map(String::as_str).collect();
            let more = if all.len() > MAX_NAMED { ", …" } else { "" };
            format!("{} {what}s: {}{more}", all.len(), first.join(", "))
        }
    }
}
