//! The control socket of `jvm hq` (docs/jvm.md).

use std::path::Path;

use runtap_bytefrog::control::{self, ControlCommand, SendError};
use runtap_jvm::agents::{Collector, ControlAnswer, execute};
use runtap_record::Stops;
use runtap_text::Output;
use runtap_text::jvm::answer_line;
use runtap_transport::{BindError, BindOptions, Listener};
use serde_json::Value;

use crate::cmd::interrupt::or_interrupted;
use crate::exit::{self, expected, usage};

/// Binds the control socket.
pub(super) fn bind(path: &Path) -> anyhow::Result<Listener> {
    Listener::bind(path, BindOptions::default().replace_stale(true)).map_err(|error| match &error {
        BindError::InUse { .. } => expected(
            exit::FAILED,
            error.to_string(),
            "Another collector listens there, or the file is not a socket; choose another --control."
                .to_owned(),
        ),
        _ => error.into(),
    })
}

/// Serves clients until the future is dropped.
pub(super) async fn serve(listener: Listener, Collector { hq, watch }: Collector, stops: Stops) {
    let answer = move |command: Result<ControlCommand, control::ControlError>| {
        let answer = match &command {
            Ok(command) => execute(command, &hq, &watch),
            Err(error) => ControlAnswer::Error(error.to_string()),
        };
        if command == Ok(ControlCommand::Quit) {
            stops.stop();
        }
        answer_line(&answer)
    };
    control::serve(listener, answer).await;
}

/// Sends a command and prints the answer. Returns exit code 4 if the collector or an agent rejects the command.
pub(super) async fn send(path: &Path, command: &str, output: Output) -> anyhow::Result<u8> {
    if let Err(error) = command.parse::<ControlCommand>() {
        return Err(usage(error.to_string()));
    }
    let answer =
        or_interrupted(async { control::send(path, command).await.map_err(|error| explain(path, error)) });
    let value: Value = serde_json::from_str(&answer.await?).map_err(|error| {
        expected(exit::FAILED, format!("{} sent an answer that is not JSON: {error}", path.display()), None)
    })?;
    output.document_line(&value)?;
    let agents = value["agents"].as_array();
    let refused =
        value["type"] == "error" || agents.is_some_and(|all| all.iter().any(|one| one["ok"] == false));
    Ok(if refused { exit::REFUSED } else { exit::OK })
}

fn explain(path: &Path, error: SendError) -> anyhow::Error {
    match error {
        SendError::Connect(_) | SendError::Closed => {
            let hint = "Start a collector with 'runtap jvm hq --control PATH'.".to_owned();
            expected(exit::NO_TARGET, format!("{}: {error}", path.display()), hint)
        }
        SendError::NoAnswer => expected(exit::FAILED, format!("{} {error}", path.display()), None),
        SendError::Io(error) => error.into(),
        _ => error.into(),
    }
}
