//! `jvm hq --send COMMAND`: sends a command to a running collector, so that scripts need no other tool.

use std::path::Path;
use std::time::Duration;

use runtap_transport::Endpoint;
use serde_json::Value;
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::time::timeout;

use super::ControlCommand;
use crate::cmd::interrupt::or_interrupted;
use crate::exit::{self, expected, usage};
use crate::output::Output;

/// The time-out for connecting to the socket.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// The time-out for an answer; the collector may have to wait for agents that do not read.
const ANSWER_TIMEOUT: Duration = Duration::from_mins(1);

/// Sends a command and prints the answer. Returns exit code 4 if the collector or an agent rejects the command.
pub(in crate::cmd::jvm) async fn send(path: &Path, command: &str, output: Output) -> anyhow::Result<u8> {
    if let Err(error) = command.parse::<ControlCommand>() {
        return Err(usage(error.to_string()));
    }
    let answer = or_interrupted(ask(path, command)).await?;
    let value: Value = serde_json::from_str(&answer).map_err(|error| {
        expected(exit::FAILED, format!("{} answers what is no JSON: {error}", path.display()), None)
    })?;
    output.document_line(&value)?;
    let agents = value["agents"].as_array();
    let refused =
        value["type"] == "error" || agents.is_some_and(|all| all.iter().any(|one| one["ok"] == false));
    Ok(if refused { exit::REFUSED } else { exit::OK })
}

async fn ask(path: &Path, command: &str) -> anyhow::Result<String> {
    let unreachable = |error: String| {
        let hint = "start a collector with 'runtap jvm hq --control PATH'".to_owned();
        expected(exit::NO_TARGET, format!("{}: {error}", path.display()), hint)
    };
    let stream = Endpoint::local(path)
        .connect(CONNECT_TIMEOUT)
        .await
        .map_err(|error| unreachable(error.to_string()))?;
    let mut stream = BufReader::new(stream);
    stream.write_all(format!("{}\n", command.trim()).as_bytes()).await?;
    let mut answer = String::new();
    let read = timeout(ANSWER_TIMEOUT, stream.read_line(&mut answer)).await;
    match read {
        Err(_) => Err(expected(exit::FAILED, format!("{} does not answer", path.display()), None)),
        Ok(Err(error)) => Err(error.into()),
        Ok(Ok(size)) if size > 0 => Ok(answer),
        Ok(Ok(_)) => Err(unreachable("the collector has ended without an answer".to_owned())),
    }
}
