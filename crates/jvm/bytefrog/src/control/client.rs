//! The client of the control socket, so that scripts need no other tool.

use std::io;
use std::path::Path;
use std::time::Duration;

use runtap_transport::{ConnectError, Endpoint};
use thiserror::Error;
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::time::timeout;

/// The time-out for connecting to the socket.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// The time-out for an answer; the collector may have to wait for agents that do not read.
const ANSWER_TIMEOUT: Duration = Duration::from_mins(1);

/// The reason why a command has no answer.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum SendError {
    /// The collector cannot be reached.
    #[error(transparent)]
    Connect(#[from] ConnectError),
    /// The collector has closed the connection.
    #[error("the collector exited without replying")]
    Closed,
    /// The collector does not answer in time.
    #[error("does not answer")]
    NoAnswer,
    /// Reading or writing has failed.
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// Sends a command to the collector that listens on a socket, and returns the line that answers it.
///
/// # Errors
/// Fails if there is no answer.
pub async fn send(path: &Path, command: &str) -> Result<String, SendError> {
    let stream = Endpoint::local(path).connect(CONNECT_TIMEOUT).await?;
    let mut stream = BufReader::new(stream);
    stream.write_all(format!("{}\n", command.trim()).as_bytes()).await?;
    let mut answer = String::new();
    match timeout(ANSWER_TIMEOUT, stream.read_line(&mut answer)).await {
        Err(_) => Err(SendError::NoAnswer),
        Ok(Ok(0)) => Err(SendError::Closed),
        Ok(read) => Ok(read.map(|_size| answer)?),
    }
}
