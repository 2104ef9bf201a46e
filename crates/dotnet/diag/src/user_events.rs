//! Sessions into user_events: the target writes its events into tracepoints of the Linux kernel, from which perf, ftrace
//! or eBPF programs read them. The client receives no events.
//!
//! This module passes the descriptor that the target needs; it does not read tracepoints.

#![allow(clippy::doc_markdown, reason = "user_events is prose here, not code")]

use std::{fmt, fs::File, io, os::fd::OwnedFd};

use runtap_diag_proto::{Reply, Request, SessionForm, SessionId, UserEventsConfig};
use runtap_transport::{Endpoint, Stream};
use tokio::io::AsyncReadExt;

use crate::client::unexpected;
use crate::exchange::Answer;
use crate::{Client, Error};

/// The paths of the kernel's file for registering and writing tracepoints.
const FILES: [&str; 2] =
    ["/sys/kernel/tracing/user_events_data", "/sys/kernel/debug/tracing/user_events_data"];

/// Opens the file for [`Client::start_user_events`]. Usually requires root.
///
/// # Errors
/// `NotFound` if the kernel has no user_events (Linux 6.4 with `CONFIG_USER_EVENTS`), or tracefs is not mounted.
pub fn open_data_file() -> io::Result<OwnedFd> {
    let mut refused = io::Error::from(io::ErrorKind::NotFound);
    for path in FILES {
        match File::options().read(true).write(true).open(path) {
            Ok(file) => return Ok(file.into()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => refused = error,
        }
    }
    Err(refused)
}

/// A session into user_events that this client started. Ends with its connection: dropping it ends it without a rundown.
pub struct UserEventsSession {
    client: Client,
    id: SessionId,
    stream: Stream,
}

impl fmt::Debug for UserEventsSession {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("UserEventsSession").field("id", &self.id).finish_non_exhaustive()
    }
}

impl UserEventsSession {
    /// Returns the id of the session in the runtime.
    pub fn id(&self) -> SessionId {
        self.id
    }

    /// Returns the endpoint of the runtime.
    pub fn endpoint(&self) -> &Endpoint {
        self.client.endpoint()
    }

    /// Completes when the runtime has ended the session, or has exited. Cancel safe.
    pub async fn ended(&mut self) {
        let mut buffer = [0; 256];
        // Bytes have no meaning here; an error is an end.
        while matches!(self.stream.read(&mut buffer).await, Ok(n) if n > 0) {}
    }

    /// Stops the session with its rundown.
    ///
    /// # Errors
    /// The errors of the stop command; the connection is closed in any case, which ends the session, too.
    pub async fn stop(self) -> Result<(), Error> {
        self.client.stop_session(self.id).await
    }
}

impl Client {
    /// Starts a session into user_events. `descriptor` is an open `user_events_data` file: [`open_data_file`].
    ///
    /// The request and the descriptor are sent right after each other: a runtime that has received only the request waits
    /// for the descriptor, and serves no other client.
    ///
    /// # Errors
    /// [`Error::Invalid`], before anything is sent, if the configuration must not be sent.
    /// [`Error::Refused`] with UNKNOWN_COMMAND from runtimes before .NET 10, with E_FAIL for another kind of file.
    pub async fn start_user_events(
        &self,
        config: &UserEventsConfig,
        descriptor: OwnedFd,
    ) -> Result<UserEventsSession, Error> {
        let request =
            Request::CollectUserEvents { form: SessionForm::CollectTracing5, config: config.clone() };
        let exchange = self.connect_with(request.clone(), descriptor).await?;
        match exchange.complete(self.timeouts().reply).await {
            Ok(Answer { reply: Reply::SessionStarted(id), stream, .. }) => {
                Ok(UserEventsSession { client: self.clone(), id, stream })
            }
            other => Err(unexpected(other.map(|answer| answer.reply), &request)),
        }
    }
}
