//! Named pipes of Windows: dialling with a deadline. Never compiled or run where this was written; it keeps to a dozen
//! lines, and the names are in [`naming`](crate::naming), which is tested.

use std::time::{Duration, Instant};

use tokio::net::windows::named_pipe::{ClientOptions, NamedPipeClient};

use crate::ConnectFailure;

/// All instances of the pipe are taken: it is tried again.
const ERROR_PIPE_BUSY: i32 = 231;
const PAUSE: Duration = Duration::from_millis(20);

pub(crate) async fn connect(path: &str, timeout: Duration) -> Result<NamedPipeClient, ConnectFailure> {
    let started = Instant::now();
    loop {
        match ClientOptions::new().open(path) {
            Ok(client) => return Ok(client),
            Err(error) if error.raw_os_error() == Some(ERROR_PIPE_BUSY) => {
                let waited = started.elapsed();
                if waited >= timeout {
                    return Err(ConnectFailure::Busy { waited });
                }
                tokio::time::sleep(PAUSE.min(timeout - waited)).await;
            }
            Err(error) => return Err(error.into()),
        }
    }
}
