//! Queries the identity of a runtime.

use std::time::Duration;

use runtap_diag::{Client, Error, Timeouts};
use runtap_diag_proto::ProcessInfo;
use runtap_transport::Endpoint;

/// Time-out of a query. An idle runtime answers within a few milliseconds.
pub(crate) const DEADLINE: Duration = Duration::from_secs(1);

/// The answer of a runtime to a query of its identity.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Answer {
    /// There was no endpoint to query.
    #[default]
    NotQueried,
    /// The runtime answered. `None` for .NET Core 3, which does not support the command.
    Answered(Option<Box<ProcessInfo>>),
    /// The runtime did not answer in time.
    TimedOut,
    /// Connecting was not permitted.
    NotPermitted,
    /// Nothing listens on the socket.
    NoListener,
    /// Another process listens on the socket, with its description.
    WrongPeer(String),
    /// The socket does not exist.
    NoSocket,
    /// The answer was not that of a runtime, or another error occurred.
    Failed(String),
}

/// Queries the identity of a runtime, for at most this time.
pub async fn query(endpoint: Option<Endpoint>, limit: Duration) -> Answer {
    let Some(endpoint) = endpoint else { return Answer::NotQueried };
    let client = Client::new(endpoint).with_timeouts(Timeouts::all(limit));
    match tokio::time::timeout(limit, client.process_info()).await {
        Ok(Ok(info)) => Answer::Answered(Some(Box::new(info))),
        Ok(Err(error)) => Answer::of_error(&error),
        Err(_elapsed) => Answer::TimedOut,
    }
}

impl Answer {
    /// Converts the error of a query.
    pub fn of_error(error: &Error) -> Self {
        match error {
            error if error.is_unknown_command() => Self::Answered(None),
            Error::Busy { .. } | Error::TimedOut { .. } => Self::TimedOut,
            Error::NotPermitted { .. } => Self::NotPermitted,
            Error::WrongPeer { reason, .. } => Self::WrongPeer(reason.to_string()),
            Error::NotThere { stale: true, .. } => Self::NoListener,
            Error::NotThere { stale: false, .. } => Self::NoSocket,
            other => Self::Failed(other.to_string()),
        }
    }
}
