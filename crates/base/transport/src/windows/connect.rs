//! Connecting to a named pipe. The name of a runtime's pipe contains its process id, but any process can create a pipe
//! of that name first. So the operating system is asked which process created the instance, before anything is sent.

use std::time::{Duration, Instant};

use tokio::net::windows::named_pipe::ClientOptions;

use super::PIPES;
use crate::naming::owner_of_pipe;
use crate::{ConnectFailure, Peer, Stream};

/// All instances of the pipe are busy; try again.
const ERROR_PIPE_BUSY: i32 = 231;
const PAUSE: Duration = Duration::from_millis(20);

/// Connects to a pipe by its name. A pipe that is named after a process must have been created by that process.
pub(crate) async fn connect(name: &str, timeout: Duration) -> Result<Stream, ConnectFailure> {
    let stream = open(name, timeout).await?;
    let Some(wanted) = owner_of_pipe(name) else { return Ok(stream) };
    match stream.peer() {
        Ok(Peer { pid: Some(pid), .. }) if pid == wanted => Ok(stream),
        Ok(peer) => Err(ConnectFailure::WrongPeer {
            user: if peer.uid == runtap_os::my_uid() { "the current one" } else { "another" }.to_owned(),
            peer,
            wanted: Some(wanted),
        }),
        Err(_not_told) => Err(ConnectFailure::UnknownPeer { wanted }),
    }
}

async fn open(name: &str, timeout: Duration) -> Result<Stream, ConnectFailure> {
    let path = format!("{PIPES}{name}");
    let started = Instant::now();
    loop {
        match ClientOptions::new().open(&path) {
            Ok(client) => return Ok(client.into()),
            Err(error) if error.raw_os_error() == Some(ERROR_PIPE_BUSY) => {
                let waited = started.elapsed();
                if waited >= timeout {
                    return Err(ConnectFailure::Busy { waited });
                }
                tokio::time::sleep(PAUSE.min(timeout.saturating_sub(waited))).await;
            }
            Err(error) => return Err(error.into()),
        }
    }
}
