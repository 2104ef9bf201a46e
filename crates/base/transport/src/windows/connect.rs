//! Dialling a pipe. A runtime's pipe bears the id of its process, and anybody can make a pipe of that name before the
//! runtime does: so the system is asked who has made the instance that was opened, before anything is sent.

use std::time::{Duration, Instant};

use tokio::net::windows::named_pipe::ClientOptions;

use super::PIPES;
use crate::naming::owner_of_pipe;
use crate::{ConnectFailure, Peer, Stream};

/// All instances of the pipe are taken: it is tried again.
const ERROR_PIPE_BUSY: i32 = 231;
const PAUSE: Duration = Duration::from_millis(20);

/// Dials a pipe by its name. One that is named after a process has to be that process's.
pub(crate) async fn connect(name: &str, timeout: Duration) -> Result<Stream, ConnectFailure> {
    let stream = open(name, timeout).await?;
    let Some(wanted) = owner_of_pipe(name) else { return Ok(stream) };
    match stream.peer() {
        Ok(Peer { pid: Some(pid), .. }) if pid == wanted => Ok(stream),
        Ok(peer) => Err(ConnectFailure::WrongPeer {
            user: if peer.uid == runtap_os::my_uid() { "our own" } else { "another" }.to_owned(),
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
