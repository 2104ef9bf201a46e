//! The server of the control socket.
//!
//! Each client has its own task, and each command runs on its own thread, so that neither an idle client nor an agent that does
//! not read delays other clients. The socket has mode 0600, and the peer's credentials are checked: only the current user and
//! root may connect.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use runtap_transport::{Listener, Stream};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::sync::Semaphore;
use tokio::time::{sleep, timeout};

use super::{ControlCommand, ControlError};

/// The maximum number of concurrent clients.
const MAX_CLIENTS: usize = 64;
/// The maximum length of a line, in bytes.
const MAX_LINE: u64 = 4096;
/// The time after which an idle client is disconnected.
const IDLE_TIMEOUT: Duration = Duration::from_mins(1);
/// The time-out for writing an answer.
const WRITE_TIMEOUT: Duration = Duration::from_secs(10);

/// Serves clients until the future is dropped. `answer` executes a command and returns the line that answers it; it may
/// block. It also returns the line for a line or a client that is rejected.
pub async fn serve<A>(listener: Listener, answer: A)
where
    A: Fn(Result<ControlCommand, ControlError>) -> Vec<u8> + Clone + Send + Sync + 'static,
{
    let permits = Arc::new(Semaphore::new(MAX_CLIENTS));
    loop {
        let Ok((mut stream, _)) = listener.accept().await else {
            // Usually the process has no free descriptors; retry later.
            sleep(Duration::from_millis(50)).await;
            continue;
        };
        let Ok(permit) = Arc::clone(&permits).try_acquire_owned() else {
            // The message fits into the socket's empty buffer, so this rarely waits.
            let refusal = answer(Err(ControlError::TooManyClients));
            let _ = timeout(Duration::from_millis(50), stream.write_all(&refusal)).await;
            continue;
        };
        let answer = answer.clone();
        tokio::spawn(async move {
            // An error affects this client only.
            let _ = serve_client(stream, &answer).await;
            drop(permit);
        });
    }
}

async fn serve_client<A>(stream: Stream, answer: &A) -> io::Result<()>
where
    A: Fn(Result<ControlCommand, ControlError>) -> Vec<u8> + Clone + Send + Sync + 'static,
{
    let mut stream = BufReader::new(stream);
    loop {
        let mut line = Vec::new();
        let read = timeout(IDLE_TIMEOUT, (&mut stream).take(MAX_LINE).read_until(b'\n', &mut line)).await;
        let is_complete = line.ends_with(b"\n");
        let command = match read {
            Err(_) => Err(ControlError::Idle),
            Ok(Err(error)) => return Err(error),
            Ok(Ok(0)) => return Ok(()),
            Ok(_) if !is_complete && line.len() as u64 == MAX_LINE => Err(ControlError::TooLong),
            // The last line needs no line feed.
            Ok(_) => String::from_utf8_lossy(&line).parse(),
        };
        let answer = answer.clone();
        let answer = tokio::task::spawn_blocking(move || answer(command)).await?;
        timeout(WRITE_TIMEOUT, stream.write_all(&answer)).await.map_err(io::Error::other)??;
        if !is_complete {
            return Ok(());
        }
    }
}
